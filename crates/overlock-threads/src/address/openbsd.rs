//! `futex`, whose times are durations.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use super::LONGEST;

const PRIVATE: c_int = 128;

pub(crate) fn wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) -> bool {
    let limit = limit.map(|limit| limit.min(LONGEST));
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as _,
        tv_nsec: limit.subsec_nanos() as _,
    });
    let time = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    let operation = libc::FUTEX_WAIT | PRIVATE;
    // SAFETY: a word, and a time or none, that outlive the call.
    unsafe {
        libc::futex(
            word.as_ptr(),
            operation,
            expected as c_int,
            time,
            ptr::null_mut(),
        )
    };
    // Whether a sleep whose time is over can have taken a wake-up is not documented.
    true
}

fn wake(word: *const AtomicU32, most: c_int) {
    let operation = libc::FUTEX_WAKE | PRIVATE;
    let word = word.cast::<u32>().cast_mut();
    // SAFETY: the kernel finds sleepers by the address, and does not touch the word.
    unsafe { libc::futex(word, operation, most, ptr::null(), ptr::null_mut()) };
}

pub(crate) fn wake_one(word: *const AtomicU32) {
    wake(word, 1);
}

pub(crate) fn wake_all(word: *const AtomicU32) {
    wake(word, c_int::MAX);
}
