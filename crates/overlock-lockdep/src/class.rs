//! Classes: the nodes of the dependency graph, and the class of each lock.
//!
//! A class is never removed from the table, so what was read of one stays true. Readers take no
//! lock: a class is complete before its number is in the index, a lock's class before its address
//! is in the table of locks. Writers are inside the gate.

use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize};
use std::{ptr, slice, str};

use super::gate::Inside;
use super::site::Site;
use super::symbol;
use super::{GATE, notice, tally};
use crate::mapped::{Mapped, Zeroed};

/// A class of locks: those of one name, or initialised in one place. The validator applies what it
/// learns of one lock to all of its class.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClassId(u16);

impl ClassId {
    /// No class: such a lock is tracked while it is held, and has no place in the order.
    pub const NONE: ClassId = ClassId(0);

    /// Returns a number for a lock to keep; 0 is [`ClassId::NONE`].
    #[inline]
    pub const fn to_bits(self) -> u32 {
        self.0 as u32
    }

    /// Inverse of [`to_bits`](Self::to_bits). Any other number gives some class, or none.
    #[inline]
    pub const fn from_bits(bits: u32) -> ClassId {
        ClassId(bits as u16 % NODES as u16)
    }

    #[inline]
    pub(super) const fn index(self) -> u16 {
        self.0
    }

    #[inline]
    pub(super) const fn from_index(index: u16) -> ClassId {
        ClassId(index)
    }
}

/// Capacity for classes, and for single locks held with others of their class: each may be half of
/// them.
pub(super) const NODES: usize = 1 << if cfg!(miri) { 8 } else { 14 };

/// The identity of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    Named(&'static str),
    /// Initialised at this place.
    Site(Site),
    /// Initialised by a call of a C library's function, with these callers.
    Init(Init),
    /// One lock without an initialisation: a static, usually.
    Lock(usize),
    /// A level of a class whose locks are taken in an order that the caller knows.
    Level(ClassId, u8),
    /// One lock of a class, while two of the class are held.
    Member(ClassId, usize),
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

const DEAD: u8 = u8::MAX;

struct Record {
    kind: AtomicU8,
    parent: AtomicU16,
    value: AtomicUsize,
    length: AtomicUsize,
}

// SAFETY: zero bytes are a valid value of each field.
unsafe impl Zeroed for Record {}

static TABLE: Mapped<[Record; NODES]> = Mapped::new();

/// Twice the number of nodes, so that a search ends soon.
static INDEX: [AtomicU16; 2 * NODES] = [const { AtomicU16::new(0) }; 2 * NODES];

/// Nodes in use; node 0 is never used.
static COUNT: AtomicU32 = AtomicU32::new(1);
/// Number of those that are members.
static MEMBERS: AtomicU32 = AtomicU32::new(0);

impl Record {
    fn set(&self, origin: Origin) {
        let (kind, parent, value, length) = match origin {
            Origin::Named(name) => (1, 0, name.as_ptr().expose_provenance(), name.len()),
            Origin::Site(site) => (2, 0, site.to_bits(), 0),
            Origin::Init(init) => (6, init.above, init.site.to_bits(), init.caller.to_bits()),
            Origin::Lock(lock) => (3, 0, lock, 0),
            Origin::Level(class, level) => (4, class.0, level.into(), 0),
            Origin::Member(class, lock) => (5, class.0, lock, 0),
        };
        self.parent.store(parent, Relaxed);
        self.value.store(value, Relaxed);
        self.length.store(length, Relaxed);
        self.kind.store(kind, Relaxed);
    }

    /// `None` for an unused node, and for a lock that is gone.
    fn get(&self) -> Option<Origin> {
        let value = self.value.load(Relaxed);
        let class = ClassId(self.parent.load(Relaxed));
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
            3 => Origin::Lock(value),
            4 => Origin::Level(class, value as u8),
            5 => Origin::Member(class, value),
            6 => Origin::Init(Init {
                site: Site::from_bits(value),
                caller: Site::from_bits(self.length.load(Relaxed)),
                above: class.0,
            }),
            _ => return None,
        })
    }
}

