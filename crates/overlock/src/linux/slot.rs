//! Which queue slot belongs to which thread.
//!
//! A thread takes the lowest free slot when it first needs one and gives it back when it exits. Taking one is
//! lock-free and allocates nothing, so it may happen in a signal handler: a constant-initialised
//! thread-local, a bitmap, and a POSIX thread-specific key, whose value glibc and musl keep
//! in the thread itself for the first 32 keys of a process (programs with more
//! should take a contended lock once before they rely on handlers that take locks).

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

use overlock_core::node::Bitmap;

use super::exit_key::ExitKey;
use super::{SLOTS, THREADS};

static TAKEN: [AtomicU64; THREADS.div_ceil(64)] =
    [const { AtomicU64::new(0) }; THREADS.div_ceil(64)];

/// Has slots given back.
static KEY: ExitKey = ExitKey::new(give);

/// One more than the highest slot that a thread has ever had.
static IN_USE: AtomicU32 = AtomicU32::new(0);

/// See [`Platform::slots_in_use`](overlock_core::Platform::slots_in_use).
pub(super) fn in_use() -> usize {
    // SeqCst: pairs with `take`. The canceller of a token and a waiter with a new slot meet in four sequentially consistent accesses
    // (`CancelToken::cancel`); the first look at the slots must not come before them.
    IN_USE.load(SeqCst) as usize
}

thread_local! {
    /// This thread's slot + 1; 0 for none.
    static MINE: Cell<u32> = const { Cell::new(0) };
}

/// The calling thread's slot, taken now if it has none; `None` where all are taken.
#[inline]
pub(super) fn current() -> Option<usize> {
    match MINE.get() {
        0 => take(),
        slot => Some(slot as usize - 1),
    }
}

/// The slot that the calling thread has.
pub(super) fn mine() -> Option<usize> {
    (MINE.get() as usize).checked_sub(1)
}

/// The thread that had `slot` has gone without [giving it back](give): by a fork.
pub(super) fn give_anew(slot: usize) {
    // One that its thread could not give back, or that nobody has taken, may be free already.
    TAKEN[slot / 64].fetch_and(!(1 << (slot % 64)), Relaxed);
}

#[cold]
fn take() -> Option<usize> {
    // Before there is a slot to give back.
    KEY.get(|| ())?;
    super::rseq::find();
    let slot = Bitmap(&TAKEN).take(THREADS)?;
    // A handler that has interrupted this may have taken a slot already. (One that comes between
    // this look and the store below costs a slot until the process ends, no more.)
    if MINE.get() != 0 {
        Bitmap(&TAKEN).give(slot);
        return current();
    }
    // SeqCst: before whatever the thread does with the slot, pairs with `in_use`.
    IN_USE.fetch_max(slot as u32 + 1, SeqCst);
    MINE.set(slot as u32 + 1);
    if !KEY.set(slot + 1, || ()) {
        // Out of memory: the slot could never be given back.
        MINE.set(0);
        Bitmap(&TAKEN).give(slot);
        return None;
    }
    Some(slot)
}

/// Runs when a thread exits. Destructors that run later and take a lock take a slot anew, and this
/// runs again for it.
unsafe extern "C" fn give(slot: *mut c_void) {
    let slot = slot.addr() - 1;
    SLOTS[slot].settle();
    MINE.set(0);
    // A forgotten guard still uses a node of the slot: nobody may ever get it.
    if SLOTS[slot].is_idle() {
        Bitmap(&TAKEN).give(slot);
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

    /// What `CancelToken::cancel` rests on. A waiter takes its slot, says what it waits for, and looks at the token's flag; the
    /// canceller sets the flag, and looks through the slots in use. One of the two sees the other. Where the accesses to
    /// `IN_USE` are Relaxed, Miri finds a canceller that misses a new slot; x86 does not show it.
    #[test]
    fn who_looks_through_the_slots_finds_a_new_one_or_is_seen_by_its_thread() {
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
