//! Futexes, where the platform's `halt` and `kick` say too little: sleeps that have to tell a
//! signal from a kick, and kicks for many.

use core::num::NonZeroU32;
use core::sync::atomic::AtomicU32;

use libc::{EINTR, ETIMEDOUT, c_int, clockid_t, timespec};
use rustix::io::Errno;
use rustix::thread::futex::{Flags, Timespec};

/// For [`wake`]: all that sleep.
pub const ALL: c_int = c_int::MAX;

/// Wakes as many that sleep on the word of this address. The word may be gone: then nobody does, or
/// somebody for another reason, whom it wakes for nothing.
pub fn wake(address: usize, most: c_int) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel looks for sleepers by the address, and does not touch the word.
    unsafe { overlock_linux::__private::system_call!(libc::SYS_futex, address, operation, most) };
}

/// Sleeps while the word holds `expected`, until a moment of `CLOCK_REALTIME` or `CLOCK_MONOTONIC`.
/// 0 where it was woken, or the word holds something else, or for no reason; `EINTR` after a signal
/// handler has run, `ETIMEDOUT`.
pub fn wait(word: &AtomicU32, expected: u32, until: Option<(clockid_t, &timespec)>) -> c_int {
    let clock = match until {
        Some((libc::CLOCK_REALTIME, _)) => Flags::CLOCK_REALTIME,
        _ => Flags::empty(),
    };
    let at = until.map(|(_, at)| Timespec {
        // The kernel knows no moments before the clock's start; that has passed, too.
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
