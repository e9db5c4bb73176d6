//! To wait at the address of a word until another thread wakes.
//!
//! A file for each system has three functions. The latch between waiter and waker is the word: see
//! the [contract](overlock_core::platform) of `halt` and `kick`.
//!
//! - `wait(word, expected, limit)` sleeps while the word holds `expected`, until a wake-up, at most
//!   for `limit`, and may return for no reason. False only if it has certainly taken no wake-up.
//! - `wake_one(word)` and `wake_all(word)` wake sleepers of the word that lies, or lay, there. They
//!   do not access it.

// `alone` is for WebAssembly without atomics, as the compiler says it. WASI's standard library
// panics by itself.
#[cfg_attr(all(windows, not(miri)), path = "address/windows.rs")]
#[cfg_attr(target_vendor = "apple", path = "address/apple.rs")]
#[cfg_attr(target_os = "freebsd", path = "address/freebsd.rs")]
#[cfg_attr(target_os = "openbsd", path = "address/openbsd.rs")]
#[cfg_attr(target_os = "dragonfly", path = "address/dragonfly.rs")]
#[cfg_attr(
    all(
        target_family = "wasm",
        target_os = "unknown",
        not(target_feature = "atomics")
    ),
    path = "address/alone.rs"
)]
#[cfg_attr(
    not(any(
        all(windows, not(miri)),
        target_vendor = "apple",
        target_os = "freebsd",
        target_os = "openbsd",
        target_os = "dragonfly",
        all(
            target_family = "wasm",
            target_os = "unknown",
            not(target_feature = "atomics")
        )
    )),
    path = "address/table.rs"
)]
mod system;

#[cfg(target_vendor = "apple")]
mod table;

pub(crate) use system::{wait, wake_all, wake_one};

/// A sleep lasts at most so long, and then ends spuriously. Longer times are not safe everywhere:
/// seconds may have 32 bits, and macOS is said to refuse 18 minutes, so that a caller would spin.
#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "openbsd"))]
const LONGEST: std::time::Duration = std::time::Duration::from_secs(60);
