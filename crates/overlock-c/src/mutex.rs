//! `ovl_mutex_t`, which is also `ovl_spinlock_t`.

use core::ffi::{c_char, c_int};

use libc::timespec;
use overlock_core::raw::{RawFork, RawLock, RawTimedLock};
use overlock_core::{Deadline, Instant};
use overlock_stat::ObjectKind;
use overlock_stat::lock::Lock;

use crate::deadline::deadline;
use crate::{named, or_busy, or_late};

/// The recommended mutex.
pub type Mutex = overlock::sleep::Overlock;

/// `ovl_mutex_init`.
///
/// # Safety
///
/// Memory for a mutex, not in use as one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_mutex_init(mutex: *mut Mutex) -> c_int {
    named::forget(mutex);
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
    let is_unused = !lock.is_locked() && !lock.is_contended();
    if is_unused {
        named::forget(mutex);
    }
    or_busy(is_unused)
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
    let is_marked = lock.is_marked();
    // SAFETY: the caller's promise; `Linux::after_fork` ran before fork returned.
    unsafe { lock.forget_waiters() };
    if is_marked {
        lock.mark();
    }
    0
}

/// `ovl_mutex_name`.
///
/// # Safety
///
/// A mutex; `name` is null, or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_mutex_name(mutex: *mut Mutex, name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*mutex };
    // SAFETY: the caller's promise.
    match unsafe { named::mutex(mutex.addr(), name, !lock.is_marked()) } {
        Ok(is_counted) => {
            if is_counted {
                lock.mark();
            }
            0
        }
        Err(error) => error,
    }
}

/// A marked lock, which has a name where it is counted.
fn counted(lock: &Mutex) -> Option<Lock<'static>> {
    named::lock(lock, ObjectKind::Mutex)
}

/// Acquires a marked lock, until the deadline if there is one.
#[cold]
fn lock_marked(lock: &Mutex, until: Option<Instant>) -> bool {
    let attempt = || lock.try_lock_marked();
    let wait = || match until {
        Some(until) => lock.lock_until(Deadline::from(until)).is_some(),
        None => {
            lock.lock();
            true
        }
    };
    match counted(lock) {
        Some(counted) => named::acquire(&counted, lock.is_contended(), attempt, Some(wait)),
        None => attempt() || wait(),
    }
}

#[cold]
fn try_lock_marked(lock: &Mutex) -> bool {
    let attempt = || lock.try_lock_marked();
    match counted(lock) {
        Some(counted) => {
            let wait: Option<fn() -> bool> = None;
            named::acquire(&counted, lock.is_contended(), attempt, wait)
        }
        None => attempt(),
    }
}

/// Releases a marked lock by `release`.
#[cold]
fn unlock_marked(lock: &Mutex, release: impl FnOnce()) {
    match counted(lock) {
        Some(counted) => counted.releases(release),
        None => release(),
    }
}

/// Runs `f`, which releases the lock and acquires it again.
pub(crate) fn again<T>(lock: &Mutex, f: impl FnOnce() -> T) -> T {
    let counted = (lock.is_marked()).then(|| counted(lock)).flatten();
    let paused = counted.and_then(|counted| Some((counted, counted.pause()?)));
    let result = f();
    if let Some((counted, site)) = paused {
        counted.state.owns_again(site);
    }
    result
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
    match lock.is_marked() {
        true => _ = lock_marked(lock, None),
        false => lock.lock(),
    }
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
    or_busy(match lock.is_marked() {
        true => try_lock_marked(lock),
        false => lock.try_lock().is_some(),
    })
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
        Ok(deadline) if lock.is_marked() => or_late(lock_marked(lock, Some(deadline))),
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
    let release = || unsafe { lock.unlock(()) };
    match lock.is_marked() {
        true => unlock_marked(lock, release),
        false => release(),
    }
    0
}
