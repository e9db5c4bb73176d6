//! After fork(): a child process has one thread, and the memory of all.
//!
//! Threads that exist only in the parent leave state in two places in the child. One is the
//! platform's tables, which [`forget_others`] cleans up as soon as the child runs. The other is the
//! locks, which lie anywhere in the program's memory, without a list of them. Each lock for which a
//! thread may have waited is cleaned up by its own
//! [`forget_waiters`](crate::raw::RawFork::forget_waiters), at any time before it is used.
//!
//! That includes a lock without waiters whose wait lock another thread held at the fork. A lock
//! that no other thread used at that moment needs nothing.

use crate::platform::Platform;

/// After fork() in the child: clears the slots of threads that exist only in the parent. `mine` is
/// the slot of the calling thread, which keeps its contents. Calls `free` with each other slot,
/// which a new thread may have.
///
/// Does not allocate, does not block, and is safe in the child of a process with several threads.
/// The numbers of locks need nothing: their count is as it was.
///
/// # Safety
///
/// No other thread of the process exists. The calling one is not in a call of this crate that a
/// signal handler has interrupted.
///
/// Consider the locks, condition variables, semaphores and barriers for which threads waited at the
/// moment of the fork. Each that can forget its waiters does so before it is used again. The others
/// are never used again.
pub unsafe fn forget_others<P: Platform>(mine: Option<usize>, mut free: impl FnMut(usize)) {
    let slots = P::tables().first(P::slots_in_use());
    for (index, slot) in slots.enumerate() {
        if mine == Some(index) {
            slot.entries.forget_waiters();
        } else {
            slot.forget();
            free(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering::Relaxed;
    use std::vec::Vec;

    use super::*;
    use crate::node::NodeGuard;
    use crate::slot::Slot;
    use crate::toy::{SLOTS, Toy, as_thread};

    /// `forget_others` keeps the caller's slot.
    #[test]
    fn slots_of_others_are_free_and_the_callers_keeps_what_it_holds() {
        let slots: Vec<_> = Toy::tables().first(SLOTS).collect();
        for (index, slot) in slots.iter().enumerate() {
            slot.entries.0[0].holds.store(7, Relaxed);
            slot.entries.0[0].waited.store(1, Relaxed);
            if index != 0 {
                as_thread(index, || core::mem::forget(NodeGuard::<Toy>::new()));
            }
        }
        let mut free = Vec::new();
        // SAFETY: there are no other threads.
        unsafe { forget_others::<Toy>(Some(0), |slot| free.push(slot)) };
        assert_eq!(free, (1..SLOTS).collect::<Vec<_>>());
        assert!(slots[1..].iter().all(|slot| slot.is_idle()));
        let holds = slots[0].entries.0[0].holds.load(Relaxed);
        assert_eq!(holds, 7, "the caller still reads");
        assert!(!slots[0].is_idle());
        // In the caller's slot, too: else each of its releases would kick, for no waiter.
        let waited = |slot: &Slot<Toy>| slot.entries.0[0].waited.load(Relaxed);
        assert!(slots.into_iter().all(|slot| waited(slot) == 0));
    }
}
