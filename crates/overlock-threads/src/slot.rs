//! The queue slots of threads.
//!
//! A thread takes the lowest free slot when it first needs one. The destructor of a thread-local
//! value gives it back. A lock that a later destructor takes finds no slot, and does without.

use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, AtomicU64};

use overlock_core::Platform;
use overlock_core::node::Bitmap;

use super::Threads;

/// As many threads have a slot at a time. Further ones do without.
pub(crate) const SLOTS: usize = if cfg!(miri) { 64 } else { 1024 };

/// The slots that are taken, a bit each.
static TAKEN: [AtomicU64; SLOTS / 64] = [const { AtomicU64::new(0) }; SLOTS / 64];

/// One more than the highest slot that a thread has ever had.
static EVER: AtomicU32 = AtomicU32::new(0);

/// The thread's slot, until the destructor has run.
struct Mine(Cell<Option<usize>>);

impl Drop for Mine {
    fn drop(&mut self) {
        let Some(slot) = self.0.take() else {
            return;
        };
        // A forgotten guard still uses a node of the slot: no other thread may ever get it.
        if Threads::tables().is_idle(slot) {
            Bitmap(&TAKEN).give(slot);
        }
    }
}

thread_local! {
    static MINE: Mine = const { Mine(Cell::new(None)) };
}

/// Returns the calling thread's slot, and takes one if it has none. `None` if all are taken, and at
/// the end of the thread.
#[inline]
pub(crate) fn current() -> Option<usize> {
    let known = MINE.try_with(|mine| mine.0.get()).ok()?;
    known.or_else(take)
}

#[cold]
fn take() -> Option<usize> {
    let slot = Bitmap(&TAKEN).take(SLOTS)?;
    // SeqCst: before all uses of the slot, pairs with `in_use`.
    EVER.fetch_max(slot as u32 + 1, SeqCst);
    MINE.with(|mine| mine.0.set(Some(slot)));
    Some(slot)
}

/// See [`Platform::slots_in_use`].
#[inline]
pub(crate) fn in_use() -> usize {
    // SeqCst: pairs with `take`.
    EVER.load(SeqCst) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn threads_that_live_together_have_different_slots_and_those_that_follow_share_one() {
        const FOLLOWERS: usize = 40;
        let mine = current().unwrap();
        assert_eq!(current(), Some(mine));
        let follow = || std::thread::spawn(|| current().unwrap()).join().unwrap();
        let seen: BTreeSet<usize> = (0..FOLLOWERS).map(|_| follow()).collect();
        assert!(!seen.contains(&mine));
        // Other tests run meanwhile and take slots too, so not exactly one.
        assert!(seen.len() < FOLLOWERS / 2, "{seen:?}");
        assert!(in_use() > *seen.last().unwrap());
    }
}
