//! `ovl_rwlock_t`.

use core::ffi::{c_char, c_int};

use libc::timespec;
use overlock_core::raw::{RawForkRwLock, RawRwLock, RawTimedRwLock};
use overlock_stat::ObjectKind;

use crate::deadline::deadline;
use crate::{named, or_busy, or_late};

/// The recommended reader-writer lock.
pub type RwLock = overlock::RawRwLock;

/// `ovl_rwlock_init`.
///
/// # Safety
///
/// Memory for a lock, not in use as one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_rwlock_init(rwlock: *mut RwLock) -> c_int {
    named::forget(rwlock);
    // SAFETY: the caller's promise.
    unsafe { rwlock.write(RwLock::new()) };
    0
}

/// `ovl_rwlock_destroy`.
///
/// # Safety
///
/// A lock that is not used afterwards, if this succeeds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_rwlock_destroy(rwlock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*rwlock };
    let is_unused = !lock.is_locked() && !lock.is_contended();
    if is_unused {
        named::forget(rwlock);
    }
    or_busy(is_unused)
}

/// `ovl_rwlock_after_fork`.
///
/// # Safety
///
/// A lock, in a child of fork, in which nobody has waited for it since; `written` is not 0 if the
/// calling thread holds it for writing, and is 0 otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_rwlock_after_fork(rwlock: *mut RwLock, written: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*rwlock };
    // SAFETY: the caller's promise; `Linux::after_fork` ran before fork returned.
    unsafe { lock.forget_waiters(written != 0) };
    0
}

/// `ovl_rwlock_name`.
///
/// # Safety
///
/// A lock; `name` is null, or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_rwlock_name(rwlock: *mut RwLock, name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { named::rwlock(rwlock.addr(), name) } {
        Ok(_) => 0,
        Err(error) => error,
    }
}

/// Acquires the lock by `attempt`, or else by `wait`, if there is that.
#[cold]
fn acquire_counted(
    lock: &RwLock,
    kind: ObjectKind,
    attempt: impl Fn() -> bool,
    wait: Option<impl FnOnce() -> bool>,
) -> bool {
    match named::lock(lock, kind) {
        Some(counted) => named::acquire(&counted, lock.is_contended(), attempt, wait),
        None => attempt() || wait.is_some_and(|wait| wait()),
    }
}

/// Releases the lock by `release`.
#[inline]
fn release(lock: &RwLock, release: impl FnOnce()) {
    let counted = (named::may_be_counted()).then(|| named::lock(lock, ObjectKind::Write));
    match counted.flatten() {
        Some(counted) => counted.releases(release),
        None => release(),
    }
}

macro_rules! acquisitions {
    ($($kind:ident: $name:ident, $try_name:ident, $timed_name:ident: $lock:ident, $try_lock:ident, $lock_until:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        ///
        /// A lock.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(rwlock: *mut RwLock) -> c_int {
            // SAFETY: the caller's promise.
            let lock = unsafe { &*rwlock };
            if named::may_be_counted() {
                let wait = || {
                    lock.$lock();
                    true
                };
                let attempt = || lock.$try_lock().is_some();
                acquire_counted(lock, ObjectKind::$kind, attempt, Some(wait));
            } else {
                lock.$lock();
            }
            0
        }

        #[doc = concat!("`", stringify!($try_name), "`.")]
        ///
        /// # Safety
        ///
        /// A lock.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $try_name(rwlock: *mut RwLock) -> c_int {
            // SAFETY: the caller's promise.
            let lock = unsafe { &*rwlock };
            let attempt = || lock.$try_lock().is_some();
            or_busy(match named::may_be_counted() {
                true => {
                    let wait: Option<fn() -> bool> = None;
                    acquire_counted(lock, ObjectKind::$kind, attempt, wait)
                }
                false => attempt(),
            })
        }

        #[doc = concat!("`", stringify!($timed_name), "`.")]
        ///
        /// # Safety
        ///
        /// A lock; `at` is null or valid for reads.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $timed_name(rwlock: *mut RwLock, at: *const timespec) -> c_int {
            // SAFETY: the caller's promise.
            let lock = unsafe { &*rwlock };
            // SAFETY: the caller's promise.
            let deadline = match unsafe { deadline(at) } {
                Ok(deadline) => deadline,
                Err(error) => return error,
            };
            let wait = || lock.$lock_until(deadline).is_some();
            or_late(match named::may_be_counted() {
                true => {
                    let attempt = || lock.$try_lock().is_some();
                    acquire_counted(lock, ObjectKind::$kind, attempt, Some(wait))
                }
                false => wait(),
            })
        }
    )*};
}

acquisitions! {
    Read: ovl_rwlock_rdlock, ovl_rwlock_tryrdlock, ovl_rwlock_timedrdlock: read, try_read, read_until;
    Write: ovl_rwlock_wrlock, ovl_rwlock_trywrlock, ovl_rwlock_timedwrlock: write, try_write, write_until;
}

/// `ovl_rwlock_rdunlock`.
///
/// # Safety
///
/// A lock that the calling thread has acquired for reading, and has not released since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_rwlock_rdunlock(rwlock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*rwlock };
    // SAFETY: the caller's promise.
    release(lock, || unsafe { lock.unlock_read(()) });
    0
}

/// `ovl_rwlock_wrunlock`.
///
/// # Safety
///
/// A lock that the calling thread has acquired for writing, and has not released since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_rwlock_wrunlock(rwlock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*rwlock };
    // SAFETY: the caller's promise.
    release(lock, || unsafe { lock.unlock_write(()) });
    0
}
