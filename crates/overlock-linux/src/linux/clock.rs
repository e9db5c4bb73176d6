//! The clocks: CLOCK_MONOTONIC and CLOCK_REALTIME for deadlines, the time-stamp counter for
//! spinning.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use overlock_core::Instant;

/// The type of `clock_gettime`.
pub type Read = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;

/// The C library's `clock_gettime`, if the program has another; else null. A clock that is faked
/// says nothing about the kernel's sleeps, and its function may use the program's locks.
static LIBCS: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// From now on the clocks are read by this function, which is the C library's, and only
/// [`programs`] calls the one that the program sees.
pub fn read_by(libcs: Read) {
    LIBCS.store(libcs as *mut (), Relaxed);
}

#[inline]
fn read_with(read: Read, clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the write; both clocks exist on every Linux, so the call cannot
    // fail. The vDSO makes it safe and cheap in signal handlers too.
    unsafe { read(clock, &mut time) };
    // Of 32 bits on some machines.
    #[allow(clippy::unnecessary_cast)]
    let (seconds, nanos) = (time.tv_sec as i64, time.tv_nsec as i64);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Reads one of the two clocks, in nanoseconds, as the kernel has it.
#[inline]
pub fn read(clock: libc::clockid_t) -> u64 {
    // Relaxed: the function was there before the program began.
    let libcs = LIBCS.load(Relaxed);
    let read: Read = match libcs.is_null() {
        true => libc::clock_gettime,
        // SAFETY: stored by `read_by`, of this type.
        false => unsafe { std::mem::transmute::<*mut (), Read>(libcs) },
    };
    read_with(read, clock) as u64
}

/// Reads one of the two clocks by the function that the program sees, whatever that does to errno.
// Not inlined: the stacks of waits are small.
#[cold]
#[inline(never)]
pub fn programs(clock: libc::clockid_t) -> i64 {
    let errno = errno();
    // SAFETY: the thread's own.
    let before = unsafe { *errno };
    let time = read_with(libc::clock_gettime, clock);
    // SAFETY: as above.
    unsafe { *errno = before };
    time
}

/// The place of the thread's `errno`.
pub(super) fn errno() -> *mut libc::c_int {
    #[cfg(target_os = "android")]
    use libc::__errno as place_of_errno;
    #[cfg(not(target_os = "android"))]
    use libc::__errno_location as place_of_errno;
    // SAFETY: it has no preconditions.
    unsafe { place_of_errno() }
}

/// CLOCK_MONOTONIC.
#[inline]
pub(super) fn now() -> Instant {
    Instant::from_nanos(read(libc::CLOCK_MONOTONIC))
}

/// CLOCK_REALTIME.
pub(super) fn wall() -> u64 {
    if cfg!(target_pointer_width = "64") {
        return read(libc::CLOCK_REALTIME);
    }
    // The C library's first function has seconds of 32 bits there, which end in 2038.
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
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
