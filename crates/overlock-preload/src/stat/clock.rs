//! The clock for wait and hold times.

use overlock::Linux;
use overlock_core::Platform;

/// Returns nanoseconds of the monotonic clock, which is the same for all CPUs: the two times of a
/// difference may be taken on different ones.
pub fn now() -> u64 {
    Linux::now().as_nanos()
}
