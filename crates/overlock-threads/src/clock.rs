//! The clocks.

use overlock_core::Instant;

/// WebAssembly alone has no clock, and the standard library's panics.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod system {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// Each look takes a microsecond. So waits with a limit end, after so many looks.
    pub fn now() -> u64 {
        static LOOKS: AtomicU64 = AtomicU64::new(0);
        LOOKS.fetch_add(1_000, Relaxed)
    }

    pub fn wall() -> u64 {
        now()
    }
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod system {
    use std::sync::OnceLock;
    use std::time::{Instant, SystemTime, UNIX_EPOCH};

    pub fn now() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }

    pub fn wall() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos() as u64)
    }
}

/// Nanoseconds since the first call, of a clock that is never set.
#[inline]
pub(crate) fn now() -> Instant {
    Instant::from_nanos(system::now())
}

/// Nanoseconds since 1970.
pub(crate) fn wall() -> u64 {
    system::wall()
}
