//! The exported functions of `pthread_mutex_t`.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use libc::{EBUSY, EINVAL, EPERM, clockid_t, timespec};
use overlock_core::raw::RawLock;

use super::counted::{lock_counted, try_counted};
use super::{DESTROYED, Mutex, NORMAL, Wait, kept_kind, kind_of};
use crate::order::How;
use crate::site::{Site, at_cache_line, with_site};
use crate::time::deadline;
use crate::{config, order, probes, real, stat, summary};

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
            // SAFETY: as above, written by now.
            let lock = unsafe { &*mutex }.object();
            order::initialised(lock, site);
            stat::initialised_marked(lock, site);
            probes::mutex_init(mutex.addr());
            0
        }
        _ => {
            summary::initialises(false);
            match config::get().mutex {
                config::Lock::Glibc => stat::initialised(mutex.addr(), site),
                config::Lock::Overlock => stat::keeps(mutex.addr(), kept_kind(flags), site),
            }
            // SAFETY: the caller's promise.
            let error = unsafe { real::pthread_mutex_init(mutex.cast(), attr.cast()) };
            probes::mutex_init(mutex.addr());
            error
        }
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller's promise: a mutex.
    let mutex = unsafe { &*mutex };
    probes::mutex_destroy(mutex.address());
    if !mutex.is_ours() {
        stat::destroyed(mutex.address());
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
    probes::mutex_entry(mutex.address());
    if mutex.generation.load(Relaxed) == config::lock_generation() {
        if mutex.is_plain() {
            if mutex.main().try_lock().is_none() {
                return lock_slowly(mutex);
            }
            probes::mutex_acquired(mutex.address());
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
        return acquired(mutex, mutex.acquire_again(mutex.kind(), Wait::Forever));
    }
    if mutex.main().try_lock().is_none() {
        lock_slowly(mutex);
    } else {
        probes::mutex_acquired(mutex.address());
    }
    mutex.set_owner();
    0
}

// A function with the C calling convention, here and below, does not unwind, so its tail call is a
// jump.
#[cold]
#[inline(never)]
extern "C" fn lock_slowly(mutex: &Mutex) -> c_int {
    summary::meets();
    // A child may not have begun its generation.
    mutex.update();
    mutex.main().lock();
    acquired(mutex, 0)
}

#[inline(never)]
pub(super) extern "C" fn lock_generally(mutex: &Mutex, site: Site) -> c_int {
    if mutex.try_checked(site) {
        return acquired(mutex, 0);
    }
    acquired(mutex, mutex.acquire_any(site))
}

/// Passes on the result of an acquisition by `pthread_mutex_lock`, or after a condition.
#[inline(always)]
pub(super) fn acquired(mutex: &Mutex, result: c_int) -> c_int {
    if result == 0 {
        probes::mutex_acquired(mutex.address());
    }
    result
}

/// The same of the timed functions.
fn timed(mutex: &Mutex, result: c_int) -> c_int {
    if result == 0 {
        probes::mutex_timedlock_acquired(mutex.address());
    }
    result
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
                mutex.set_owner();
            }
            return 0;
        }
    }
    match try_counted(mutex, site) {
        Some(result) => result,
        None => try_generally(mutex, site),
    }
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
    probes::mutex_timedlock_entry(mutex.address(), core::ptr::from_ref(at).addr());
    if mutex.is_ours() {
        let until = Wait::Until(deadline(libc::CLOCK_REALTIME, at, site));
        return timed(mutex, mutex.acquire(until, site));
    }
    // SAFETY: as above; it is glibc's.
    let wait = || unsafe { real::pthread_mutex_timedlock(mutex.as_glibcs(), at) };
    timed(mutex, mutex.count_glibcs(site, wait))
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
    let moment = core::ptr::from_ref(at).addr();
    probes::mutex_clocklock_entry(mutex.address(), clock as usize, moment);
    if ![libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC].contains(&clock) {
        return EINVAL;
    }
    if mutex.is_ours() {
        let until = Wait::Until(deadline(clock, at, site));
        return timed(mutex, mutex.acquire(until, site));
    }
    // SAFETY: as above; it is glibc's.
    let wait = || unsafe { real::pthread_mutex_clocklock(mutex.as_glibcs(), clock, at) };
    timed(mutex, mutex.count_glibcs(site, wait))
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
            probes::mutex_release(mutex.address());
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
    probes::mutex_release(mutex.address());
    // SAFETY: the caller owns it.
    unsafe { mutex.main().unlock(()) };
    0
}

#[inline(never)]
extern "C" fn unlock_generally(mutex: &Mutex) -> c_int {
    if mutex.is_checked() && mutex.main().is_locked() && order::releases(mutex.address()) {
        probes::mutex_release(mutex.address());
        // SAFETY: the caller owns it: it was seen to acquire it.
        unsafe { mutex.main().unlock(()) };
        return 0;
    }
    mutex.release_any()
}

/// The fast path with the validator.
impl Mutex {
    #[inline(always)]
    fn is_checked(&self) -> bool {
        self.generation.load(Relaxed) == config::check_generation() && self.is_plain()
    }

    /// Tries to acquire a lock about which there is nothing to find out.
    #[inline(always)]
    fn try_checked(&self, site: Site) -> bool {
        if !self.is_checked() {
            return false;
        }
        let object = self.object();
        let Some(class) = order::class_if_last(object) else {
            return false;
        };
        let is_taken = self.main().try_lock().is_some();
        if is_taken {
            order::has(object, class, How::EXCLUSIVE, site);
        }
        is_taken
    }
}
