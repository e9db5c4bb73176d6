//! `_umtx_op`.

use std::ffi::{c_int, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use super::LONGEST;

pub(crate) fn wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) -> bool {
    let limit = limit.map(|limit| limit.min(LONGEST));
    let limit = limit.map(|limit| libc::_umtx_time {
        _timeout: libc::timespec {
            tv_sec: limit.as_secs() as _,
            tv_nsec: limit.subsec_nanos() as _,
        },
        _flags: 0,
        _clockid: libc::CLOCK_MONOTONIC as u32,
    });
    // The size of the time stands in the place of a pointer.
    let (size, time) = match &limit {
        None => (0, ptr::null_mut()),
        Some(limit) => (size_of_val(limit), ptr::from_ref(limit).cast_mut().cast()),
    };
    // SAFETY: a word, and a time or none, that outlive the call.
    let failed = unsafe {
        libc::_umtx_op(
            word.as_ptr().cast(),
            libc::UMTX_OP_WAIT_UINT_PRIVATE,
            c_ulong::from(expected),
            ptr::without_provenance_mut(size),
            time,
        )
    };
    // The kernel answers with success wherever a waker has taken the sleeper out, also if its time
    // was over or a signal came.
    failed == 0
}

fn wake(word: *const AtomicU32, most: c_int) {
    // SAFETY: the kernel finds sleepers by the address, and does not touch the word.
    unsafe {
        libc::_umtx_op(
            word.cast_mut().cast::<c_void>(),
            libc::UMTX_OP_WAKE_PRIVATE,
            most as c_ulong,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
}

pub(crate) fn wake_one(word: *const AtomicU32) {
    wake(word, 1);
}

pub(crate) fn wake_all(word: *const AtomicU32) {
    wake(word, c_int::MAX);
}
