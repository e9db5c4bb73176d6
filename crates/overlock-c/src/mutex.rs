//! `ovl_mutex_t`, which is also `ovl_spinlock_t`.

use core::ffi::c_int;

use libc::timespec;
use overlock_core::raw::{RawFork, RawLock, RawTimedLock};

use crate::deadline::deadline;
use crate::{or_busy, or_late};

/// The recommended mutex.
pub type Mutex = overlock::sleep::Overlock;

/// `ovl_mutex_init`.
///
/// # Safety
///
/// Memory for a mutex, not in use as one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_mutex_init(mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { mutex.write(Mutex::new()) };
    0
}

/// `ovl_mutex_destroy`.
///
/// # Safety
///
/// A mutex that is not used afterwards, if this succeeds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_mutex_destroy(mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*mutex };
    or_busy(!lock.is_locked() && !lock.is_contended())
}

/// `ovl_mutex_after_fork`.
///
/// # Safety
///
/// A mutex, in a child of fork, in which nobody has waited for it since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_mutex_after_fork(mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*mutex };
    // SAFETY: the caller's promise; `Linux::after_fork` ran before fork returned.
    unsafe { lock.forget_waiters() };
    0
}

/// `ovl_mutex_lock`, and the slow path of the one in the header.
///
/// # Safety
///
/// A mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_mutex_lock(mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*mutex };
    lock.lock();
    0
}

/// `ovl_mutex_trylock`.
///
/// # Safety
///
/// A mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_mutex_trylock(mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*mutex };
    or_busy(lock.try_lock().is_some())
}

/// `ovl_mutex_timedlock`.
///
/// # Safety
///
/// A mutex; `at` is null or valid for reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_mutex_timedlock(mutex: *mut Mutex, at: *const timespec) -> c_int {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*mutex };
    // SAFETY: the caller's promise.
    match unsafe { deadline(at) } {
        Ok(deadline) => or_late(lock.lock_until(deadline).is_some()),
        Err(error) => error,
    }
}

/// `ovl_mutex_unlock`.
///
/// # Safety
///
/// A mutex that the calling thread has acquired, and has not released since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_mutex_unlock(mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller's promise. Another thread may free the memory while this returns, but not
    // before the release.
    let lock = unsafe { &*mutex };
    // SAFETY: the caller's promise.
    unsafe { lock.unlock(()) };
    0
}
