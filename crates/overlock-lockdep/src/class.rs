//! Classes, and the nodes of the dependency graph: a class, or a single lock.
//!
//! A class is never removed from the table, so what was read of one stays true. Readers of classes
//! take no lock: a class is complete before its number is in the index. Writers are inside the
//! gate. The node of a lock is the lock's until [`sweep`](super::sweep) finds that it is gone.

use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use std::{ptr, slice, str};

use super::gate::{Inside, Quiet};
use super::site::Site;
use super::symbol;
use super::{GATE, notice, tally};
use crate::mapped::{Chunks, Zeroed};

/// A class of locks: those of one name, or initialised in one place. The validator applies what it
/// learns of one lock to all of its class. It also names the lock, if that is known; two of one
/// class are equal.
#[derive(Clone, Copy)]
pub struct ClassId(u64);

/// Bits of a [`ClassId`] for the node; the others have the lock's number.
const NODE_BITS: u32 = 20;

/// Distinguishes a number that is made of an address.
const ADDRESS: u64 = 1 << 43;

impl PartialEq for ClassId {
    fn eq(&self, other: &ClassId) -> bool {
        self.node() == other.node()
    }
}

impl Eq for ClassId {}

impl std::hash::Hash for ClassId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.node().hash(state);
    }
}

impl ClassId {
    /// No class: such a lock is tracked while it is held, and has no place in the order.
    pub const NONE: ClassId = ClassId(0);

    /// Returns a number for a lock to keep; 0 is [`ClassId::NONE`].
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Inverse of [`to_bits`](Self::to_bits). Any other number gives some class, or none.
    #[inline]
    pub const fn from_bits(bits: u64) -> ClassId {
        ClassId(bits)
    }

    pub(super) const fn new(node: u32, number: u64) -> ClassId {
        ClassId(number << NODE_BITS | node as u64)
    }

    #[inline]
    pub(super) const fn node(self) -> u32 {
        self.0 as u32 & ((1 << NODE_BITS) - 1)
    }

    /// Returns the lock's number; 0 if it is not known.
    #[inline]
    pub(super) const fn number(self) -> u64 {
        self.0 >> NODE_BITS
    }

    /// The class for one lock of it, of which only the address is known.
    #[inline]
    pub(super) const fn at(self, lock: usize) -> ClassId {
        if self.0 == 0 || self.number() != 0 {
            return self;
        }
        ClassId::new(self.node(), ADDRESS | (lock as u64 >> 3) & (ADDRESS - 1))
    }

    /// Returns its identity in the order: the lock itself where locks are followed one by one, or
    /// else the class.
    #[inline]
    pub(super) fn unit(self) -> u64 {
        let node = self.node();
        match node as usize >= CLASSES || is_split(node) {
            true => self.number() | 1 << 63,
            false => node.into(),
        }
    }
}

/// Capacity for classes of several locks: the first nodes.
pub(super) const CLASSES: usize = 1 << if cfg!(miri) { 8 } else { 13 };

const CHUNKS: usize = if cfg!(miri) { 16 } else { 1 << 10 };

/// Capacity for nodes. The others are single locks.
pub(super) const NODES: usize = Nodes::<Record>::LENGTH;

/// A table with an element for each node.
pub(super) type Nodes<T> = Chunks<T, CHUNKS>;

const _: () = assert!(NODES <= 1 << NODE_BITS);

/// The identity of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    Named(&'static str),
    /// Initialised at this place.
    Site(Site),
    /// Initialised by a call of a C library's function, with these callers.
    Init(Init),
    /// A level of a class whose locks are taken in an order that the caller knows.
    Level(ClassId, u8),
}

/// The place of a lock's initialisation. Many programs initialise all their locks in a function of
/// their own, so the callers of that function count too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Init {
    pub(super) site: Site,
    /// The place of the call to the function that contains the site.
    pub(super) caller: Site,
    /// A hash of the callers above.
    pub(super) above: u16,
}

/// [`Record::kind`] of a single lock.
const LOCK: u8 = 7;

struct Record {
    kind: AtomicU8,
    /// Of a class: its locks are followed one by one. Of a lock: it is gone.
    mark: AtomicBool,
    /// Of a lock: its class, or 0.
    parent: AtomicU32,
    /// Of a lock: its address.
    value: AtomicUsize,
    length: AtomicUsize,
    /// Of a lock.
    number: AtomicU64,
    /// The next lock's node in the same bucket, or the next free node.
    next: AtomicU32,
}

// SAFETY: zero bytes are a valid value of each field.
unsafe impl Zeroed for Record {}

