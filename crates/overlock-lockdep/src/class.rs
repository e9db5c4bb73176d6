//! Classes, and the nodes of the dependency graph: a class, or a single lock.
//!
//! A class is never removed from the table, so what was read of one stays true. Readers of classes
//! take no lock: a class is complete before its number is in the index. Writers are inside the
//! gate. The node of a lock is the lock's until [`sweep`](super::sweep) finds that it is gone.

mod single;

use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use std::{ptr, slice, str};

use super::gate::{Inside, Quiet};
use super::site::Site;
use super::symbol;
use super::{GATE, notice, tally};
use crate::mapped::{Chunks, Zeroed};

pub(super) use single::{
    any_gone, end, family, is_alive, is_known, lock_node, may_have_node, new_number, node_of,
    own_class, subject, sweep, wants_sweep,
};

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

/// The stack of a lock's initialisation. Many programs initialise all their locks in a function of
/// their own, so its callers count too, as far as a [`Trace`](super::trace::Trace) goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Init {
    pub(super) site: Site,
    /// The place of the call to the function that contains the site.
    pub(super) caller: Site,
    /// A hash of the callers above.
    pub(super) above: u32,
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

impl Record {
    fn set(&self, origin: Origin) {
        let (kind, parent, value, length) = match origin {
            Origin::Named(name) => (1, 0, name.as_ptr().expose_provenance(), name.len()),
            Origin::Site(site) => (2, 0, site.to_bits(), 0),
            Origin::Init(init) => (6, init.above, init.site.to_bits(), init.caller.to_bits()),
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
                above: parent,
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
            let callers = mix(init.caller.to_bits() ^ (init.above as usize) << 1);
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

/// Returns the class of locks that are initialised there. Stacks that differ further up make no new
/// ones once half of the room for classes is taken.
pub(super) fn of_init(init: Init) -> ClassId {
    let is_new = search(Origin::Init(init)).is_err();
    let above = match is_new && COUNT.load(Relaxed) as usize > CLASSES / 2 {
        true => 0,
        false => init.above,
    };
    class_of(Origin::Init(Init { above, ..init }))
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

/// Returns the number of classes.
pub(super) fn count() -> usize {
    (COUNT.load(Relaxed) - 1 + single::own()) as usize
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
    fn the_stack_of_an_initialisation_makes_the_class() {
        let init = |above| Init {
            site: Site::code(0x10),
            caller: Site::code(0x20),
            above,
        };
        let [one, two] = [1, 2].map(|above| of_init(init(above)));
        assert_ne!(one, two);
        assert_eq!(of_init(init(1)), one);
        // Many stacks leave room for other classes.
        for above in 0..CLASSES as u32 {
            assert_ne!(of_init(init(above)), ClassId::NONE);
        }
        assert_eq!(of_init(init(1)), one);
        assert_ne!(
            class_of(Origin::Named("class::tests after many")),
            ClassId::NONE
        );
    }
}
