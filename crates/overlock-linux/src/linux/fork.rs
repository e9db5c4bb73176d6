//! After fork() in the child: remove from the tables what other threads left there.

#[cfg(not(feature = "family"))]
use overlock_core::fork::forget_others;
#[cfg(feature = "family")]
use overlock_family::fork::forget_others;

use super::{Linux, extras, jump, slot, spin};

impl Linux {
    /// Makes the tables of this platform those of a process with one thread: slots, nodes, and the
    /// entries of sleepers. A child of fork calls it before it uses any lock of this crate that has
    /// waiters: in the child's handler of `pthread_atfork`.
    ///
    /// Each lock that another thread may have waited for at the moment of the fork needs
    /// [`RawFork::forget_waiters`](overlock_core::raw::RawFork::forget_waiters) after this, before
    /// it is used again. The calling thread still holds its locks. An `RtMutex` needs neither.
    ///
    /// Allocates nothing, makes no system call, takes no lock, and may be called in the child of a
    /// process with several threads. Its duration grows with the highest number of threads that the
    /// process has had, and is about that of a fork.
    ///
    /// # Safety
    ///
    /// As for [`forget_others`]: the process is a child of fork that has created no thread yet, and
    /// the fork was not called by a signal handler that interrupted a call of this crate. A lock
    /// that keeps waiters, has no `forget_waiters`, and had waiters at the fork is not used again.
    pub unsafe fn after_fork() {
        extras::forget_others();
        spin::forget();
        jump::forget();
        // SAFETY: the caller's promise.
        unsafe { forget_others::<Linux>(slot::mine(), slot::give_anew) }
    }
}
