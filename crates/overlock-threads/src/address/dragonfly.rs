//! `umtx_sleep` and `umtx_wakeup`.

use std::ffi::c_int;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// A sleep lasts at most so many microseconds: 0 would be for ever, and a longer one ends
/// spuriously. The kernel ends each after 2 seconds: it sleeps on the physical address, which may
/// change.
const LONGEST: u128 = 1_000_000;

pub(crate) fn wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) -> bool {
    let micros = limit.map_or(0, |limit| {
        limit.as_nanos().div_ceil(1_000).clamp(1, LONGEST) as c_int
    });
    // SAFETY: a word that outlives the call.
    unsafe { libc::umtx_sleep(word.as_ptr().cast(), expected as c_int, micros) };
    // Whether a sleep whose time is over can have taken a wake-up is not documented.
    true
}

fn wake(word: *const AtomicU32, most: c_int) {
    // SAFETY: the kernel finds sleepers by the address. It may touch the word, at worst in vain.
    unsafe { libc::umtx_wakeup(word.cast(), most) };
}

pub(crate) fn wake_one(word: *const AtomicU32) {
    wake(word, 1);
}

/// 0 is all.
pub(crate) fn wake_all(word: *const AtomicU32) {
    wake(word, 0);
}
