//! Deadlines as callers give them: moments of `CLOCK_MONOTONIC`, which is the platform's clock.

use core::ffi::c_int;

use libc::{EINVAL, timespec};
use overlock_core::Instant;

const SECOND: u64 = 1_000_000_000;

/// Returns the moment that `at` points to; one before the clock's start becomes its start.
///
/// # Errors
///
/// `EINVAL` if `at` is null, or the nanoseconds are not below a second.
///
/// # Safety
///
/// `at` is null or valid for reads.
pub unsafe fn deadline(at: *const timespec) -> Result<Instant, c_int> {
    // SAFETY: the caller's promise.
    let at = unsafe { at.as_ref() }.ok_or(EINVAL)?;
    let nanos = u64::try_from(at.tv_nsec).map_err(|_| EINVAL)?;
    if nanos >= SECOND {
        return Err(EINVAL);
    }
    Ok(Instant::from_nanos(match u64::try_from(at.tv_sec) {
        Ok(seconds) => seconds.saturating_mul(SECOND).saturating_add(nanos),
        Err(_) => 0,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(tv_sec: i64, tv_nsec: i64) -> Result<u64, c_int> {
        let at = timespec { tv_sec, tv_nsec };
        // SAFETY: a reference.
        unsafe { deadline(&at) }.map(Instant::as_nanos)
    }

    #[test]
    fn moments_are_nanoseconds_and_do_not_wrap() {
        assert_eq!(nanos(3, 5), Ok(3_000_000_005));
        assert_eq!(nanos(-1, 999_999_999), Ok(0));
        assert_eq!(nanos(i64::MAX, 999_999_999), Ok(u64::MAX));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        assert_eq!(nanos(1, -1), Err(EINVAL));
        assert_eq!(nanos(1, 1_000_000_000), Err(EINVAL));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { deadline(core::ptr::null()) }, Err(EINVAL));
    }
}