static RECORDS: Nodes<Record> = Nodes::new();

/// Twice the number of classes, so that a search ends soon.
static INDEX: [AtomicU32; 2 * CLASSES] = [const { AtomicU32::new(0) }; 2 * CLASSES];

/// Classes in use; node 0 is never used.
static COUNT: AtomicU32 = AtomicU32::new(1);

/// The first lock's node of each bucket, by a hash of the number; 0 for none. Written inside the
/// gate only.
static BUCKETS: [AtomicU32; BUCKET_COUNT] = [const { AtomicU32::new(0) }; BUCKET_COUNT];
const BUCKET_COUNT: usize = 1 << if cfg!(miri) { 6 } else { 14 };

/// One more than the highest node of a lock; the first free one below, or 0.
static END: AtomicU32 = AtomicU32::new(CLASSES as u32);
static FREE: AtomicU32 = AtomicU32::new(0);
/// Locks that are a class of their own, so far.
static OWN: AtomicU32 = AtomicU32::new(0);
/// Nodes of locks that are gone.
static GONE: AtomicU32 = AtomicU32::new(0);

impl Record {
    fn set(&self, origin: Origin) {
        let (kind, parent, value, length) = match origin {
            Origin::Named(name) => (1, 0, name.as_ptr().expose_provenance(), name.len()),
            Origin::Site(site) => (2, 0, site.to_bits(), 0),
            Origin::Init(init) => {
                let above = init.above.into();
                (6, above, init.site.to_bits(), init.caller.to_bits())
            }
            Origin::Level(class, level) => (4, class.node(), level.into(), 0),
        };
        self.parent.store(parent, Relaxed);
        self.value.store(value, Relaxed);
        self.length.store(length, Relaxed);
        self.kind.store(kind, Relaxed);
    }

    /// `None` for an unused node, and for a lock's.
    fn get(&self) -> Option<Origin> {
        let value = self.value.load(Relaxed);
        let parent = self.parent.load(Relaxed);
        Some(match self.kind.load(Relaxed) {
            1 => {
                let length = self.length.load(Relaxed);
                // SAFETY: the two are those of a name that lives for ever: `set` stores them before
                // anybody gets the node's number.
                let name =
                    unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(value), length) };
                // SAFETY: and it is a string.
                Origin::Named(unsafe { str::from_utf8_unchecked(name) })
            }
            2 => Origin::Site(Site::from_bits(value)),
            4 => Origin::Level(ClassId::new(parent, 0), value as u8),
            6 => Origin::Init(Init {
                site: Site::from_bits(value),
                caller: Site::from_bits(self.length.load(Relaxed)),
                above: parent as u16,
            }),
            _ => return None,
        })
    }

    fn is_lock(&self) -> bool {
        self.kind.load(Relaxed) == LOCK
    }
}

fn record(node: u32) -> Option<&'static Record> {
    RECORDS.get(node as usize)
}

pub(super) fn mix(value: usize) -> usize {
    let mixed = (value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize
}

fn start(origin: Origin) -> usize {
    match origin {
        Origin::Named(name) => {
            let add = |sum: usize, byte: u8| sum.wrapping_mul(31).wrapping_add(byte.into());
            mix(name.bytes().fold(1, add))
        }
        Origin::Site(site) => mix(site.to_bits()),
        Origin::Init(init) => {
            let callers = mix(init.caller.to_bits() ^ usize::from(init.above) << 1);
            mix(init.site.to_bits() ^ callers)
        }
        Origin::Level(class, level) => mix((class.node() as usize) << 8 | usize::from(level)),
    }
}

/// The class, or its place in the index.
fn search(origin: Origin) -> Result<u32, Option<&'static AtomicU32>> {
    let start = start(origin);
    for step in 0..INDEX.len() {
        let place = &INDEX[(start + step) % INDEX.len()];
        // Acquire: pairs with the release in `add`: the node is complete.
        let class = place.load(Acquire);
        if class == 0 {
            return Err(Some(place));
        }
        if record(class).and_then(Record::get) == Some(origin) {
            return Ok(class);
        }
    }
    Err(None)
}

/// Returns the class of that origin, a new one if there is none; [`ClassId::NONE`] if the table is
/// full.
pub(super) fn class_of(origin: Origin) -> ClassId {
    let found = search(origin).ok().or_else(|| {
        let quiet = Quiet::begin();
        let class = add(origin, &GATE.enter(&quiet)?);
        drop(quiet);
        if class.is_none() {
            notice::once(notice::CLASSES);
        }
        class
    });
    found.map_or(ClassId::NONE, |node| ClassId::new(node, 0))
}

