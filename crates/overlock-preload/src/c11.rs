//! `mtx_t` and `cnd_t` of C11.
//!
//! In glibc they are a `pthread_mutex_t` and a `pthread_cond_t` by other names, without static
//! initialisers. Their functions do not call those that this library replaces, so it replaces them
//! as well. `thrd_t`, `tss_t` and `once_flag` stay glibc's.

use core::ffi::c_int;

use libc::{EBUSY, ENOMEM, ETIMEDOUT, timespec};

use crate::cond::{self, Cond};
use crate::mutex::{self, Mutex, functions};
use crate::site::{Site, with_site};

/// glibc's numbers of the C11 results.
const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;

/// `mtx_recursive`, and `mtx_timed`, which changes nothing: all of our mutexes have timed waits.
const RECURSIVE: c_int = 1;
const TIMED: c_int = 2;

/// Returns the C11 result for an errno.
fn answer(error: c_int) -> c_int {
    match error {
        0 => SUCCESS,
        EBUSY => BUSY,
        ENOMEM => NO_MEMORY,
        ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

with_site! {
    fn mtx_init(2) => init;
    fn mtx_lock(1) => lock;
    fn mtx_trylock(1) => trylock;
    fn mtx_timedlock(2) => timedlock;
    fn cnd_init(1) => cond_init;
    /// `cnd_wait`: a cancellation point, as in glibc.
    fn cnd_wait(2) => wait;
    /// `cnd_timedwait`: a cancellation point, as in glibc.
    fn cnd_timedwait(3) => timedwait;
}

unsafe extern "C" fn init(mutex: *mut Mutex, requested: c_int, site: Site) -> c_int {
    // Like glibc, treats every other type as plain.
    let kind = match requested & !TIMED {
        RECURSIVE => mutex::RECURSIVE,
        _ => mutex::NORMAL,
    };
    // SAFETY: the caller's promise: memory for a mutex that nobody uses. The attributes are valid
    // for the call.
    answer(unsafe { functions::init(mutex, &kind, site) })
}

unsafe extern "C" fn lock(mutex: *mut Mutex, site: Site) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { functions::lock(mutex, site) })
}

unsafe extern "C" fn trylock(mutex: *mut Mutex, site: Site) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { functions::trylock(mutex, site) })
}

unsafe extern "C" fn timedlock(mutex: *mut Mutex, at: *const timespec, site: Site) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { functions::timedlock(mutex, at, site) })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mtx_unlock(mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { functions::pthread_mutex_unlock(mutex) })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mtx_destroy(mutex: *mut Mutex) {
    // C11 has no way to report that a thread holds it. SAFETY: the caller's promise.
    unsafe { functions::pthread_mutex_destroy(mutex) };
}

unsafe extern "C" fn cond_init(cond: *mut Cond, site: Site) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { cond::init(cond, core::ptr::null(), site) })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn cnd_signal(cond: *mut Cond) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { cond::pthread_cond_signal(cond) })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn cnd_broadcast(cond: *mut Cond) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { cond::pthread_cond_broadcast(cond) })
}

unsafe extern "C-unwind" fn wait(cond: *mut Cond, mutex: *mut Mutex, site: Site) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { cond::wait(cond, mutex, site) })
}

unsafe extern "C-unwind" fn timedwait(
    cond: *mut Cond,
    mutex: *mut Mutex,
    at: *const timespec,
    site: Site,
) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { cond::timedwait(cond, mutex, at, site) })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn cnd_destroy(cond: *mut Cond) {
    // SAFETY: the caller's promise.
    unsafe { cond::pthread_cond_destroy(cond) };
}
