//! Deadlines as callers give them.

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, EINVAL, c_int, clockid_t, timespec};
use overlock::Linux;
use overlock::core::{Instant, Platform};

const SECOND: i64 = 1_000_000_000;

/// A moment of a clock as one of the platform's. Changes of the clock's time that come later have
/// no effect.
///
/// # Errors
///
/// `EINVAL` where the clock is not one of the two that POSIX and glibc know here, or the
/// nanoseconds are not below a second.
// By itself: what it takes of the stack is free again when the wait begins.
#[inline(never)]
pub fn deadline(clock: clockid_t, at: &timespec) -> Result<Instant, c_int> {
    if !(0..SECOND).contains(&at.tv_nsec) {
        return Err(EINVAL);
    }
    let at = at.tv_sec.saturating_mul(SECOND).saturating_add(at.tv_nsec);
    match clock {
        CLOCK_MONOTONIC => Ok(Instant::from_nanos(at.max(0) as u64)),
        CLOCK_REALTIME => {
            let mut now = timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // SAFETY: `now` is valid for the write, and the clock exists.
            unsafe { libc::clock_gettime(CLOCK_REALTIME, &mut now) };
            let real = now
                .tv_sec
                .saturating_mul(SECOND)
                .saturating_add(now.tv_nsec);
            // The platform's clock second: the result is never early.
            let now = Linux::now().as_nanos();
            let left = at.saturating_sub(real);
            Ok(Instant::from_nanos(now.saturating_add_signed(left)))
        }
        _ => Err(EINVAL),
    }
}

/// `end`, or `limit` where that comes before.
pub fn earlier(limit: Option<Instant>, end: Instant) -> Instant {
    limit.map_or(end, |limit| limit.min(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tv_sec: i64, tv_nsec: i64) -> timespec {
        timespec { tv_sec, tv_nsec }
    }

    #[test]
    fn a_moment_of_either_clock_is_one_of_ours() {
        let soon = deadline(CLOCK_MONOTONIC, &at(3, 5)).unwrap();
        assert_eq!(soon.as_nanos(), 3_000_000_005);
        assert_eq!(deadline(CLOCK_MONOTONIC, &at(-1, 0)).unwrap().as_nanos(), 0);
        let mut real = at(0, 0);
        // SAFETY: as above.
        unsafe { libc::clock_gettime(CLOCK_REALTIME, &mut real) };
        real.tv_sec += 10;
        let ten = deadline(CLOCK_REALTIME, &real)
            .unwrap()
            .nanos_since(Linux::now());
        assert!((9_000_000_000..=10_000_000_000).contains(&ten), "{ten}");
        assert_eq!(deadline(CLOCK_REALTIME, &at(0, 0)).unwrap().as_nanos(), 0);
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for nsec in [-1, 1_000_000_000] {
            assert_eq!(deadline(CLOCK_REALTIME, &at(1, nsec)), Err(EINVAL));
        }
        assert_eq!(
            deadline(libc::CLOCK_PROCESS_CPUTIME_ID, &at(1, 0)),
            Err(EINVAL)
        );
    }
}
