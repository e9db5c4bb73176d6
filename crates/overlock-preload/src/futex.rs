//! Futexes, where the platform's `halt` and `kick` do not suffice: sleeps that distinguish a signal
//! from a wake-up, and wake-ups of several threads.

use core::num::NonZeroU32;
use core::sync::atomic::AtomicU32;

use libc::{EINTR, ETIMEDOUT, c_int, clockid_t, timespec};
use rustix::io::Errno;
use rustix::thread::futex::{Flags, Timespec};

/// For [`wake`]: wakes all sleepers.
pub const ALL: c_int = c_int::MAX;

/// Wakes at most `most` threads that sleep on the word at this address. The word may be freed
/// already: then the wake-up finds no sleeper, or wakes a sleeper of another use of the address
/// spuriously.
pub fn wake(address: usize, most: c_int) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel looks for sleepers by the address, and does not touch the word.
    unsafe { overlock_linux::__private::system_call!(libc::SYS_futex, address, operation, most) };
}

/// Sleeps while the word holds `expected`, until an absolute time of `CLOCK_REALTIME` or
/// `CLOCK_MONOTONIC`. Returns 0 when woken, spuriously too, or when the word holds another value;
/// `EINTR` after a signal handler has run; `ETIMEDOUT`.
pub fn wait(word: &AtomicU32, expected: u32, until: Option<(clockid_t, &timespec)>) -> c_int {
    let clock = match until {
        Some((libc::CLOCK_REALTIME, _)) => Flags::CLOCK_REALTIME,
        _ => Flags::empty(),
    };
    let at = until.map(|(_, at)| Timespec {
        // The kernel refuses times before the clock's start; those have passed, too.
        tv_sec: at.tv_sec.max(0),
        tv_nsec: at.tv_nsec,
    });
    let flags = Flags::PRIVATE | clock;
    let slept =
        rustix::thread::futex::wait_bitset(word, flags, expected, at.as_ref(), NonZeroU32::MAX);
    match slept {
        Err(Errno::INTR) => EINTR,
        Err(Errno::TIMEDOUT) => ETIMEDOUT,
        _ => 0,
    }
}
