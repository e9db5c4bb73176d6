//! The exported functions of `pthread_rwlock_t`.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

use libc::{CLOCK_REALTIME, clockid_t, timespec};
use overlock_core::Deadline;
use overlock_core::raw::RawRwLock;
use overlock_core::rw::overlock_rw::Passing;
use overlock_shared::ObjectKind;

use super::{Attributes, RwLock, counted};
use crate::order::How;
use crate::site::{Site, at_cache_line, with_site};
use crate::time::deadline;
use crate::{config, order, probes, real, stat, summary, thread};

with_site! {
    fn pthread_rwlock_init(2) => init;
    fn pthread_rwlock_rdlock(1) => rdlock;
    fn pthread_rwlock_tryrdlock(1) => tryrdlock;
    fn pthread_rwlock_timedrdlock(2) => timedrdlock;
    fn pthread_rwlock_clockrdlock(3) => clockrdlock;
    fn pthread_rwlock_wrlock(1) => wrlock;
    fn pthread_rwlock_trywrlock(1) => trywrlock;
    fn pthread_rwlock_timedwrlock(2) => timedwrlock;
    fn pthread_rwlock_clockwrlock(3) => clockwrlock;
    // Old names.
    fn __pthread_rwlock_init(2) => init;
    fn __pthread_rwlock_rdlock(1) => rdlock;
    fn __pthread_rwlock_tryrdlock(1) => tryrdlock;
    fn __pthread_rwlock_wrlock(1) => wrlock;
    fn __pthread_rwlock_trywrlock(1) => trywrlock;
    fn __pthread_rwlock_destroy(1) => pthread_rwlock_destroy;
    fn __pthread_rwlock_unlock(1) => pthread_rwlock_unlock;
}