#[cold]
fn add(origin: Origin, _: &Inside<'_>) -> Option<u32> {
    let place = match search(origin) {
        Ok(class) => return Some(class), // another thread was faster
        Err(place) => place?,
    };
    let count = COUNT.load(Relaxed);
    if count as usize >= CLASSES {
        return None;
    }
    RECORDS.make(count as usize)?.set(origin);
    tally::add(|tally| &tally.classes);
    COUNT.store(count + 1, Relaxed);
    // Release: pairs with the acquire in `search`.
    place.store(count, Release);
    Some(count)
}

/// Returns a number that no other lock has.
pub(super) fn new_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = LAST.fetch_add(1, Relaxed) + 1;
        // A lock may keep the lower half, in which 0 stands for none.
        if number as u32 != 0 {
            return number % ADDRESS;
        }
    }
}

fn bucket(number: u64) -> &'static AtomicU32 {
    &BUCKETS[mix(number as usize) % BUCKET_COUNT]
}

/// Whether the lock with this number may have a node: a cheap filter, for the lock's owner.
pub(super) fn may_have_node(number: u64) -> bool {
    // Relaxed: whoever makes the node has finished with the lock, before the owner ends it. A sweep
    // may hide the node for a moment. Then it stays, and no other lock has its number.
    bucket(number).load(Relaxed) != 0
}

/// Returns the node of the lock with this number, whether it is gone or not.
pub(super) fn node_of(number: u64, _: &Inside<'_>) -> Option<u32> {
    let mut node = bucket(number).load(Relaxed);
    while node != 0 {
        let record = record(node)?;
        if record.number.load(Relaxed) == number {
            return Some(node);
        }
        node = record.next.load(Relaxed);
    }
    None
}

/// Returns the node of a single lock, a new one if there is none. `None` without room.
pub(super) fn lock_node(class: ClassId, lock: usize, inside: &Inside<'_>) -> Option<u32> {
    if class.number() == 0 {
        return None;
    }
    if let Some(node) = node_of(class.number(), inside) {
        return Some(node);
    }
    let free = FREE.load(Relaxed);
    let node = match record(free).filter(|_| free != 0) {
        Some(record) => {
            FREE.store(record.next.load(Relaxed), Relaxed);
            free
        }
        None => {
            let end = END.load(Relaxed);
            RECORDS.make(end as usize)?;
            END.store(end + 1, Relaxed);
            end
        }
    };
    let record = record(node)?;
    let first = bucket(class.number());
    record.parent.store(class.node(), Relaxed);
    record.value.store(lock, Relaxed);
    record.number.store(class.number(), Relaxed);
    record.mark.store(false, Relaxed);
    record.kind.store(LOCK, Relaxed);
    record.next.store(first.load(Relaxed), Relaxed);
    first.store(node, Relaxed);
    Some(node)
}

/// Returns a class for a single lock. [`ClassId::NONE`] without room.
pub(super) fn own_class(lock: usize, number: u64, inside: &Inside<'_>) -> ClassId {
    let Some(node) = lock_node(ClassId::new(0, number), lock, inside) else {
        return ClassId::NONE;
    };
    tally::add(|tally| &tally.classes);
    OWN.fetch_add(1, Relaxed);
    ClassId::new(node, number)
}

/// The lock with this number is gone.
pub(super) fn end(number: u64, inside: &Inside<'_>) {
    if let Some(record) = node_of(number, inside).and_then(record)
        && !record.mark.swap(true, Relaxed)
    {
        GONE.fetch_add(1, Relaxed);
    }
}

/// Whether so many locks are gone that their nodes are worth a search.
pub(super) fn wants_sweep() -> bool {
    let end = END.load(Relaxed);
    let used = end - CLASSES as u32;
    let few = if cfg!(miri) { 16 } else { 4096 };
    GONE.load(Relaxed) >= (used / 2).max(few)
}

/// Whether any lock is gone whose node is not free.
pub(super) fn any_gone() -> bool {
    GONE.load(Relaxed) != 0
}

