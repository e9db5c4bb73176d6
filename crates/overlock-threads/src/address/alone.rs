//! For a program with one thread, WebAssembly without atomics: nobody else can change a word.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// With a limit its caller polls until that is over.
///
/// # Panics
///
/// If the wait would last for ever.
pub(crate) fn wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) -> bool {
    assert!(
        limit.is_some() || word.load(Relaxed) != expected,
        "overlock: the only thread waits for a lock that it holds, or for what another would do"
    );
    false
}

pub(crate) fn wake_one(_: *const AtomicU32) {}

pub(crate) fn wake_all(_: *const AtomicU32) {}