unsafe extern "C" fn init(lock: *mut RwLock, attr: *const Attributes, site: Site) -> c_int {
    let (kind, shared) = if attr.is_null() {
        (0, 0)
    } else {
        // SAFETY: the caller's promise: an attributes object.
        let attr = unsafe { &*attr };
        (attr.kind as u32, attr.shared)
    };
    let is_glibcs = config::get().rwlock == config::Lock::Glibc;
    summary::initialises(shared == 0 && !is_glibcs);
    if shared != 0 || is_glibcs {
        match is_glibcs {
            true => stat::initialised(lock.addr(), site),
            false => stat::keeps(lock.addr(), ObjectKind::KeptShared, site),
        }
        // SAFETY: the caller's promise.
        return unsafe { real::pthread_rwlock_init(lock.cast(), attr.cast()) };
    }
    // SAFETY: the caller's promise: memory for a lock that nobody uses.
    unsafe { lock.write(RwLock::new(kind)) };
    // SAFETY: as above, written by now.
    let lock = unsafe { &*lock }.object();
    order::initialised(lock, site);
    stat::initialised_marked(lock, site);
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_rwlock_destroy`: does nothing, as in glibc.
pub unsafe extern "C" fn pthread_rwlock_destroy(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    probes::rwlock_destroy(lock.address());
    if lock.is_ours() {
        order::destroyed(core::ptr::from_ref(lock).addr());
        if config::get().lockdep {
            // Some programs go on to use it: then it is a new lock.
            lock.object().mark.store(0, Relaxed);
        }
        return 0;
    }
    stat::destroyed(lock.address());
    // SAFETY: as above; it is glibc's.
    unsafe { real::pthread_rwlock_destroy(lock.as_glibcs()) }
}

at_cache_line!(".text.overlock.rdlock");
at_cache_line!(".text.overlock.wrlock");
at_cache_line!(".text.overlock.rwlock_unlock");

#[unsafe(link_section = ".text.overlock.rdlock")]
unsafe extern "C" fn rdlock(lock: *mut RwLock, site: Site) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    probes::rdlock_entry(lock.address());
    if !lock.is_plain(config::rw_generation()) {
        return counted::read(lock, site);
    }
    if !lock.recommended().come_in() {
        return rdlock_slowly(lock, site);
    }
    thread::change_reads(|reads| reads.wrapping_add(1));
    probes::rdlock_acquire_read(lock.address());
    0
}

// Functions with the C calling convention, here and below, do not unwind, so a tail call of one is
// a jump: the fast path saves no registers.
#[cold]
#[inline(never)]
extern "C" fn rdlock_slowly(lock: &RwLock, site: Site) -> c_int {
    lock.recommended().back_out();
    rdlock_generally(lock, site)
}

#[inline(never)]
pub(super) extern "C" fn rdlock_generally(lock: &RwLock, site: Site) -> c_int {
    let read = || lock.has_read(lock.try_take_share(Passing::Never));
    if lock.try_checked(lock.how_read(), site, read) {
        probes::rdlock_acquire_read(lock.address());
        return 0;
    }
    if lock.is_ours() {
        return lock.read(None, site);
    }
    rdlock_glibcs(lock, site)
}

// Apart, here and below, so that a wait for one of ours takes no more stack.
#[inline(never)]
extern "C" fn rdlock_glibcs(lock: &RwLock, site: Site) -> c_int {
    // SAFETY: the reference is to a lock, which is glibc's.
    let wait = || unsafe { real::pthread_rwlock_rdlock(lock.as_glibcs()) };
    let result = lock.count_glibcs(ObjectKind::Read, site, wait);
    if result == 0 {
        probes::rdlock_acquire_read(lock.address());
    }
    result
}

unsafe extern "C" fn tryrdlock(lock: *mut RwLock, site: Site) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    if lock.is_ours() {
        return lock.try_read(site);
    }
    // SAFETY: as above; it is glibc's.
    unsafe { real::pthread_rwlock_tryrdlock(lock.as_glibcs()) }
}

#[unsafe(link_section = ".text.overlock.wrlock")]
unsafe extern "C" fn wrlock(lock: *mut RwLock, site: Site) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    probes::wrlock_entry(lock.address());
    if !lock.write_quickly() {
        return counted::write(lock, site);
    }
    probes::wrlock_acquire_write(lock.address());
    0
}

#[inline(never)]
pub(super) extern "C" fn wrlock_generally(lock: &RwLock, site: Site) -> c_int {
    if lock.try_checked(How::EXCLUSIVE, site, || lock.has_written(lock.try_take())) {
        probes::wrlock_acquire_write(lock.address());
        return 0;
    }
    if lock.is_ours() {
        return lock.write(None, site);
    }
    wrlock_glibcs(lock, site)
}

#[inline(never)]
extern "C" fn wrlock_glibcs(lock: &RwLock, site: Site) -> c_int {
    // SAFETY: as above.
    let wait = || unsafe { real::pthread_rwlock_wrlock(lock.as_glibcs()) };
    let result = lock.count_glibcs(ObjectKind::Write, site, wait);
    if result == 0 {
        probes::wrlock_acquire_write(lock.address());
    }
    result
}

unsafe extern "C" fn trywrlock(lock: *mut RwLock, site: Site) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    if lock.is_ours() {
        return lock.try_write(site);
    }
    // SAFETY: as above; it is glibc's.
    unsafe { real::pthread_rwlock_trywrlock(lock.as_glibcs()) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(link_section = ".text.overlock.rwlock_unlock")]
pub unsafe extern "C" fn pthread_rwlock_unlock(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise: a lock.
    let lock = unsafe { &*lock };
    probes::rwlock_unlock(lock.address());
    if lock.release_quickly() {
        return 0;
    }
    unlock_generally(lock)
}

#[inline(never)]
extern "C" fn unlock_generally(lock: &RwLock) -> c_int {
    if lock.is_checked() && lock.recommended().is_locked() && order::releases(lock.address()) {
        lock.release_raw();
        return 0;
    }
    if lock.is_ours() {
        lock.release();
        return 0;
    }
    // Of readers it is not known who is the last.
    if config::get().profile && lock.writer_of_glibcs() != 0 {
        stat::releases(lock.address(), None, false);
    }
    // SAFETY: as above.
    unsafe { real::pthread_rwlock_unlock(lock.as_glibcs()) }
}

/// The fast path with the validator.
impl RwLock {
    #[inline(always)]
    fn is_checked(&self) -> bool {
        self.is_plain(config::rw_check_generation())
    }

    /// Tries to acquire a lock about which there is nothing to find out, by `attempt`, which
    /// returns 0 or an errno.
    #[inline(always)]
    fn try_checked(&self, how: How, site: Site, attempt: impl FnOnce() -> c_int) -> bool {
        if !self.is_checked() {
            return false;
        }
        let object = self.object();
        let Some(class) = order::class_if_last(object) else {
            return false;
        };
        let is_taken = attempt() == 0;
        if is_taken {
            order::has(object, class, how, site);
        }
        is_taken
    }
}

impl RwLock {
    /// As with mutexes: acquires one of glibc's by `wait`, with statistics if the configuration
    /// leaves it in place.
    fn count_glibcs(&self, kind: ObjectKind, site: Site, wait: impl FnOnce() -> c_int) -> c_int {
        if config::get().rwlock != config::Lock::Glibc {
            return wait();
        }
        let lock = self.as_glibcs();
        let attempt = || match kind {
            // SAFETY: the reference is to a lock, which is glibc's.
            ObjectKind::Read => unsafe { real::pthread_rwlock_tryrdlock(lock) },
            // SAFETY: as above.
            _ => unsafe { real::pthread_rwlock_trywrlock(lock) },
        };
        let owner = || self.writer_of_glibcs();
        stat::count_theirs(self.address(), (kind, site), owner, attempt, wait)
    }

    /// The id of the thread that has one of glibc's for writing, which that keeps at offset 24; or
    /// 0.
    fn writer_of_glibcs(&self) -> u32 {
        self.observed.load(Relaxed)
    }
}

/// The timed functions: calls `ours`, or `glibcs` for a lock of glibc's. Returns 0 or an errno.
///
/// # Safety
///
/// `lock` is a lock, `at` a `timespec`, and `glibcs` may be called for a lock of glibc's.
unsafe fn timed(
    (lock, clock, at, site): (*mut RwLock, clockid_t, *const timespec, Site),
    kind: ObjectKind,
    ours: impl FnOnce(&RwLock, Option<Deadline>, Site) -> c_int,
    glibcs: impl FnOnce(*mut c_void) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*lock };
    if !lock.is_ours() {
        return lock.count_glibcs(kind, site, || glibcs(lock.as_glibcs()));
    }
    // SAFETY: as above.
    match deadline(clock, unsafe { &*at }, site) {
        Ok(until) => ours(lock, Some(until), site),
        Err(error) => error,
    }
}

unsafe extern "C" fn timedrdlock(lock: *mut RwLock, at: *const timespec, site: Site) -> c_int {
    // SAFETY: the caller's promises, in each.
    let glibcs = |lock| unsafe { real::pthread_rwlock_timedrdlock(lock, at) };
    // SAFETY: the caller's promises.
    unsafe {
        timed(
            (lock, CLOCK_REALTIME, at, site),
            ObjectKind::Read,
            RwLock::read,
            glibcs,
        )
    }
}

unsafe extern "C" fn timedwrlock(lock: *mut RwLock, at: *const timespec, site: Site) -> c_int {
    // SAFETY: the caller's promises, in each.
    let glibcs = |lock| unsafe { real::pthread_rwlock_timedwrlock(lock, at) };
    // SAFETY: the caller's promises.
    unsafe {
        timed(
            (lock, CLOCK_REALTIME, at, site),
            ObjectKind::Write,
            RwLock::write,
            glibcs,
        )
    }
}

unsafe extern "C" fn clockrdlock(
    lock: *mut RwLock,
    clock: clockid_t,
    at: *const timespec,
    site: Site,
) -> c_int {
    // SAFETY: the caller's promises, in each.
    let glibcs = |lock| unsafe { real::pthread_rwlock_clockrdlock(lock, clock, at) };
    // SAFETY: the caller's promises.
    unsafe {
        timed(
            (lock, clock, at, site),
            ObjectKind::Read,
            RwLock::read,
            glibcs,
        )
    }
}

unsafe extern "C" fn clockwrlock(
    lock: *mut RwLock,
    clock: clockid_t,
    at: *const timespec,
    site: Site,
) -> c_int {
    // SAFETY: the caller's promises, in each.
    let glibcs = |lock| unsafe { real::pthread_rwlock_clockwrlock(lock, clock, at) };
    // SAFETY: the caller's promises.
    unsafe {
        timed(
            (lock, clock, at, site),
            ObjectKind::Write,
            RwLock::write,
            glibcs,
        )
    }
}
