//! The kernel's reader-writer semaphore as `pthread_rwlock_t`, for comparison.
//!
//! Unlike the recommended lock, it may be accessed by an unlock after a later owner has released
//! it. So it must not be freed before all calls have returned. POSIX lets a program free a lock as
//! soon as its last owner may; such a program needs another lock.

use core::ffi::c_int;
use core::sync::atomic::AtomicU32;

use libc::{EBUSY, ETIMEDOUT};
use overlock::Linux;
use overlock_core::raw::{RawForkRwLock, RawRwLock, RawTimedRwLock};
use overlock_core::sleep::RwSem;
use overlock_core::{Deadline, Platform};

use super::{BARGE_DELAY_NS, Backend, Passing};

/// Backoff sleep between two attempts to barge.
const BACKOFF_SLEEP_NS: u64 = 50_000;

/// Acquires a share ahead of waiters, with retries until `until`. Returns 0 or `ETIMEDOUT`.
fn read_barging(lock: &RwSem<Linux>, until: Option<Deadline>) -> c_int {
    while !lock.try_read_along() {
        if until.is_some_and(Deadline::is_over::<Linux>) {
            return ETIMEDOUT;
        }
        let never_kicked = AtomicU32::new(0);
        let end = Deadline::earlier::<Linux>(until, Linux::now().plus_nanos(BACKOFF_SLEEP_NS));
        Linux::halt(&never_kicked, 0, Some(end.into()));
    }
    0
}

fn read_within(lock: &RwSem<Linux>, until: Option<Deadline>) -> bool {
    match until {
        None => {
            RawRwLock::read(lock);
            true
        }
        Some(until) => lock.read_until(until).is_some(),
    }
}

impl Backend for RwSem<Linux> {
    fn read(&self, passing: Passing, until: Option<Deadline>) -> c_int {
        let limit = match passing {
            Passing::AtOnce => return read_barging(self, until),
            Passing::Later => {
                let end = Linux::now().plus_nanos(BARGE_DELAY_NS);
                Some(Deadline::earlier::<Linux>(until, end).into())
            }
            Passing::Never => until,
        };
        match (read_within(self, limit), passing) {
            (true, _) => 0,
            (_, Passing::Never) => ETIMEDOUT,
            _ => read_barging(self, until),
        }
    }

    fn try_read(&self, passing: Passing) -> c_int {
        let taken = match passing {
            Passing::Never => RawRwLock::try_read(self).is_some(),
            _ => self.try_read_along(),
        };
        if taken { 0 } else { EBUSY }
    }

    fn write(&self, until: Option<Deadline>) -> c_int {
        let taken = match until {
            None => {
                RawRwLock::write(self);
                true
            }
            Some(until) => self.write_until(until).is_some(),
        };
        if taken { 0 } else { ETIMEDOUT }
    }

    fn try_write(&self) -> c_int {
        RawRwLock::try_write(self).map_or(EBUSY, |()| 0)
    }

    fn is_waited_for(&self) -> bool {
        self.is_contended()
    }

    fn is_written(&self) -> bool {
        self.is_write_locked()
    }

    fn is_read(&self) -> bool {
        self.is_locked() && !self.is_write_locked()
    }

    unsafe fn unlock_read(&self) {
        // SAFETY: the caller's promise.
        unsafe { RawRwLock::unlock_read(self, ()) };
    }

    unsafe fn unlock_write(&self) {
        // SAFETY: the caller's promise.
        unsafe { RawRwLock::unlock_write(self, ()) };
    }

    unsafe fn after_fork(&self, written: bool) {
        // SAFETY: the caller's promise.
        unsafe { self.forget_waiters(written) };
    }
}
