//! In a child of fork: what the threads that it does not have left in the tables.

use overlock_core::fork::forget_others;

use super::{Linux, extras, slot};

impl Linux {
    /// Makes the tables of this platform those of a process with one thread: slots, nodes, and
    /// whatever was entered for a sleeper. To be called in a child of a fork, before it uses
    /// any lock of this crate that has waiters: by the child's handler of `pthread_atfork`.
    ///
    /// Locks and the like that somebody may have waited for at the moment of the fork need
    /// [`RawFork::forget_waiters`](overlock_core::raw::RawFork::forget_waiters) each, after this,
    /// before they are used again. The locks that the calling thread holds are its own still.
    /// An `RtMutex` needs neither.
    ///
    /// Allocates nothing, calls nothing, takes no lock, and may be called in the child of a process
    /// with several threads. How long it takes grows with the number of threads that the
    /// process has had at a time, and is about what a fork takes.
    ///
    /// # Safety
    ///
    /// As for [`forget_others`]: the process is a child of fork that has created no thread yet, and
    /// the fork was not called by a signal handler that interrupted a call of this crate. Those
    /// locks that keep waiters and have no `forget_waiters` are not used again where somebody
    /// waited for them.
    pub unsafe fn after_fork() {
        extras::forget_others();
        // SAFETY: the caller's promise.
        unsafe { forget_others::<Linux>(slot::mine(), slot::give_anew) }
    }
}
