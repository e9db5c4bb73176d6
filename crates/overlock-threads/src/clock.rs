//! The clocks.

use overlock_core::Instant;

/// WebAssembly alone has no clock, and the standard library's panics.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod system {
    use std::cell::Cell;

    thread_local! {
        /// The calling thread's own: sleeps of several threads at a time must not add up.
        static TIME: Cell<u64> = const { Cell::new(0) };
    }

    /// Each look takes a microsecond. So waits with a limit end, after so many looks.
    pub fn now() -> u64 {
        TIME.replace(TIME.get() + 1_000)
    }

    pub fn wall() -> u64 {
        now()
    }

    /// The calling thread has slept so long.
    #[cfg(target_feature = "atomics")]
    pub fn slept(time: std::time::Duration) {
        TIME.set(TIME.get() + time.as_nanos() as u64);
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

#[cfg(all(
    target_family = "wasm",
    target_os = "unknown",
    target_feature = "atomics"
))]
pub(crate) use system::slept;

/// Nanoseconds since the first call, of a clock that is never set.
#[inline]
pub(crate) fn now() -> Instant {
    Instant::from_nanos(system::now())
}

/// Nanoseconds since 1970.
pub(crate) fn wall() -> u64 {
    system::wall()
}
