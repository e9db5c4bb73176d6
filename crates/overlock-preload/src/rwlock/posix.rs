//! The recommended lock as `pthread_rwlock_t`: [`overlock_rw`](overlock_core::rw::overlock_rw),
//! with the errors of POSIX.

use core::ffi::c_int;

use libc::{EAGAIN, EBUSY, ETIMEDOUT};
use overlock::Linux;
use overlock_core::Deadline;
use overlock_core::raw::{RawForkRwLock, RawRwLock};
use overlock_core::rw::OverlockRw;
use overlock_core::rw::overlock_rw::Refused;

use super::{Backend, Passing};

fn errno(result: Result<(), Refused>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(Refused::Busy) => EBUSY,
        Err(Refused::Late) => ETIMEDOUT,
        Err(Refused::Full) => EAGAIN,
    }
}

impl Backend for OverlockRw<Linux> {
    fn read(&self, passing: Passing, until: Option<Deadline>) -> c_int {
        errno(self.read_passing(passing, until))
    }

    fn try_read(&self, passing: Passing) -> c_int {
        errno(self.try_read_passing(passing))
    }

    fn write(&self, until: Option<Deadline>) -> c_int {
        if self.write_within(until) {
            0
        } else {
            ETIMEDOUT
        }
    }

    fn try_write(&self) -> c_int {
        RawRwLock::try_write(self).map_or(EBUSY, |()| 0)
    }

    #[inline(always)]
    fn is_waited_for(&self) -> bool {
        self.is_contended()
    }

    #[inline]
    fn is_written(&self) -> bool {
        self.is_write_locked()
    }

    #[inline]
    fn is_read(&self) -> bool {
        self.is_locked()
    }

    #[inline]
    unsafe fn unlock_read(&self) {
        // SAFETY: the caller's promise.
        unsafe { RawRwLock::unlock_read(self, ()) };
    }

    #[inline]
    unsafe fn unlock_write(&self) {
        // SAFETY: the caller's promise.
        unsafe { RawRwLock::unlock_write(self, ()) };
    }

    unsafe fn after_fork(&self, written: bool) {
        // SAFETY: the caller's promise.
        unsafe { self.forget_waiters(written) };
    }
}
