//! The clocks: CLOCK_MONOTONIC and CLOCK_REALTIME for deadlines, the time-stamp counter for
//! spinning.

use overlock_core::Instant;

/// Reads one of the two clocks.
#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the write; both clocks exist on every Linux, so the call cannot
    // fail. The vDSO makes it safe and cheap in signal handlers too.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC.
#[inline]
pub(super) fn now() -> Instant {
    Instant::from_nanos(read(libc::CLOCK_MONOTONIC))
}

/// CLOCK_REALTIME.
pub(super) fn wall() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Returns nanoseconds within a factor of two: the counters of x86-64 processors run at 1 to 4 GHz,
/// so half of their value is returned.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the counter, and Linux lets programs read it unless they
    // ask to be killed for that (PR_SET_TSC).
    unsafe { core::arch::x86_64::_rdtsc() >> 1 }
}

/// As above: the clock's nanoseconds.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
pub fn ticks() -> u64 {
    now().as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_nanoseconds_within_a_factor_of_two() {
        let (start, first) = (now(), ticks());
        while now().nanos_since(start) < 1_000_000 {}
        let (nanos, ticks) = (now().nanos_since(start), ticks() - first);
        assert!(
            ticks >= nanos / 2 && ticks <= nanos * 2,
            "{ticks} of {nanos} ns"
        );
    }
}
