//! Futexes, where the platform's `halt` and `kick` do not suffice: sleeps that distinguish a signal
//! from a wake-up, and wake-ups of several threads.

use core::num::NonZeroU32;
use core::sync::atomic::AtomicU32;

use libc::{EINTR, ETIMEDOUT, c_int};
use overlock::Linux;
use overlock_core::Deadline;
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

/// Sleeps while the word holds `expected`, until a deadline. Returns 0 when woken, spuriously too,
/// or when the word holds another value; `EINTR` after a signal handler has run; `ETIMEDOUT`.
pub fn wait(word: &AtomicU32, expected: u32, until: Option<Deadline>) -> c_int {
    let (flags, nanos) = match until {
        None => (Flags::PRIVATE, 0),
        Some(Deadline::Wall(at)) => (Flags::PRIVATE | Flags::CLOCK_REALTIME, at),
        Some(until) => (Flags::PRIVATE, until.instant::<Linux>().as_nanos()),
    };
    let at = until.map(|_| Timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as i64,
    });
    let slept =
        rustix::thread::futex::wait_bitset(word, flags, expected, at.as_ref(), NonZeroU32::MAX);
    match slept {
        Err(Errno::INTR) => EINTR,
        // By a clock of the program's own it was time to look, and may be time to sleep again.
        Err(Errno::TIMEDOUT) if until.is_none_or(Deadline::is_over::<Linux>) => ETIMEDOUT,
        _ => 0,
    }
}
