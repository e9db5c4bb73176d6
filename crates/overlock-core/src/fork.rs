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

/// After fork() in the child: clears the slots of threads that exist only in the parent, and their
/// entries in the platform's tables. `mine` is the slot of the calling thread, which keeps its
/// contents. Calls `free` with each other slot that a new thread may have. A slot stays in use if
/// its thread was in the middle of acquiring a [fast queue lock](crate::spin::fast_queue), which
/// still names its ticket.
///
/// Does not allocate, does not block, and is safe in the child of a process with several threads.
/// The tickets of fast queue locks and the ids of biased locks need nothing: their counters are as
/// they were. At most a ticket that was just changing its holder is lost.
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
    let tables = P::tables();
    for (index, slot) in tables.slots.iter().take(P::slots_in_use()).enumerate() {
        if mine == Some(index) {
            slot.reading.forget_writers();
        } else if slot.forget_nodes() {
            free(index);
        }
    }
    tables.waiters.iter().for_each(|line| line.forget());
    tables.lock_hash.iter().for_each(|line| line.forget());
}

#[cfg(test)]
mod tests;
