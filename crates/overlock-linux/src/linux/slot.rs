//! The queue slots of threads.
//!
//! A thread takes the lowest free slot when it first needs one and gives it back when it exits.
//! Taking one is lock-free and allocates nothing, so it may happen in a signal handler: a
//! constant-initialised thread-local, a bitmap, and a POSIX thread-specific key. The key is created
//! at load, before the program's own, as glibc keeps the values of the first 32 keys of a process
//! in the thread itself. (A library that is loaded later may get a later one: then glibc allocates
//! when a thread takes its slot.)
//!
//! If the process has no key left, or no memory for its value, a slot stays taken when its thread
//! has gone. The first slots are in place; for the others memory is mapped when threads need them,
//! up to the kernel's limit of threads. A thread for whose slot there is none does without.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

use overlock_core::Platform;
use overlock_core::node::{Bitmap, MOST_SLOTS};
use overlock_core::tables::CHUNK;

use super::exit_key::ExitKey;
use super::mapped::{self, Growing};
use super::{CHUNKS, Linux, jump};

/// The slots in place: as many as most programs have threads.
pub const FIRST: usize = if cfg!(miri) { 64 } else { 256 };

/// The slots of each word's bits.
const BITS: usize = 64;
/// The words that are mapped at a time: 32 KiB.
const WORDS: usize = 4096;

/// The slots that are taken, a bit each.
static TAKEN: Growing<AtomicU64, { FIRST / BITS }, WORDS, { MOST_SLOTS / BITS / WORDS }> =
    Growing::new([const { AtomicU64::new(0) }; FIRST / BITS]);

/// The word with the bit of a slot, which is there for one that has been taken.
fn word(slot: usize) -> Option<&'static AtomicU64> {
    TAKEN.get(slot / BITS)
}

/// Marks the lowest free slot as taken.
fn claim() -> Option<usize> {
    for (first, words) in TAKEN.parts() {
        if let Some(bit) = Bitmap(words).take(words.len() * BITS) {
            return Some(first * BITS + bit);
        }
        if cfg!(miri) {
            break; // Miri's tables do not grow
        }
    }
    None
}

/// Marks a slot as free. A release: its last owner's accesses lie before.
fn unclaim(slot: usize) {
    if let Some(word) = word(slot) {
        Bitmap(core::slice::from_ref(word)).give(slot % BITS);
    }
}

/// Gives slots back at the end of threads.
static KEY: ExitKey = ExitKey::new(give);

/// One more than the highest slot that a thread has ever had: the search for slots in use begins
/// there.
static EVER: AtomicU32 = AtomicU32::new(0);

/// See [`Platform::slots_in_use`](overlock_core::Platform::slots_in_use): one more than the highest
/// taken slot. It falls when the threads at the top have exited. The search costs one load for 64
/// slots of those ever used.
///
/// Why no thread is missed: a thread sets its bit, then raises `EVER`, then uses its slot. If this
/// search comes after that use in the SC order, its load finds that rise or a later one. All
/// changes of `EVER` are read-modify-writes, so the load acquires the rise. The load of the bits
/// then finds the thread's bit: set, or cleared by its exit.
///
/// Why no slot is skipped too soon: a bit is cleared when its thread has left the slot for good, a
/// release that the search acquires. So a search that skips the slot sees everything that the
/// thread did.
pub(super) fn in_use() -> usize {
    // SeqCst: pairs with `take`. The canceller of a token and a waiter with a new slot meet in four
    // SeqCst accesses (`CancelToken::cancel`); the first load of the slots must not come before
    // them.
    let words = (EVER.load(SeqCst) as usize).div_ceil(BITS);
    for index in (0..words).rev() {
        // Acquire: pairs with `Bitmap::give`.
        let bits = TAKEN.get(index).map_or(0, |bits| bits.load(Acquire));
        if bits != 0 {
            return (index + 1) * BITS - bits.leading_zeros() as usize;
        }
    }
    0
}

thread_local! {
    /// This thread's slot + 1; 0 for none.
    static MINE: Cell<u32> = const { Cell::new(0) };
}

/// Returns the calling thread's slot, and takes one if it has none; `None` if all are taken.
#[inline]
pub(super) fn current() -> Option<usize> {
    match MINE.get() {
        0 => take(),
        slot => Some(slot as usize - 1),
    }
}

/// Returns the calling thread's slot.
pub(super) fn mine() -> Option<usize> {
    (MINE.get() as usize).checked_sub(1)
}

/// Gives the calling thread another slot. The old one, whose nodes are in use, is never given back.
#[cold]
pub(super) fn another() -> Option<usize> {
    let old = MINE.replace(0);
    let new = take();
    if new.is_none() {
        MINE.set(old);
    }
    new
}

/// After fork() in the child: frees the slot of a thread that exists only in the parent.
pub(super) fn give_anew(slot: usize) {
    // It may be free already: never taken, or its thread could not give it back.
    if let Some(word) = word(slot) {
        word.fetch_and(!(1 << (slot % BITS)), Relaxed);
    }
}