fn mix(value: usize) -> usize {
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
        Origin::Lock(lock) => mix(lock ^ 1),
        Origin::Level(class, level) => mix(usize::from(class.0) << 8 | usize::from(level)),
        Origin::Member(class, lock) => mix(lock ^ usize::from(class.0) << 1),
    }
}

/// The class, or its place in the index.
fn search(origin: Origin) -> Result<ClassId, Option<&'static AtomicU16>> {
    let start = start(origin);
    for step in 0..INDEX.len() {
        let place = &INDEX[(start + step) % INDEX.len()];
        // Acquire: pairs with the release in `class_of`: the node is complete.
        let class = place.load(Acquire);
        if class == 0 {
            return Err(Some(place));
        }
        if TABLE[usize::from(class)].get() == Some(origin) {
            return Ok(ClassId(class));
        }
    }
    Err(None)
}

/// Returns the class of that origin, a new one if there is none; [`ClassId::NONE`] if the table is
/// full.
pub(super) fn class_of(origin: Origin) -> ClassId {
    if let Ok(class) = search(origin) {
        return class;
    }
    let class = add(origin, &GATE.enter());
    if class == ClassId::NONE {
        notice::once(match origin {
            Origin::Member(..) => notice::MEMBERS,
            _ => notice::CLASSES,
        });
    }
    class
}

#[cold]
fn add(origin: Origin, _: &Inside<'_>) -> ClassId {
    let place = match search(origin) {
        Ok(class) => return class, // another thread was faster
        Err(None) => return ClassId::NONE,
        Err(Some(place)) => place,
    };
    let members = MEMBERS.load(Relaxed);
    let count = COUNT.load(Relaxed);
    let is_member = matches!(origin, Origin::Member(..));
    let of_the_kind = if is_member { members } else { count - members };
    if of_the_kind as usize >= NODES / 2 {
        return ClassId::NONE;
    }
    if !is_member {
        tally::add(|tally| &tally.classes);
    }
    TABLE[count as usize].set(origin);
    COUNT.store(count + 1, Relaxed);
    MEMBERS.store(members + u32::from(is_member), Relaxed);
    // Release: pairs with the acquire in `search`.
    place.store(count as u16, Release);
    ClassId(count as u16)
}

/// Returns the number of classes.
pub(super) fn count() -> usize {
    (COUNT.load(Relaxed) - 1 - MEMBERS.load(Relaxed)) as usize
}

/// Returns the numbers of all nodes so far.
pub(super) fn all() -> impl Iterator<Item = u16> {
    1..COUNT.load(Relaxed) as u16
}

/// Whether a node still stands for something: dependencies of a lock that is gone no longer count.
pub(super) fn is_alive(class: u16) -> bool {
    TABLE[usize::from(class)].kind.load(Relaxed) != DEAD
}

/// Returns the class with which a level or a member is reported once.
pub(super) fn family(class: ClassId) -> ClassId {
    match TABLE[usize::from(class.0)].get() {
        Some(Origin::Member(class, _)) => class,
        _ => class,
    }
}

impl fmt::Display for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TABLE[usize::from(self.0)].get() {
            None => f.write_str("?"),
            Some(Origin::Named(name)) => f.write_str(name),
            Some(Origin::Site(site)) => site.fmt(f),
            Some(Origin::Init(Init { site, caller, .. })) => write!(f, "{site}, by {caller}"),
            Some(Origin::Lock(lock)) => symbol::Data(lock).fmt(f),
            Some(Origin::Level(class, level)) => write!(f, "{class}/{level}"),
            Some(Origin::Member(class, lock)) => write!(f, "{class}@{lock:#x}"),
        }
    }
}

impl fmt::Debug for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClassId({}: {self})", self.0)
    }
}

/// Locks whose class is found by their address.
const LOCKS: usize = 1 << if cfg!(miri) { 8 } else { 16 };

/// The largest distance of an address from its place.
const REACH: usize = 64;

struct Place {
    /// An address; [`EMPTY`] or [`GONE`].
    lock: AtomicUsize,
    class: AtomicU16,
}

