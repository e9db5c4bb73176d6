//! Stacks that were walked through before: while a thread's stack pointer is the same, and each
//! return address of the walk is where it was, the stack is the same.
//!
//! A walk takes some ten nanoseconds for each frame, and each of its frames is looked up in the
//! table. A look at the return addresses takes one load for each. A frame is looked at after those
//! below it, and they say how large it is. So a look reads no word that a walk would not read.
//! (A frame of variable size may have left an old return address where the other was: then its
//! caller is wrong, if all else is equal.)
//!
//! A slot is a sequence lock without waiting: who finds it being written walks. The stack pointer
//! tells threads apart, so that they meet at a slot only by its hash. A writer that a signal
//! handler's jump has ended leaves its slot unused until the next fork().

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, fence};

use overlock_shared::DEPTH;

use crate::{Site, threads, unwind};

/// The number of slots: stacks of all threads at a time. Those beyond replace others.
const SLOTS: usize = 1024;

/// The number of slots in which one may be.
const WAYS: usize = 4;

/// The most return addresses of a walk, those of this library among them.
pub const MOST: usize = DEPTH + unwind::OWN_FRAMES;

/// The bits of the distance.
const DISTANCE: u32 = 16;

/// A return address above, and below it the distance in words to the one before; 0 where that is
/// not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Return(u64);

impl Return {
    /// At `bytes` above the one before.
    pub fn new(address: usize, bytes: usize) -> Self {
        let words = bytes / WORD;
        let fits = words >> DISTANCE == 0 && bytes % WORD == 0;
        let words = if fits { words as u64 } else { 0 };
        // Programs have no addresses of more bits.
        Return((address as u64) << DISTANCE | words)
    }

    pub fn address(self) -> usize {
        (self.0 >> DISTANCE) as usize
    }

    fn bytes(self) -> usize {
        (self.0 as usize & ((1 << DISTANCE) - 1)) * WORD
    }
}

const WORD: usize = size_of::<usize>();

/// The result of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub site: Site,
    /// The number of the stack.
    pub stack: u32,
}

#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    /// The process's [generation](threads) above, and below the number of writes, which is odd
    /// during one.
    version: AtomicU64,
    sp: AtomicUsize,
    /// The call's site as it was given, and as it was found.
    given: AtomicUsize,
    site: AtomicUsize,
    stack: AtomicU32,
    count: AtomicU32,
    returns: [AtomicU64; MOST],
}

static ALL: [Slot; SLOTS] = [const {
    Slot {
        version: AtomicU64::new(0),
        sp: AtomicUsize::new(0),
        given: AtomicUsize::new(0),
        site: AtomicUsize::new(0),
        stack: AtomicU32::new(0),
        count: AtomicU32::new(0),
        returns: [const { AtomicU64::new(0) }; MOST],
    }
}; SLOTS];

/// The slots in which a call's stack may be: as many callers of a wrapper that have frames of one
/// size are told apart.
fn slots(sp: usize, given: Site) -> [&'static Slot; WAYS] {
    let key = (sp ^ given.rotate_left(32)) as u64;
    let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % SLOTS;
    core::array::from_fn(|way| &ALL[first ^ way])
}

/// The part of a version that is the process's.
fn generation() -> u64 {
    u64::from(threads::generation()) << 32
}

const NUMBER: u64 = u32::MAX as u64;

/// The stack of a call, if it is known. `load` loads a word of the thread's stack, or returns
/// `None` beyond its end.
pub fn known(sp: usize, given: Site, load: impl Fn(usize) -> Option<usize>) -> Option<Found> {
    let slots = slots(sp, given).into_iter();
    slots.filter_map(|slot| slot.known(sp, given, &load)).next()
}

impl Slot {
    fn is_of(&self, sp: usize, given: Site) -> bool {
        self.sp.load(Relaxed) == sp && self.given.load(Relaxed) == given
    }

    fn known(
        &self,
        sp: usize,
        given: Site,
        load: impl Fn(usize) -> Option<usize>,
    ) -> Option<Found> {
        // Acquire: pairs with the release at the end of `write`.
        let version = self.version.load(Acquire);
        let is_whole = version & !NUMBER == generation() && version & 1 == 0;
        if !is_whole || !self.is_of(sp, given) {
            return None;
        }
        let returns = self.returns.get(..self.count.load(Relaxed) as usize)?;
        let mut at = sp;
        for word in returns {
            let known = Return(word.load(Relaxed));
            at = at.checked_add(known.bytes())?;
            if load(at) != Some(known.address()) {
                return None;
            }
        }
        let found = Found {
            site: self.site.load(Relaxed),
            stack: self.stack.load(Relaxed),
        };
        // Acquire: pairs with the release fence in `write`. If one of the loads above has seen a
        // store of a later write, the next one sees that the version is another.
        fence(Acquire);
        (self.version.load(Relaxed) == version).then_some(found)
    }

