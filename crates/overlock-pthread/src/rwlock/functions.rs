//! What programs call.

use core::ffi::{c_int, c_void};

use libc::{CLOCK_REALTIME, clockid_t, timespec};
use overlock::core::Instant;

use super::{Attributes, RwLock};
use crate::time::deadline;
use crate::{config, real};

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_rwlock_init`.
pub unsafe extern "C" fn pthread_rwlock_init(lock: *mut RwLock, attr: *const Attributes) -> c_int {
    let (kind, shared) = if attr.is_null() {
        (0, 0)
    } else {
        // SAFETY: the caller's promise: an attributes object.
        let attr = unsafe { &*attr };
        (attr.kind as u32, attr.shared)
    };
    if shared != 0 || config::get().rwlock == config::RwLock::Glibc {
        // SAFETY: the caller's promise.
        return unsafe { real::pthread_rwlock_init(lock.cast(), attr.cast()) };
    }
    // SAFETY: the caller's promise: memory for a lock that nobody uses.
    unsafe { lock.write(RwLock::new(kind)) };
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_rwlock_destroy`: as in glibc, nothing.
pub unsafe extern "C" fn pthread_rwlock_destroy(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    if lock.is_ours() {
        return 0;
    }
    // SAFETY: as above; it is glibc's.
    unsafe { real::pthread_rwlock_destroy(lock.as_glibcs()) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_rwlock_rdlock`.
pub unsafe extern "C" fn pthread_rwlock_rdlock(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    if lock.read_quickly() {
        return 0;
    }
    if lock.is_ours() {
        return lock.read(None);
    }
    // SAFETY: as above; it is glibc's.
    unsafe { real::pthread_rwlock_rdlock(lock.as_glibcs()) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_rwlock_tryrdlock`.
pub unsafe extern "C" fn pthread_rwlock_tryrdlock(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    if lock.is_ours() {
        return lock.try_read();
    }
    // SAFETY: as above; it is glibc's.
    unsafe { real::pthread_rwlock_tryrdlock(lock.as_glibcs()) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_rwlock_wrlock`.
pub unsafe extern "C" fn pthread_rwlock_wrlock(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    if lock.write_quickly() {
        return 0;
    }
    if lock.is_ours() {
        return lock.write(None);
    }
    // SAFETY: as above; it is glibc's.
    unsafe { real::pthread_rwlock_wrlock(lock.as_glibcs()) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_rwlock_trywrlock`.
pub unsafe extern "C" fn pthread_rwlock_trywrlock(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    if lock.is_ours() {
        return lock.try_write();
    }
    // SAFETY: as above; it is glibc's.
    unsafe { real::pthread_rwlock_trywrlock(lock.as_glibcs()) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_rwlock_unlock`.
pub unsafe extern "C" fn pthread_rwlock_unlock(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    if lock.release_quickly() {
        return 0;
    }
    if lock.is_ours() {
        lock.release();
        return 0;
    }
    // SAFETY: as above; it is glibc's.
    unsafe { real::pthread_rwlock_unlock(lock.as_glibcs()) }
}

/// The timed functions: `ours`, or glibc's.
///
/// # Safety
///
/// `lock` is a lock, `at` a moment, and `glibcs` may be called for a lock of glibc's.
unsafe fn timed(
    lock: *mut RwLock,
    (clock, at): (clockid_t, *const timespec),
    ours: impl FnOnce(&RwLock, Option<Instant>) -> c_int,
    glibcs: impl FnOnce(*mut c_void) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*lock };
    if !lock.is_ours() {
        return glibcs(lock.as_glibcs());
    }
    // SAFETY: as above.
    match deadline(clock, unsafe { &*at }) {
        Ok(until) => ours(lock, Some(until)),
        Err(error) => error,
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_rwlock_timedrdlock`.
pub unsafe extern "C" fn pthread_rwlock_timedrdlock(
    lock: *mut RwLock,
    at: *const timespec,
) -> c_int {
    // SAFETY: the caller's promises, in each.
    let glibcs = |lock| unsafe { real::pthread_rwlock_timedrdlock(lock, at) };
    // SAFETY: the caller's promises.
    unsafe { timed(lock, (CLOCK_REALTIME, at), RwLock::read, glibcs) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_rwlock_timedwrlock`.
pub unsafe extern "C" fn pthread_rwlock_timedwrlock(
    lock: *mut RwLock,
    at: *const timespec,
) -> c_int {
    // SAFETY: the caller's promises, in each.
    let glibcs = |lock| unsafe { real::pthread_rwlock_timedwrlock(lock, at) };
    // SAFETY: the caller's promises.
    unsafe { timed(lock, (CLOCK_REALTIME, at), RwLock::write, glibcs) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_rwlock_clockrdlock`.
pub unsafe extern "C" fn pthread_rwlock_clockrdlock(
    lock: *mut RwLock,
    clock: clockid_t,
    at: *const timespec,
) -> c_int {
    // SAFETY: the caller's promises, in each.
    let glibcs = |lock| unsafe { real::pthread_rwlock_clockrdlock(lock, clock, at) };
    // SAFETY: the caller's promises.
    unsafe { timed(lock, (clock, at), RwLock::read, glibcs) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_rwlock_clockwrlock`.
pub unsafe extern "C" fn pthread_rwlock_clockwrlock(
    lock: *mut RwLock,
    clock: clockid_t,
    at: *const timespec,
) -> c_int {
    // SAFETY: the caller's promises, in each.
    let glibcs = |lock| unsafe { real::pthread_rwlock_clockwrlock(lock, clock, at) };
    // SAFETY: the caller's promises.
    unsafe { timed(lock, (clock, at), RwLock::write, glibcs) }
}

/// Defines the old names of functions, by which old programs and libraries call them.
macro_rules! old_names {
    ($($old:ident, $new:ident($($arg:ident: $type:ty),*);)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[doc = concat!("An old name of [`", stringify!($new), "`].")]
        pub unsafe extern "C" fn $old($($arg: $type),*) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { $new($($arg),*) }
        }
    )*};
}

old_names! {
    __pthread_rwlock_init, pthread_rwlock_init(lock: *mut RwLock, attr: *const Attributes);
    __pthread_rwlock_destroy, pthread_rwlock_destroy(lock: *mut RwLock);
    __pthread_rwlock_rdlock, pthread_rwlock_rdlock(lock: *mut RwLock);
    __pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock(lock: *mut RwLock);
    __pthread_rwlock_wrlock, pthread_rwlock_wrlock(lock: *mut RwLock);
    __pthread_rwlock_trywrlock, pthread_rwlock_trywrlock(lock: *mut RwLock);
    __pthread_rwlock_unlock, pthread_rwlock_unlock(lock: *mut RwLock);
}
