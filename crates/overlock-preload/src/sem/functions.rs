//! The exported functions of `sem_t`.

use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use libc::{CLOCK_REALTIME, EAGAIN, EINVAL, clockid_t, timespec};
use overlock_shared::ObjectKind;

use super::{MOST, Sem, value};
use crate::site::{Site, with_site};
use crate::time::deadline;
use crate::{cancel, config, order, real, stat};

/// Returns what `sem_*` return for 0 or an errno, and sets errno.
fn result(error: c_int) -> c_int {
    if error == 0 {
        return 0;
    }
    // SAFETY: it has no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the calling thread's own.
    unsafe { errno.write(error) };
    -1
}

/// Waits for a semaphore of glibc's by `wait`, with statistics if the configuration leaves it in
/// place. One that has a value is taken at once, and is no wait.
fn wait_for_theirs(sem: &Sem, site: Site, wait: impl FnOnce() -> c_int) -> c_int {
    let own = core::ptr::from_ref(sem).addr();
    if config::get().stat && config::leaves_others() {
        // The attempt is no cancellation point.
        cancel::act();
        // SAFETY: the reference is to a semaphore, which is glibc's.
        let taken = stat::keeping_errno(|| unsafe { real::sem_trywait(sem.as_glibcs()) });
        if taken == 0 {
            stat::usage::is_taken(own, site);
            return 0;
        }
    }
    stat::event_of_theirs(own, ObjectKind::Sem, site, |error| *error != 0, wait)
}

/// The timed waits: ours, or `glibcs` for a semaphore of glibc's.
///
/// # Safety
///
/// `sem` is a semaphore, `at` a `timespec`, and `glibcs` may be called for a semaphore of glibc's.
unsafe fn wait_until(
    sem: *mut Sem,
    (clock, at): (clockid_t, *const timespec),
    site: Site,
    glibcs: impl FnOnce(*mut c_void) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let sem = unsafe { &*sem };
    order::may_sleep();
    if !sem.is_ours() {
        return wait_for_theirs(sem, site, || glibcs(sem.as_glibcs()));
    }
    // SAFETY: as above.
    let at = unsafe { &*at };
    result(match deadline(clock, at, site) {
        Ok(until) => sem.wait(Some(until), site),
        Err(error) => error,
    })
}

with_site! {
    fn sem_init(3) => init;
    fn sem_wait(1) => wait;
    fn sem_timedwait(2) => timedwait;
    fn sem_clockwait(3) => clockwait;
}

unsafe extern "C" fn init(sem: *mut Sem, shared: c_int, value: c_uint, site: Site) -> c_int {
    let leaves = config::leaves_others();
    if shared != 0 || leaves {
        match leaves {
            true => stat::initialised(sem.addr(), site),
            false => stat::keeps(sem.addr(), ObjectKind::KeptShared, site),
        }
        // SAFETY: the caller's promise.
        return unsafe { real::sem_init(sem.cast(), shared, value) };
    }
    if value > MOST {
        return result(EINVAL);
    }
    let new = Sem {
        word: AtomicU64::new(value.into()),
        shared: AtomicU32::new(0),
    };
    // SAFETY: the caller's promise: memory for a semaphore that nobody uses.
    unsafe { sem.write(new) };
    stat::initialised(sem.addr(), site);
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `sem_destroy`: does nothing, as in glibc.
pub unsafe extern "C" fn sem_destroy(_sem: *mut Sem) -> c_int {
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `sem_post`. Safe to call from a signal handler.
pub unsafe extern "C" fn sem_post(sem: *mut Sem) -> c_int {
    // SAFETY: the caller's promise: a semaphore.
    let sem = unsafe { &*sem };
    if sem.is_ours() {
        return result(sem.post());
    }
    let own = core::ptr::from_ref(sem).addr();
    stat::signals_theirs(own, stat::usage::has_posted);
    // SAFETY: as above; it is glibc's.
    unsafe { real::sem_post(sem.as_glibcs()) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sem_trywait(sem: *mut Sem) -> c_int {
    // SAFETY: the caller's promise: a semaphore.
    let sem = unsafe { &*sem };
    if sem.is_ours() {
        if !sem.take(1) {
            return result(EAGAIN);
        }
        stat::usage::is_taken(core::ptr::from_ref(sem).addr(), 0);
        return 0;
    }
    // SAFETY: as above; it is glibc's.
    unsafe { real::sem_trywait(sem.as_glibcs()) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sem_getvalue(sem: *mut Sem, to: *mut c_int) -> c_int {
    // SAFETY: the caller's promise: a semaphore.
    let sem = unsafe { &*sem };
    if sem.is_ours() {
        // SAFETY: the caller's promise. (At most MOST.)
        unsafe { to.write(value(sem.word.load(Relaxed)) as c_int) };
        return 0;
    }
    // SAFETY: as above; it is glibc's.
    unsafe { real::sem_getvalue(sem.as_glibcs(), to) }
}

unsafe extern "C-unwind" fn wait(sem: *mut Sem, site: Site) -> c_int {
    // SAFETY: the caller's promise: a semaphore.
    let sem = unsafe { &*sem };
    order::may_sleep();
    if sem.is_ours() {
        return result(sem.wait(None, site));
    }
    // SAFETY: as above; it is glibc's.
    wait_for_theirs(sem, site, || unsafe { real::sem_wait(sem.as_glibcs()) })
}

unsafe extern "C-unwind" fn timedwait(sem: *mut Sem, at: *const timespec, site: Site) -> c_int {
    // SAFETY: the caller's promises, in each.
    let glibcs = |sem| unsafe { real::sem_timedwait(sem, at) };
    // SAFETY: the caller's promises.
    unsafe { wait_until(sem, (CLOCK_REALTIME, at), site, glibcs) }
}

unsafe extern "C-unwind" fn clockwait(
    sem: *mut Sem,
    clock: clockid_t,
    at: *const timespec,
    site: Site,
) -> c_int {
    // SAFETY: the caller's promises, in each.
    let glibcs = |sem| unsafe { real::sem_clockwait(sem, clock, at) };
    // SAFETY: the caller's promises.
    unsafe { wait_until(sem, (clock, at), site, glibcs) }
}
