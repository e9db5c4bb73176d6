//! Time for waits and holds.

use overlock::Linux;
use overlock_core::Platform;

/// Nanoseconds of the monotonic clock: it is the same for all CPUs, which a difference between two
/// of them needs.
pub fn now() -> u64 {
    Linux::now().as_nanos()
}
