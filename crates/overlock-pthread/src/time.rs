//! Deadlines as callers give them.

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, EINVAL, c_int, clockid_t, timespec};
use overlock::Linux;
use overlock::core::{Instant, Platform};

const SECOND: i128 = 1_000_000_000;

/// A moment of a clock as one of the platform's. Changes of the clock's time that come later have no effect.
///
/// # Errors
///
/// `EINVAL` where the clock is not one of the two that POSIX and glibc know here, or the nanoseconds are not below a second.
pub fn deadline(clock: clockid_t, at: &timespec) -> Result<Instant, c_int> {
    if !(0..SECOND).contains(&i128::from(at.tv_nsec)) {
        return Err(EINVAL);
    }
    let nanos = i128::from(at.tv_sec) * SECOND + i128::from(at.tv_nsec);
    match clock {
        CLOCK_MONOTONIC => Ok(Instant::from_nanos(clamp(nanos))),
        CLOCK_REALTIME => {
            let mut now = timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // SAFETY: `now` is valid for the write, and the clock exists.
            unsafe { libc::clock_gettime(CLOCK_REALTIME, &mut now) };
            let real = i128::from(now.tv_sec) * SECOND + i128::from(now.tv_nsec);
            // The platform's clock second: the result is never early.
            let now = Linux::now().as_nanos();
            Ok(Instant::from_nanos(clamp(i128::from(now) + nanos - real)))
        }
        _ => Err(EINVAL),
    }
}

/// `end`, or `limit` where that comes before.
pub fn earlier(limit: Option<Instant>, end: Instant) -> Instant {
    limit.map_or(end, |limit| limit.min(end))
}

fn clamp(nanos: i128) -> u64 {
    nanos.clamp(0, i128::from(u64::MAX)) as u64
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