const EMPTY: usize = 0;
/// A removed entry. Searches continue behind it.
const GONE: usize = 1;

// SAFETY: zero bytes are a valid value of both fields: an empty place.
unsafe impl Zeroed for Place {}

static PLACES: Mapped<[Place; LOCKS]> = Mapped::new();

fn places(lock: usize) -> impl Iterator<Item = &'static Place> {
    let start = mix(lock);
    (0..REACH.min(LOCKS)).map(move |step| &PLACES[(start + step) % LOCKS])
}

fn place_of(lock: usize) -> Option<&'static Place> {
    for place in places(lock) {
        // Acquire: pairs with the release in `set_class`: the class is this lock's.
        match place.lock.load(Acquire) {
            EMPTY => return None,
            seen if seen == lock => return Some(place),
            _ => {}
        }
    }
    None
}

/// Returns the class of the lock at this address, if it has one.
#[inline]
pub(super) fn known_class(lock: usize) -> Option<ClassId> {
    place_of(lock).map(|place| ClassId(place.class.load(Relaxed)))
}

/// Sets the class of the lock at this address.
pub(super) fn set_class(lock: usize, class: ClassId) {
    if lock <= GONE {
        return;
    }
    let set = {
        let _inside = GATE.enter();
        let free = |place: &&Place| place.lock.load(Relaxed) <= GONE;
        let known = place_of(lock);
        if known.is_none() {
            tally::add(|tally| &tally.locks);
        }
        match known.or_else(|| places(lock).find(free)) {
            None => false,
            Some(place) => {
                place.class.store(class.0, Relaxed);
                // Release: pairs with the acquire in `place_of`.
                place.lock.store(lock, Release);
                true
            }
        }
    };
    if !set {
        notice::once(notice::LOCKS);
    }
}

/// Number of members that are gone.
static FORGOTTEN: AtomicUsize = AtomicUsize::new(0);

/// Changes whenever a member is gone.
#[inline]
pub(super) fn forgotten() -> usize {
    FORGOTTEN.load(Relaxed)
}

/// Forgets the lock at this address: another one may come to lie there.
pub(super) fn forget(lock: usize, class: ClassId) {
    let member = search(Origin::Member(class, lock)).ok();
    let place = place_of(lock);
    if member.is_none() && place.is_none() {
        return;
    }
    let _inside = GATE.enter();
    if let Some(ClassId(member)) = member {
        TABLE[usize::from(member)].kind.store(DEAD, Relaxed);
        FORGOTTEN.fetch_add(1, Relaxed);
    }
    if let Some(place) = place {
        let own = ClassId(place.class.load(Relaxed));
        if TABLE[usize::from(own.0)].get() == Some(Origin::Lock(lock)) {
            TABLE[usize::from(own.0)].kind.store(DEAD, Relaxed);
        }
        place.lock.store(GONE, Relaxed);
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
    }

    #[test]
    fn a_lock_that_is_gone_is_forgotten_and_its_address_can_be_anothers() {
        let class = class_of(Origin::Named("class::tests places"));
        let lock = 0x5000;
        assert_eq!(known_class(lock), None);
        set_class(lock, class);
        assert_eq!(known_class(lock), Some(class));
        let member = class_of(Origin::Member(class, lock));
        forget(lock, class);
        assert_eq!(known_class(lock), None);
        assert!(!is_alive(member.0));
        assert_ne!(class_of(Origin::Member(class, lock)), member);
        set_class(lock, ClassId::NONE);
        assert_eq!(known_class(lock), Some(ClassId::NONE));
        forget(lock, ClassId::NONE);
    }

    #[test]
    fn searches_go_on_behind_a_lock_that_is_gone() {
        // Addresses that all hash to the same place.
        let mut locks = (0x1_0000..)
            .step_by(16)
            .filter(|lock| mix(*lock) % LOCKS == 7);
        let [first, second] = [(); 2].map(|()| locks.next().unwrap());
        set_class(first, ClassId::NONE);
        set_class(second, ClassId::NONE);
        forget(first, ClassId::NONE);
        assert!(known_class(second).is_some());
        forget(second, ClassId::NONE);
    }
}
