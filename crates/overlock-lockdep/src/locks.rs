//! The class of each lock, by its address.
//!
//! Memory is reused: another lock may lie where one lay. So each lock has a number, and one that
//! has unused words keeps the lower half of it there: its *mark*. A lock whose mark is not the
//! table's is a new one: never initialised, in zeroed or fresh memory, or a copy of another lock.
//!
//! Readers take no lock. A class and the lock's number are one word, so they belong together. When
//! the table grows, the old one stays for those who read it; what it says of a marked lock is
//! checked against the mark. Writers are inside the gate.

mod claim;

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

use super::class::{self, ClassId, mix};
use super::gate::{Inside, Quiet, is_blind};
use super::site::Site;
use super::trace::Trace;
use super::{GATE, notice, sweep, tally};
use crate::mapped::{self, Zeroed};
use claim::mark_new;

struct Place {
    /// An address; [`EMPTY`] or [`GONE`].
    lock: AtomicUsize,
    /// The class and the number, as [`ClassId::to_bits`].
    class: AtomicU64,
}

const EMPTY: usize = 0;
/// A removed entry. Searches continue behind it.
const GONE: usize = 1;

// SAFETY: zero bytes are a valid value of both fields: an empty place.
unsafe impl Zeroed for Place {}

/// The binary logarithms of the smallest and the largest table's size.
const SMALLEST: usize = if cfg!(miri) { 6 } else { 10 };
const LARGEST: usize = if cfg!(miri) { 10 } else { 20 };

/// The largest distance of an address from its place.
const REACH: usize = 64;

/// The tables, each twice as large as the one before.
static TABLES: [AtomicPtr<Place>; LARGEST - SMALLEST + 1] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; LARGEST - SMALLEST + 1];

/// One more than the number of the present table; 0 for none.
static PRESENT: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Copy)]
struct Table(&'static [Place]);

impl Table {
    fn number(number: usize) -> Option<Table> {
        // Acquire: pairs with the release in `grow`.
        let places = TABLES.get(number)?.load(Acquire);
        if places.is_null() {
            return None;
        }
        // SAFETY: `grow` has mapped so many places, for ever. They are atomic, and zero at first.
        Some(Table(unsafe {
            std::slice::from_raw_parts(places, 1 << (SMALLEST + number))
        }))
    }

    #[inline]
    fn present() -> Option<Table> {
        // Acquire: pairs with the release in `grow`: all entries have moved.
        Table::number((PRESENT.load(Acquire) as usize).checked_sub(1)?)
    }

    fn places(self, lock: usize) -> impl Iterator<Item = &'static Place> {
        let start = mix(lock);
        // A power of two: a division would take longer than all the rest.
        let last = self.0.len() - 1;
        (0..REACH).map(move |step| &self.0[(start + step) & last])
    }

    #[inline]
    fn find(self, lock: usize) -> Option<&'static Place> {
        for place in self.places(lock) {
            // Acquire: pairs with the release in `put`: the class is this lock's.
            match place.lock.load(Acquire) {
                EMPTY => return None,
                seen if seen == lock => return Some(place),
                _ => {}
            }
        }
        None
    }

    /// Returns false without room.
    fn put(self, lock: usize, class: ClassId) -> bool {
        let mut places = self.places(lock);
        let Some(place) = places.find(|place| place.lock.load(Relaxed) <= GONE) else {
            return false;
        };
        place.class.store(class.to_bits(), Relaxed);
        // Release: pairs with the acquire in `find`.
        place.lock.store(lock, Release);
        true
    }
}

/// Moves all entries to a larger table, with room for the lock. Returns false without memory.
fn grow(lock: usize, class: ClassId) -> bool {
    let old = Table::present();
    let mut next = PRESENT.load(Relaxed) as usize;
    loop {
        let Some(place) = TABLES.get(next) else {
            return false;
        };
        let Some(new) = mapped::map_slice::<Place>(1 << (SMALLEST + next)) else {
            return false;
        };
        // Release: pairs with the acquire in `number`.
        place.store(new, Release);
        next += 1;
        let Some(table) = Table::number(next - 1) else {
            return false;
        };
        let move_all = |old: Table| {
            old.0.iter().all(|place| {
                let lock = place.lock.load(Relaxed);
                lock <= GONE || table.put(lock, ClassId::from_bits(place.class.load(Relaxed)))
            })
        };
        if old.is_none_or(move_all) && table.put(lock, class) {
            // Release: pairs with the acquire in `present`.
            PRESENT.store(next as u32, Release);
            return true;
        }
    }
}

/// Returns the class of the lock at this address, if it has one.
#[inline]
pub(super) fn known(lock: usize) -> Option<ClassId> {
    let place = Table::present()?.find(lock)?;
    Some(ClassId::from_bits(place.class.load(Relaxed)))
}

/// As [`known`], of the lock with this mark.
#[inline]
fn known_as(lock: usize, mark: u32) -> Option<ClassId> {
    known(lock).filter(|class| class.number() as u32 == mark && mark != 0)
}

/// Whether the lock that is held, as seen by its address, is still the one that lies there.
pub(super) fn is_current(lock: usize, class: ClassId) -> bool {
    known(lock).is_none_or(|now| class.number() == 0 || now.number() == class.number())
}

