//! The exported functions of `pthread_mutex_t`.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use libc::{EBUSY, EINVAL, EPERM, clockid_t, timespec};
use overlock_core::raw::RawLock;

use super::counted::lock_counted;
use super::{DESTROYED, Mutex, NORMAL, Wait, kept_kind, kind_of, me};
use crate::site::{Site, at_cache_line, with_site};
use crate::time::deadline;
use crate::{config, order, real, stat, summary};

with_site! {
    fn pthread_mutex_init(2) => init;
    fn pthread_mutex_lock(1) => lock;
    fn pthread_mutex_trylock(1) => trylock;
    fn pthread_mutex_timedlock(2) => timedlock;
    fn pthread_mutex_clocklock(3) => clocklock;
    // Old names.
    fn __pthread_mutex_init(2) => init;
    fn __pthread_mutex_lock(1) => lock;
    fn __pthread_mutex_trylock(1) => trylock;
    fn __pthread_mutex_destroy(1) => pthread_mutex_destroy;
    fn __pthread_mutex_unlock(1) => pthread_mutex_unlock;
}

pub(crate) unsafe extern "C" fn init(mutex: *mut Mutex, attr: *const c_int, site: Site) -> c_int {
    // SAFETY: the caller's promise: null, or an attributes object, which is an int with the kind in
    // its low bits.
    let attributes = unsafe { attr.as_ref() };
    let flags = attributes.map_or(NORMAL, |&flags| flags);
    match kind_of(flags) {
        Some(kind) if config::get().mutex != config::Lock::Glibc => {
            // SAFETY: the caller's promise: memory for a mutex that nobody uses.
            unsafe { mutex.write(Mutex::new(kind)) };
            summary::initialises(true);
            stat::initialised(mutex.addr(), site);
            // SAFETY: as above, written by now.
            order::initialised(unsafe { &*mutex }.object(), site);
            0
        }
        _ => {
            summary::initialises(false);
            match config::get().mutex {
                config::Lock::Glibc => stat::initialised(mutex.addr(), site),
                config::Lock::Overlock => stat::keeps(mutex.addr(), kept_kind(flags), site),
            }
            // SAFETY: the caller's promise.
            unsafe { real::pthread_mutex_init(mutex.cast(), attr.cast()) }
        }
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller's promise: a mutex.
    let mutex = unsafe { &*mutex };
    if !mutex.is_ours() {
        // SAFETY: as above; it is glibc's.
        return unsafe { real::pthread_mutex_destroy(mutex.as_glibcs()) };
    }
    mutex.update();
    if mutex.main().is_locked() {
        return EBUSY;
    }
    order::destroyed(mutex.address());
    mutex.kind.store(DESTROYED, Relaxed);
    0
}

at_cache_line!(".text.overlock.lock");
at_cache_line!(".text.overlock.mutex_unlock");

#[unsafe(link_section = ".text.overlock.lock")]
pub(crate) unsafe extern "C" fn lock(mutex: *mut Mutex, site: Site) -> c_int {
    // SAFETY: the caller's promise: a mutex.
    let mutex = unsafe { &*mutex };
    if mutex.generation.load(Relaxed) == config::lock_generation() {
        if mutex.is_plain() {
            if mutex.main().try_lock().is_none() {
                return lock_slowly(mutex);
            }
            return 0;
        }
        if mutex.knows_its_owner() {
            return lock_unless_mine(mutex);
        }
    }
    lock_counted(mutex, site)
}

/// The fast path for recursive and error-checking mutexes.
#[inline(never)]
extern "C" fn lock_unless_mine(mutex: &Mutex) -> c_int {
    if mutex.is_mine() {
        return mutex.acquire_again(mutex.kind(), Wait::Forever);
    }
    if mutex.main().try_lock().is_none() {
        lock_slowly(mutex);
    }
    mutex.owner.store(me(), Relaxed);
    0
}

// A function with the C calling convention, here and below, does not unwind, so its tail call is a
// jump.
#[inline(never)]
extern "C" fn lock_slowly(mutex: &Mutex) -> c_int {
    summary::meets();
    // A child may not have begun its generation.
    mutex.update();
    mutex.main().lock();
    0
}

#[inline(never)]
pub(super) extern "C" fn lock_generally(mutex: &Mutex, site: Site) -> c_int {
    mutex.acquire_any(site)
}

pub(crate) unsafe extern "C" fn trylock(mutex: *mut Mutex, site: Site) -> c_int {
    // SAFETY: the caller's promise: a mutex.
    let mutex = unsafe { &*mutex };
    if mutex.generation.load(Relaxed) == config::lock_generation() {
        let knows = mutex.knows_its_owner();
        if knows && mutex.is_mine() {
            return mutex.acquire_again(mutex.kind(), Wait::Not);
        }
        if knows || mutex.is_plain() {
            if mutex.main().try_lock().is_none() {
                return EBUSY;
            }
            if knows {
                mutex.owner.store(me(), Relaxed);
            }
            return 0;
        }
    }
    try_generally(mutex, site)
}

#[inline(never)]
extern "C" fn try_generally(mutex: &Mutex, site: Site) -> c_int {
    mutex.try_acquire_any(site)
}

pub(crate) unsafe extern "C" fn timedlock(
    mutex: *mut Mutex,
    at: *const timespec,
    site: Site,
) -> c_int {
    // SAFETY: the caller's promise: a mutex.
    let mutex = unsafe { &*mutex };
    // SAFETY: and a moment.
    let at = unsafe { &*at };
    if mutex.is_ours() {
        return mutex.acquire(Wait::Until(deadline(libc::CLOCK_REALTIME, at, site)), site);
    }
    // SAFETY: as above; it is glibc's.
    mutex.count_glibcs(site, || unsafe {
        real::pthread_mutex_timedlock(mutex.as_glibcs(), at)
    })
}

unsafe extern "C" fn clocklock(
    mutex: *mut Mutex,
    clock: clockid_t,
    at: *const timespec,
    site: Site,
) -> c_int {
    // SAFETY: the caller's promise: a mutex.
    let mutex = unsafe { &*mutex };
    // SAFETY: and a moment.
    let at = unsafe { &*at };
    if ![libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC].contains(&clock) {
        return EINVAL;
    }
    if mutex.is_ours() {
        return mutex.acquire(Wait::Until(deadline(clock, at, site)), site);
    }
    // SAFETY: as above; it is glibc's.
    mutex.count_glibcs(site, || unsafe {
        real::pthread_mutex_clocklock(mutex.as_glibcs(), clock, at)
    })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(link_section = ".text.overlock.mutex_unlock")]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller's promise: a mutex.
    let mutex = unsafe { &*mutex };
    let is_quick = mutex.generation.load(Relaxed) == config::unlock_generation()
        && mutex.observed.load(Relaxed) == 0;
    if is_quick {
        // Unlocking a free mutex has no effect, and as in glibc it is no error.
        if mutex.is_plain() && mutex.main().is_locked() {
            // SAFETY: the caller's promise: it owns the mutex.
            unsafe { mutex.main().unlock(()) };
            return 0;
        }
        if mutex.knows_its_owner() {
            return unlock_if_mine(mutex);
        }
    }
    unlock_generally(mutex)
}

/// The fast path for recursive and error-checking mutexes.
#[inline(never)]
extern "C" fn unlock_if_mine(mutex: &Mutex) -> c_int {
    if !mutex.is_mine() {
        return EPERM;
    }
    let count = mutex.count.load(Relaxed);
    if count > 0 {
        mutex.count.store(count - 1, Relaxed);
        return 0;
    }
    mutex.owner.store(0, Relaxed);
    // SAFETY: the caller owns it.
    unsafe { mutex.main().unlock(()) };
    0
}

#[inline(never)]
extern "C" fn unlock_generally(mutex: &Mutex) -> c_int {
    mutex.release_any()
}