    fn write(&self, sp: usize, given: Site, returns: &[Return], found: Found) {
        // A handler may fork meanwhile: then this is of no use to the child.
        let generation = generation();
        let version = self.version.load(Relaxed);
        if version & !NUMBER == generation && version & 1 == 1 {
            return;
        }
        let writing = generation | (version | 1) & NUMBER;
        // Acquire: pairs with the release of the last writer.
        let taken = (self.version).compare_exchange(version, writing, Acquire, Relaxed);
        if taken.is_err() {
            return;
        }
        // Release: pairs with the acquire fence in `known`.
        fence(Release);
        self.sp.store(sp, Relaxed);
        self.given.store(given, Relaxed);
        self.site.store(found.site, Relaxed);
        self.stack.store(found.stack, Relaxed);
        self.count.store(returns.len() as u32, Relaxed);
        for (word, known) in self.returns.iter().zip(returns) {
            word.store(known.0, Relaxed);
        }
        // Release: pairs with the acquire in `known`.
        let written = generation | writing.wrapping_add(1) & NUMBER;
        self.version.store(written, Release);
    }
}

/// Keeps what a walk has found, if it says where each return address is.
pub fn keep(sp: usize, given: Site, returns: &[Return], found: Found) {
    if returns.len() > MOST || returns.iter().any(|known| known.bytes() == 0) {
        return;
    }
    let slots = slots(sp, given);
    // The one that was written less often than the others: each has one in the end.
    let least = slots
        .into_iter()
        .min_by_key(|slot| slot.version.load(Relaxed));
    if let Some(slot) = least {
        slot.write(sp, given, returns, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack of which the words at these places are return addresses.
    fn load(stack: &[usize], at: usize) -> Option<usize> {
        stack.get((at - 0x1000) / 8).copied()
    }

    #[test]
    fn a_stack_is_known_while_its_return_addresses_are_the_same() {
        let found = Found { site: 7, stack: 3 };
        let mut stack = [0, 7, 0, 0, 8, 9];
        let returns = [(7, 8), (8, 24), (9, 8)];
        let returns = returns.map(|(address, bytes)| Return::new(address, bytes));
        let of = |stack: &[usize]| known(0x1000, 7, |at| load(stack, at));
        assert_eq!(of(&stack), None);
        keep(0x1000, 7, &returns, found);
        assert_eq!(of(&stack), Some(found));
        assert_eq!(known(0x1000, 8, |at| load(&stack, at)), None);
        // It ends before.
        assert_eq!(of(&stack[..5]), None);
        stack[5] = 10;
        assert_eq!(of(&stack), None);
    }

    #[test]
    fn a_frame_that_differs_is_the_last_that_is_looked_at() {
        let returns = [(7, 8), (8, 8)];
        let returns = returns.map(|(address, bytes)| Return::new(address, bytes));
        keep(0x2000, 7, &returns, Found { site: 7, stack: 3 });
        let load = |at| match at {
            0x2008 => Some(6),
            _ => unreachable!("it is behind a frame that is another's"),
        };
        assert_eq!(known(0x2000, 7, load), None);
    }

    #[test]
    fn callers_with_equal_frames_have_a_slot_each() {
        let found = |address| Found {
            site: 7,
            stack: address as u32,
        };
        let addresses = [20, 21, 22, 23];
        for address in addresses {
            keep(0x4000, 7, &[Return::new(address, 8)], found(address));
        }
        for address in addresses {
            assert_eq!(known(0x4000, 7, |_| Some(address)), Some(found(address)));
        }
    }

    #[test]
    fn a_walk_with_a_distance_that_does_not_fit_is_not_kept() {
        for bytes in [0, 12, 8 << 16, 0_usize.wrapping_sub(8)] {
            let odd = Return::new(7, bytes);
            assert_eq!((odd.address(), odd.bytes()), (7, 0));
            keep(0x3000, 7, &[odd], Found { site: 7, stack: 3 });
            assert_eq!(known(0x3000, 7, |_| Some(7)), None);
        }
        let most = Return::new((1 << 48) - 1, 8 * 0xffff);
        assert_eq!((most.address(), most.bytes()), ((1 << 48) - 1, 8 * 0xffff));
    }
}