/// The slots for which memory is mapped before a process gives up `mmap`.
pub const RESERVED: usize = 1 << 14;

/// Maps memory for the threads of a process that is about to make no such system call any more. A
/// page of it takes no memory until a thread needs it. Further threads
/// have no slot.
pub(super) fn reserve() {
    if cfg!(miri) {
        return; // as in `claim`
    }
    TAKEN.reserve(RESERVED / BITS);
    for slot in (0..RESERVED).step_by(CHUNK) {
        // SAFETY: as in `take`.
        mapped::map(unsafe { CHUNKS.place(slot) });
    }
}

/// Creates the key.
pub(super) fn register() {
    KEY.get(|| ());
}

#[cold]
fn take() -> Option<usize> {
    let slot = claim()?;
    // SAFETY: `map` stores nothing but the address of new zero bytes, once, by a release.
    if slot >= FIRST && mapped::map(unsafe { CHUNKS.place(slot) }).is_none() {
        unclaim(slot);
        return None;
    }
    // A handler that has interrupted this may have taken a slot already. (If it interrupts between
    // this load and the store below, a slot is lost until the process ends, no more.)
    if MINE.get() != 0 {
        unclaim(slot);
        return current();
    }
    // SeqCst: before all uses of the slot, pairs with `in_use`.
    EVER.fetch_max(slot as u32 + 1, SeqCst);
    MINE.set(slot as u32 + 1);
    // If this is refused, the slot is never given back.
    KEY.set(slot + 1, || ());
    Some(slot)
}

/// Runs when a thread exits. Destructors that run later and take a lock take a slot anew, and this
/// runs again for it. The key's value does not count: see [`ExitKey`].
unsafe extern "C" fn give(_: *mut c_void) {
    // The thread may have ended in a wait.
    jump::jump_out();
    let Some(slot) = mine() else {
        return;
    };
    MINE.set(0);
    // A forgotten guard still uses a node of the slot: no other thread may ever get it.
    if Linux::tables().is_idle(slot) {
        unclaim(slot);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn threads_that_live_together_have_different_slots_and_those_that_follow_share_one() {
        const FOLLOWERS: usize = if cfg!(miri) { 20 } else { 200 };
        let mine = current().unwrap();
        assert_eq!(current(), Some(mine));
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..FOLLOWERS {
            let slot = std::thread::spawn(|| current().unwrap()).join().unwrap();
            assert_ne!(slot, mine);
            seen.insert(slot);
        }
        // Other tests run meanwhile and take slots too, so not exactly one.
        assert!(seen.len() < FOLLOWERS / 2, "{seen:?}");
    }

    /// Fails where it is one more than the highest slot ever taken. (Other tests run meanwhile, and
    /// take the lowest free slots, for a while.)
    #[test]
    fn slots_of_threads_that_are_gone_are_not_in_use() {
        const MANY: usize = if cfg!(miri) { 20 } else { 150 };
        let all = Barrier::new(MANY + 1);
        let highest = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..MANY)
                .map(|_| {
                    scope.spawn(|| {
                        let slot = current().unwrap();
                        all.wait();
                        slot
                    })
                })
                .collect();
            all.wait();
            let slots = threads.into_iter().map(|thread| thread.join().unwrap());
            slots.max().unwrap()
        });
        assert!(highest + 1 >= MANY);
        assert!(EVER.load(Relaxed) as usize > highest);
        for _ in 0..10_000 {
            if in_use() <= highest {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("{} slots in use, and {highest} is not", in_use());
    }

    /// The assumption of `CancelToken::cancel`. A waiter takes its slot, publishes its token, and
    /// loads the token's flag; the canceller sets the flag, and scans the slots in use. One of the
    /// two sees the other. With Relaxed accesses to `EVER`, Miri finds a canceller that misses a
    /// new slot; x86 does not show it.
    #[test]
    fn a_scan_of_the_slots_finds_a_new_one_or_is_seen_by_its_thread() {
        const ROUNDS: usize = 12;
        let flags: [AtomicU32; ROUNDS] = [const { AtomicU32::new(0) }; ROUNDS];
        // All stay until the end, so that each takes a slot that nobody has had.
        let end = Barrier::new(ROUNDS + 1);
        std::thread::scope(|scope| {
            let rounds: Vec<_> = flags
                .iter()
                .map(|flag| {
                    let waiter = scope.spawn(|| {
                        let slot = current().unwrap();
                        let seen = flag.load(SeqCst) != 0;
                        end.wait();
                        (slot, seen)
                    });
                    (0..10).for_each(|_| std::thread::yield_now());
                    flag.store(1, SeqCst);
                    (waiter, in_use())
                })
                .collect();
            end.wait();
            for (waiter, in_use) in rounds {
                let (slot, seen) = waiter.join().unwrap();
                assert!(seen || slot < in_use, "slot {slot} of {in_use}");
            }
        });
    }
}
