//! Acquisitions of the recommended lock, [`overlock_rw`](overlock_core::rw::overlock_rw), with the
//! errors of POSIX: results are 0 or an errno.

use core::ffi::c_int;

use libc::{EAGAIN, EBUSY, ETIMEDOUT};
use overlock_core::Deadline;
use overlock_core::raw::RawRwLock;
use overlock_core::rw::overlock_rw::Refused;

use super::{Passing, RwLock};

fn errno(result: Result<(), Refused>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(Refused::Busy) => EBUSY,
        Err(Refused::Late) => ETIMEDOUT,
        Err(Refused::Full) => EAGAIN,
    }
}

impl RwLock {
    pub(super) fn take_share(&self, passing: Passing, until: Option<Deadline>) -> c_int {
        errno(self.recommended().read_passing(passing, until))
    }

    pub(super) fn try_take_share(&self, passing: Passing) -> c_int {
        errno(self.recommended().try_read_passing(passing))
    }

    pub(super) fn take(&self, until: Option<Deadline>) -> c_int {
        match self.recommended().write_within(until) {
            true => 0,
            false => ETIMEDOUT,
        }
    }

    pub(super) fn try_take(&self) -> c_int {
        self.recommended().try_write().map_or(EBUSY, |()| 0)
    }
}
