//! Deadlines as callers give them.

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, EINVAL, c_int, clockid_t, timespec};
use overlock_core::{Deadline, Instant};

use crate::clock as clocks;
use crate::site::Site;

const SECOND: i64 = 1_000_000_000;

/// Converts an absolute time of a clock to a deadline of the platform, for a call from `site`.
///
/// # Errors
///
/// `EINVAL` if the clock is not `CLOCK_REALTIME` or `CLOCK_MONOTONIC`, or the nanoseconds are not
/// below a second.
// Not inlined: its stack is free again when the wait begins.
#[inline(never)]
pub fn deadline(clock: clockid_t, at: &timespec, site: Site) -> Result<Deadline, c_int> {
    if !(0..SECOND).contains(&at.tv_nsec) {
        return Err(EINVAL);
    }
    let nanos = at.tv_sec.saturating_mul(SECOND).saturating_add(at.tv_nsec);
    let positive = nanos.max(0) as u64;
    let kernels = match clock {
        CLOCK_MONOTONIC => Instant::from_nanos(positive).into(),
        CLOCK_REALTIME => Deadline::Wall(positive),
        _ => return Err(EINVAL),
    };
    Ok(clocks::deadline(clock, nanos, site).unwrap_or(kernels))
}

#[cfg(test)]
mod tests {
    use overlock::Linux;

    use super::*;

    fn at(tv_sec: i64, tv_nsec: i64) -> timespec {
        timespec { tv_sec, tv_nsec }
    }

    #[test]
    fn deadlines_of_both_clocks_are_converted() {
        for (clock, before) in [
            (CLOCK_MONOTONIC, Deadline::Monotonic(Instant::from_nanos(0))),
            (CLOCK_REALTIME, Deadline::Wall(0)),
        ] {
            assert_eq!(deadline(clock, &at(-1, 0), 0), Ok(before));
            let mut soon = at(0, 0);
            // SAFETY: `soon` is valid for the write, and the clock exists.
            unsafe { libc::clock_gettime(clock, &mut soon) };
            soon.tv_sec += 10;
            let left = deadline(clock, &soon, 0).unwrap().nanos_left::<Linux>();
            assert!((9_000_000_000..=10_000_000_000).contains(&left), "{left}");
        }
    }

    #[test]
    fn invalid_times_are_refused() {
        for nsec in [-1, 1_000_000_000] {
            assert_eq!(deadline(CLOCK_REALTIME, &at(1, nsec), 0), Err(EINVAL));
        }
        assert_eq!(
            deadline(libc::CLOCK_PROCESS_CPUTIME_ID, &at(1, 0), 0),
            Err(EINVAL)
        );
    }
}
