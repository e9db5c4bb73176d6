//! Futexes, where the platform's `halt` and `kick` do not suffice: sleeps that distinguish a signal
//! from a wake-up, and wake-ups of several threads.

use core::sync::atomic::AtomicU32;

use libc::{EINTR, ETIMEDOUT, c_int};
use overlock::Linux;
use overlock_core::Deadline;

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
    const INTERRUPTED: isize = -(EINTR as isize);
    const LATE: isize = -(ETIMEDOUT as isize);
    match overlock_linux::__private::sleep(word, expected, until) {
        INTERRUPTED => EINTR,
        // By a clock of the program's own it was time to look, and may be time to sleep again.
        LATE if until.is_none_or(Deadline::is_over::<Linux>) => ETIMEDOUT,
        _ => 0,
    }
}
