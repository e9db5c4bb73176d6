//! The call sites that initialised locks, by address: the report names locks without a symbol by
//! them.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::Site;
use crate::unwind::From;
use crate::{stacks, table};

/// The number of objects kept. Beyond that later ones replace others.
const OBJECTS: usize = 16384;

/// The number of places that are tried for an object.
const REACH: usize = 8;

#[derive(Debug)]
struct Object {
    address: AtomicUsize,
    init: AtomicUsize,
    stack: AtomicU32,
    mark: AtomicU32,
}

/// The place where an object was initialised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Init {
    /// 0 if that is not known, as for a static one. Of a lock with a name, as in an entry.
    pub site: Site,
    /// As in an entry.
    pub stack: u32,
}

static KNOWN: [Object; OBJECTS] = [const {
    Object {
        address: AtomicUsize::new(0),
        init: AtomicUsize::new(0),
        stack: AtomicU32::new(0),
        mark: AtomicU32::new(0),
    }
}; OBJECTS];

fn near(address: usize) -> impl Iterator<Item = &'static Object> {
    let start = ((address as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    (0..REACH).map(move |step| &KNOWN[(start + step) % OBJECTS])
}

/// The mark of objects that have no room for one: even, and far from the validator's first ones.
pub const NO_ROOM: u32 = u32::MAX - 1;

/// Records that the object is initialised at `site`. A later object in its memory has another mark,
/// unless neither has [room for one](NO_ROOM).
pub fn initialised(address: usize, mark: u32, site: Site) {
    // The site without its callers, where no table has room for them.
    let stack = table::get().map_or(0, |table| {
        table::keeping_errno(|| stacks::of(table, From::Site(site)).1)
    });
    note(address, mark, Init { site, stack });
}

/// Returns a mark for an object that is initialised: odd. An object that is not has 0.
pub fn new_mark() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    // Relaxed: the number is the only data. After 2^31 others a mark comes again.
    LAST.fetch_add(2, Relaxed) | 1
}

/// Records that the object is gone, which may have no mark.
pub fn gone(address: usize) {
    // The entry stays in its place, behind which others may lie.
    if let Some(object) = known(address) {
        object.init.store(0, Relaxed);
        object.stack.store(0, Relaxed);
    }
}

/// Two threads that do this at the same place at the same time may leave a wrong site behind: a
/// wrong name in a report.
fn note(address: usize, mark: u32, init: Init) {
    let mine = near(address).find(|object| [0, address].contains(&object.address.load(Relaxed)));
    if let Some(object) = mine.or_else(|| near(address).nth(address >> 7 & (REACH - 1))) {
        object.init.store(init.site, Relaxed);
        object.stack.store(init.stack, Relaxed);
        object.mark.store(mark, Relaxed);
        object.address.store(address, Relaxed);
    }
}

fn known(address: usize) -> Option<&'static Object> {
    near(address).find(|object| object.address.load(Relaxed) == address)
}

/// Returns where the object with this mark was initialised.
pub fn initialiser(address: usize, mark: u32) -> Init {
    let known = known(address).filter(|object| object.mark.load(Relaxed) == mark);
    known.map_or(Init::default(), |object| Init {
        site: object.init.load(Relaxed),
        stack: object.stack.load(Relaxed),
    })
}

/// Forgets the stacks after fork() in the child, whose table has others.
pub fn after_fork() {
    for object in &KNOWN {
        // Avoids stores that are not needed: most of the memory has never been touched.
        if object.stack.load(Relaxed) != 0 {
            object.stack.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_initialiser_is_known_and_old_ones_are_replaced() {
        let of = |site| Init { site, stack: 3 };
        note(0x1000, NO_ROOM, of(7));
        note(0x1000, NO_ROOM, of(8));
        assert_eq!(initialiser(0x1000, NO_ROOM), of(8));
        assert_eq!(initialiser(0x1008, NO_ROOM), Init::default());
        for address in (0x10_0000..0x80_0000).step_by(40) {
            note(address, NO_ROOM, of(address + 1));
            assert_eq!(initialiser(address, NO_ROOM), of(address + 1));
        }
    }

    /// Fails where a lock has the name of one that lay in its memory before.
    #[test]
    fn what_is_known_of_an_object_is_not_known_of_a_later_one_in_its_memory() {
        let init = Init { site: 7, stack: 3 };
        let mark = new_mark();
        note(0x2000, mark, init);
        assert_eq!(initialiser(0x2000, mark), init);
        assert_eq!(initialiser(0x2000, 0), Init::default());
        assert_ne!(new_mark(), mark);
        assert_eq!(initialiser(0x2000, NO_ROOM), Init::default());
        gone(0x2000);
        assert_eq!(initialiser(0x2000, mark), Init::default());
        note(0x2000, NO_ROOM, init);
        assert_eq!(initialiser(0x2000, 0), Init::default());
        assert_eq!(initialiser(0x2000, mark), Init::default());
    }
}
