//! `ovl_cond_t`.

use core::ffi::c_int;

use libc::{ETIMEDOUT, timespec};
use overlock::Linux;
use overlock_core::raw::RawFork;
use overlock_core::sleep;
use overlock_core::{Instant, Platform};

use crate::deadline::deadline;
use crate::mutex::{self, Mutex};

/// A condition variable for [`Mutex`].
pub type Cond = sleep::Condvar<Linux>;

/// `ovl_cond_init`.
///
/// # Safety
///
/// Memory for a condition variable, not in use as one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_cond_init(cond: *mut Cond) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { cond.write(Cond::new()) };
    0
}

/// `ovl_cond_destroy`: waits until threads that give up have left. The caller may own the mutex.
///
/// # Safety
///
/// A condition variable whose waiters have all been notified, and that is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_cond_destroy(cond: *mut Cond) -> c_int {
    // SAFETY: the caller's promise.
    let cond = unsafe { &*cond };
    cond.drain();
    0
}

/// `ovl_cond_after_fork`.
///
/// # Safety
///
/// A condition variable, in a child of fork, in which nobody has waited for it since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_cond_after_fork(cond: *mut Cond) -> c_int {
    // SAFETY: the caller's promise.
    let cond = unsafe { &*cond };
    // SAFETY: the caller's promise; `Linux::after_fork` ran before fork returned.
    unsafe { cond.forget_waiters() };
    0
}

/// `ovl_cond_wait`.
///
/// # Safety
///
/// A condition variable; a mutex that the calling thread has acquired, and has not released since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_cond_wait(cond: *mut Cond, mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { wait(cond, mutex, None) };
    0
}

/// `ovl_cond_timedwait`.
///
/// # Safety
///
/// As for `ovl_cond_wait`; `at` is null or valid for reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_cond_timedwait(
    cond: *mut Cond,
    mutex: *mut Mutex,
    at: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    let until = match unsafe { deadline(at) } {
        Ok(until) => until,
        Err(error) => return error,
    };
    // SAFETY: the caller's promise.
    let notified = unsafe { wait(cond, mutex, Some(until)) };
    // Without a notification and early: a spurious wake-up, which any wait may have.
    if notified || Linux::now() < until {
        0
    } else {
        ETIMEDOUT
    }
}

/// Waits, and returns whether it was notified.
///
/// # Safety
///
/// As for `ovl_cond_wait`.
unsafe fn wait(cond: *mut Cond, mutex: *mut Mutex, until: Option<Instant>) -> bool {
    // SAFETY: the caller's promise.
    let cond = unsafe { &*cond };
    // SAFETY: the caller's promise.
    let mutex = unsafe { &*mutex };
    // SAFETY: the caller's promise.
    let wait = || unsafe { cond.wait_limited(mutex, (), until.map(Into::into), None) };
    mutex::again(mutex, wait).1
}

/// `ovl_cond_signal`.
///
/// # Safety
///
/// A condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_cond_signal(cond: *mut Cond) -> c_int {
    // SAFETY: the caller's promise.
    let cond = unsafe { &*cond };
    cond.notify_one();
    0
}

/// `ovl_cond_broadcast`.
///
/// # Safety
///
/// A condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_cond_broadcast(cond: *mut Cond) -> c_int {
    // SAFETY: the caller's promise.
    let cond = unsafe { &*cond };
    cond.notify_all();
    0
}