/// Sets the class of the lock at this address, unless a later lock has come to lie there. Returns
/// the class.
fn set(lock: usize, number: u64, class: impl FnOnce(&Inside<'_>) -> ClassId) -> ClassId {
    let quiet = Quiet::begin();
    let Some(inside) = GATE.enter(&quiet) else {
        return ClassId::NONE;
    };
    let (class, is_set) = set_inside(lock, number, class, &inside);
    drop(inside);
    drop(quiet);
    said(is_set);
    class
}

/// As [`set`]. Returns also whether there was room.
fn set_inside(
    lock: usize,
    number: u64,
    class: impl FnOnce(&Inside<'_>) -> ClassId,
    inside: &Inside<'_>,
) -> (ClassId, bool) {
    if lock <= GONE {
        return (ClassId::NONE, true);
    }
    sweep(inside);
    let known = Table::present().and_then(|table| table.find(lock));
    if let Some(place) = known {
        let before = ClassId::from_bits(place.class.load(Relaxed)).number();
        if before >= number {
            return (ClassId::from_bits(place.class.load(Relaxed)), true);
        }
        class::end(before, inside);
    }
    tally::add(|tally| &tally.locks);
    let class = class(inside);
    let is_set = match known {
        Some(place) => {
            place.class.store(class.to_bits(), Relaxed);
            true
        }
        None => Table::present().is_some_and(|table| table.put(lock, class)) || grow(lock, class),
    };
    (class, is_set)
}

fn said(is_set: bool) {
    if !is_set {
        notice::once(notice::LOCKS);
    }
}

/// Returns the class of a lock without a mark, a new one if it has none.
#[inline]
pub(super) fn class_of(lock: usize) -> ClassId {
    known(lock).unwrap_or_else(|| new(lock, class::new_number()))
}

#[cold]
fn new(lock: usize, number: u64) -> ClassId {
    let class = set(lock, number, |inside| {
        class::own_class(lock, number, inside)
    });
    if class == ClassId::NONE && lock > GONE && !is_blind() {
        notice::once(notice::MEMBERS);
    }
    class
}

/// Returns the class of a lock with a mark, a new one if it is a new lock.
#[inline]
pub(super) fn class_of_marked(lock: usize, mark: &AtomicU32) -> ClassId {
    // Relaxed: the mark is the only data.
    known_as(lock, mark.load(Relaxed)).unwrap_or_else(|| mark_new(lock, mark))
}

/// A lock is initialised there, which nobody else uses yet.
pub(super) fn init(lock: usize, mark: Option<&AtomicU32>, site: Site) {
    let quiet = Quiet::begin();
    let endable = quiet.endable();
    let trace = Trace::here(site);
    drop(endable);
    drop(quiet);
    let class = match trace.init(site) {
        Some(init) => class::of_init(init),
        None => super::class_of_site(site),
    };
    let number = class::new_number();
    if let Some(mark) = mark {
        mark.store(number as u32, Relaxed);
    }
    let class = match class.node() {
        0 => ClassId::NONE,
        node => ClassId::new(node, number),
    };
    set(lock, number, |_| class);
}

/// Forgets the lock at this address: another one may come to lie there.
pub(super) fn forget(lock: usize) {
    if known(lock).is_none() {
        return;
    }
    let quiet = Quiet::begin();
    let Some(inside) = GATE.enter(&quiet) else {
        return;
    };
    if let Some(place) = Table::present().and_then(|table| table.find(lock)) {
        let class = ClassId::from_bits(place.class.load(Relaxed));
        class::end(class.number(), &inside);
        place.lock.store(GONE, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_whose_mark_is_another_is_a_new_one() {
        let (lock, mark) = (0x5010, AtomicU32::new(0));
        let first = class_of_marked(lock, &mark);
        assert_eq!(class_of_marked(lock, &mark), first);
        let kept = mark.swap(0, Relaxed);
        let second = class_of_marked(lock, &mark);
        assert_ne!(second, first);
        // A copy of the earlier one.
        mark.store(kept, Relaxed);
        assert_ne!(class_of_marked(lock, &mark), first);
        // The same mark elsewhere.
        let copy = AtomicU32::new(mark.load(Relaxed));
        assert_ne!(
            class_of_marked(lock + 64, &copy),
            class_of_marked(lock, &mark)
        );
        assert_ne!(copy.load(Relaxed), mark.load(Relaxed));
    }

    #[test]
    fn a_lock_that_is_gone_is_forgotten_and_its_address_can_be_anothers() {
        let lock = 0x5000;
        assert!(known(lock).is_none());
        let class = class_of(lock);
        assert_eq!(known(lock), Some(class));
        forget(lock);
        assert!(known(lock).is_none());
        assert!(!class::is_alive(class.node()));
        assert_ne!(class_of(lock).number(), class.number());
        forget(lock);
    }

    #[test]
    fn the_table_grows_and_keeps_all() {
        let count = if cfg!(miri) { 200 } else { 20_000 };
        let locks = || (0x10_0000..).step_by(16).take(count);
        let classes: Vec<_> = locks().map(class_of).collect();
        for (lock, class) in locks().zip(&classes) {
            assert_eq!(known(lock).map(ClassId::number), Some(class.number()));
            assert_ne!(*class, ClassId::NONE);
        }
        locks().for_each(forget);
    }
}
