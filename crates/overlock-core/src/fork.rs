//! After a fork: a child process has one thread, and the memory of all.
//!
//! What a thread leaves behind that is not in the child lies in two places. The tables of the
//! platform are put in order by [`forget_others`], as soon as the child runs. Locks lie wherever
//! the program has put them, and nobody has a list of them: each that somebody may have waited for
//! is put in order by its own [`forget_waiters`](crate::raw::RawFork::forget_waiters), at any time
//! before it is used.
//!
//! That includes what only *looks* busy: a lock whose guard a thread had at that moment. A lock
//! that nobody had a part in needs nothing.

use crate::platform::Platform;

/// Puts the platform's tables in order in a child of fork: the slots of threads that are gone, and
/// what they entered. `mine` is the slot of the calling thread, which keeps what it holds. `given`
/// is told of each other slot that may be given to a new thread now; not of those whose thread
/// was in the middle of acquiring a [fast queue lock](crate::spin::fast_queue): that lock still
/// names its ticket.
///
/// Allocates nothing, waits for nothing, and is safe in the child of a process with several
/// threads. Tickets of fast queue locks need nothing, nor do ids of biased locks: their counters
/// are as they were, and at most a ticket that was on its way is lost.
///
/// # Safety
///
/// No other thread of the process exists. The calling one is not in a call of this crate that a
/// signal handler has interrupted. Of the locks, condition variables, semaphores and barriers that
/// threads waited for at the moment of the fork, those that have a way to forget their waiters are
/// made to before they are used again, and the others are never used again.
pub unsafe fn forget_others<P: Platform>(mine: Option<usize>, mut given: impl FnMut(usize)) {
    let tables = P::tables();
    for (index, slot) in tables.slots[..P::slots_in_use()].iter().enumerate() {
        if mine == Some(index) {
            slot.reading.forget_writers();
        } else if slot.forget_nodes() {
            given(index);
        }
    }
    tables.waiters.iter().for_each(|line| line.forget());
    tables.lock_hash.iter().for_each(|line| line.forget());
}

#[cfg(test)]
mod tests;