/// Frees the nodes of the locks that are gone; nothing refers to them any more. Calls `each` for
/// each.
pub(super) fn sweep(_: &Inside<'_>, mut each: impl FnMut(u32)) {
    for bucket in &BUCKETS {
        bucket.store(0, Relaxed);
    }
    FREE.store(0, Relaxed);
    GONE.store(0, Relaxed);
    for node in CLASSES as u32..END.load(Relaxed) {
        let Some(record) = record(node) else { continue };
        let list = if record.is_lock() && !record.mark.load(Relaxed) {
            bucket(record.number.load(Relaxed))
        } else {
            record.kind.store(0, Relaxed);
            record.number.store(0, Relaxed);
            each(node);
            &FREE
        };
        record.next.store(list.load(Relaxed), Relaxed);
        list.store(node, Relaxed);
    }
}

/// Returns the number of classes.
pub(super) fn count() -> usize {
    (COUNT.load(Relaxed) - 1 + OWN.load(Relaxed)) as usize
}

/// Whether the locks of a class are followed one by one: two of them were held at a time.
#[inline]
pub(super) fn is_split(class: u32) -> bool {
    record(class).is_some_and(|record| record.mark.load(Relaxed))
}

/// Follows the locks of a class one by one from now on. Returns false if that is so already.
pub(super) fn split(class: u32, _: &Inside<'_>) -> bool {
    record(class).is_some_and(|record| !record.mark.swap(true, Relaxed))
}

/// Whether a node still stands for something: dependencies of a lock that is gone no longer count.
pub(super) fn is_alive(node: u32) -> bool {
    node < CLASSES as u32 || record(node).is_some_and(|lock| !lock.mark.load(Relaxed))
}

/// Whether the lock with this number is not known to be gone.
pub(super) fn is_known(number: u64, inside: &Inside<'_>) -> bool {
    node_of(number, inside).is_some_and(is_alive)
}

/// Returns the class of a node: itself, unless it is a lock of a class.
pub(super) fn family(node: u32) -> u32 {
    match record(node) {
        Some(record) if record.is_lock() => match record.parent.load(Relaxed) {
            0 => node,
            parent => parent,
        },
        _ => node,
    }
}

/// Returns what a node is reported once as: its number, or that of the lock.
pub(super) fn subject(node: u32) -> usize {
    match record(node) {
        Some(record) if record.is_lock() => record.number.load(Relaxed) as usize | 1 << 63,
        _ => node as usize,
    }
}

impl fmt::Display for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(record) = record(self.node()) else {
            return f.write_str("?");
        };
        match record.get() {
            Some(Origin::Named(name)) => f.write_str(name),
            Some(Origin::Site(site)) => site.fmt(f),
            Some(Origin::Init(Init { site, caller, .. })) => write!(f, "{site}, by {caller}"),
            Some(Origin::Level(class, level)) => write!(f, "{class}/{level}"),
            None if record.is_lock() => {
                let lock = record.value.load(Relaxed);
                match record.parent.load(Relaxed) {
                    0 => symbol::Data(lock).fmt(f),
                    class => write!(f, "{}@{lock:#x}", ClassId::new(class, 0)),
                }
            }
            None => f.write_str("?"),
        }
    }
}

impl fmt::Debug for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClassId({}: {self})", self.node())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_origin_is_the_same_class() {
        let one = class_of(Origin::Named("class::tests one"));
        let copy: &'static str = String::from("class::tests one").leak();
        assert_eq!(class_of(Origin::Named(copy)), one);
        assert_ne!(class_of(Origin::Named("class::tests two")), one);
        let level = class_of(Origin::Level(one, 1));
        assert_ne!(level, one);
        assert_eq!(level.to_string(), "class::tests one/1");
        assert_eq!(ClassId::from_bits(one.to_bits()), one);
        assert_eq!(one.at(0x7fff_ffff_fff0), one);
        assert_ne!(one.at(0x10).number(), one.at(0x20).number());
    }

    #[test]
    fn the_node_of_a_lock_that_is_gone_becomes_anothers_after_a_sweep_only() {
        let quiet = Quiet::begin();
        let inside = GATE.enter(&quiet).unwrap();
        let [gone, stays] = [(); 2].map(|()| ClassId::new(0, new_number()));
        let node = lock_node(gone, 0x5000, &inside).unwrap();
        let other = lock_node(stays, 0x5000, &inside).unwrap();
        assert_ne!(node, other);
        end(gone.number(), &inside);
        assert!(!is_alive(node) && is_alive(other));
        assert!(!is_known(gone.number(), &inside));
        assert_eq!(node_of(gone.number(), &inside), Some(node));
        let mut freed = Vec::new();
        sweep(&inside, |node| freed.push(node));
        assert!(freed.contains(&node) && !freed.contains(&other));
        assert_eq!(node_of(gone.number(), &inside), None);
        assert_eq!(node_of(stays.number(), &inside), Some(other));
    }
}
