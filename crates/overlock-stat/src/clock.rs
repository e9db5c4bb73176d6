//! The clock for wait and hold times.

use overlock_core::Platform;
use overlock_linux::__private::system_call;
use overlock_linux::Linux;

/// Returns nanoseconds of the monotonic clock, which is the same for all CPUs: the two times of a
/// difference may be taken on different ones.
pub fn now() -> u64 {
    Linux::now().as_nanos()
}

/// Returns nanoseconds for which the calling thread has had a CPU; 0 where a filter may not allow
/// the system call.
pub fn cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The same for another thread of the process; 0 also where there is no such thread.
pub fn cpu_of(tid: u32) -> u64 {
    /// The CPU time of the thread whose id's complement stands in the bits above.
    const OF_THREAD: i32 = 4 | 2;
    read(!(tid as i32) << 3 | OF_THREAD)
}

fn read(clock: libc::clockid_t) -> u64 {
    if !crate::table::may_open() {
        return 0;
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: valid for the write.
    unsafe { system_call!(libc::SYS_clock_gettime, clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
