//! `pthread_cond_t`: condition variables of overlock-core in glibc's objects.
//!
//! # Layout
//!
//! 48 bytes, all zero by the static initialiser.
//!
//! | offset | field | who writes it |
//! |---|---|
//! | 0 | `cond`: the condition variable of overlock-core, 8 bytes | its operations |
//! | 28 | `newer_flags`: 0 here; glibc 2.41 and later keep the flags of a shared one there | glibc |
//! | 36 | `flags`: as in glibc 2.40 and earlier, bit 0 shared between processes, bit 1 the clock is the monotonic one | `pthread_cond_init` |
//! | 40 | `generation`: see [`crate::fork`] | its first user in a generation |
//!
//! A process-shared condition variable is glibc's, and so are all of them if [nothing of ours is
//! behind any object](config). glibc would release the mutex in its own format, so it never sees a
//! mutex that is ours: the waiter passes a hidden mutex of glibc's, which the signaller holds while
//! it signals. (A shared condition with a private mutex makes sense within one process only.)
//!
//! All others wait with any mutex, ours or glibc's: a condition variable of overlock-core only
//! needs a lock that can be released and acquired.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, EINVAL, ETIMEDOUT, clockid_t, timespec};
use overlock::Linux;
use overlock_core::Deadline;
use overlock_core::raw::RawFork;
use overlock_core::sleep::Condvar;
use overlock_shared::ObjectKind;

use crate::mutex::{Mutex, raw::Any};
use crate::site::{Site, with_site};
use crate::time::deadline;
use crate::{cancel, config, fork, order, probes, real, stat};

/// The program's object: see the [module's page](self).
#[derive(Debug)]
#[repr(C)]
pub struct Cond {
    cond: Condvar<Linux>,
    unused: [u32; 5],
    newer_flags: AtomicU32,
    between: u32,
    flags: AtomicU32,
    generation: AtomicU32,
}

const _: () = assert!(size_of::<Cond>() <= size_of::<libc::pthread_cond_t>());
const _: () = assert!(core::mem::offset_of!(Cond, newer_flags) == 28);
const _: () = assert!(core::mem::offset_of!(Cond, flags) == 36);

const SHARED: u32 = 1;
const MONOTONIC: u32 = 2;

/// A mutex that replaces ours where glibc waits.
struct Hidden(core::cell::UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex of glibc's, used through its functions only.
unsafe impl Sync for Hidden {}

static HIDDEN: [Hidden; 16] =
    [const { Hidden(core::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)) }; 16];

/// Reinitialises the hidden mutexes after fork() in the child, where no thread holds any.
pub(crate) fn after_fork() {
    for hidden in &HIDDEN {
        // SAFETY: this is the child's only thread.
        unsafe { *hidden.0.get() = libc::PTHREAD_MUTEX_INITIALIZER };
    }
}

impl Cond {
    /// Whether it is glibc's.
    fn is_glibcs(&self) -> bool {
        // Ours has the bit in neither word. glibc's has it in the word of its version, and then the
        // other word does not matter.
        // Relaxed: written before the condition variable is used.
        let flags = self.flags.load(Relaxed) | self.newer_flags.load(Relaxed);
        flags & SHARED != 0 || config::leaves_others()
    }

    fn clock(&self) -> clockid_t {
        match self.flags.load(Relaxed) & MONOTONIC {
            0 => CLOCK_REALTIME,
            _ => CLOCK_MONOTONIC,
        }
    }

    fn as_glibcs(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    /// The hidden mutex for this condition variable, which is glibc's.
    fn hidden(&self) -> *mut c_void {
        let index = core::ptr::from_ref(self).addr() / 64 % HIDDEN.len();
        HIDDEN[index].0.get().cast()
    }

    /// Returns the condition variable, updated to the process's generation.
    fn cond(&self) -> &Condvar<Linux> {
        // SAFETY: no other thread of the earlier generation exists.
        fork::update(&self.generation, || unsafe { self.cond.forget_waiters() });
        &self.cond
    }

    /// Waits for a notification of a condition variable that is ours. Returns 0 or an errno.
    fn wait(&self, mutex: &Mutex, until: Option<Deadline>, site: Site) -> c_int {
        match config::get().stat {
            true => self.wait_counted(mutex, until, site),
            false => self.wait_by::<false>(mutex, until, site),
        }
    }

    /// The same with statistics, which take more of the stack.
    #[cold]
    #[inline(never)]
    fn wait_counted(&self, mutex: &Mutex, until: Option<Deadline>, site: Site) -> c_int {
        self.wait_by::<true>(mutex, until, site)
    }

    fn wait_by<const COUNTED: bool>(
        &self,
        mutex: &Mutex,
        until: Option<Deadline>,
        site: Site,
    ) -> c_int {
        let error = mutex.check_owner();
        if error != 0 {
            return error;
        }
        let token = cancel::enter();
        let address = core::ptr::from_ref(mutex).addr();
        order::sleeps_releasing(address, site);
        let own = core::ptr::from_ref(self).addr();
        let mut waits = None;
        if COUNTED {
            waits = stat::Event::begin_held(own, ObjectKind::Cond, site);
            stat::usage::waits_for(own);
        }
        let any = Any::of(mutex);
        Any::acquired_at(site, own);
        // SAFETY: the caller's promise: it owns the mutex.
        let (acquired, notified) = unsafe { self.cond().wait_limited(any, 0, until, token) };
        if COUNTED {
            stat::usage::comes_back(own, notified);
        }
        if let Some(waits) = waits {
            let as_lock = stat::usage::is_lock(own);
            waits.over_as(own, ObjectKind::Cond, site, !notified, as_lock);
        }
        if notified {
            return acquired;
        }
        if token.is_none_or(|token| token.is_cancelled()) {
            cancel::act();
        }
        match until {
            Some(until) if acquired == 0 && until.is_over::<Linux>() => ETIMEDOUT,
            // A spurious wake-up, or an error of the acquisition.
            _ => acquired,
        }
    }

    /// Waits for a condition variable that is glibc's, with a hidden mutex in place of `mutex` if
    /// that is ours. Returns 0 or an errno.
    #[cold]
    #[inline(never)]
    fn wait_glibcs(
        &self,
        mutex: &Mutex,
        site: Site,
        wait: impl FnOnce(*mut c_void) -> c_int,
    ) -> c_int {
        if !mutex.is_ours() {
            let own = core::ptr::from_ref(self).addr();
            let wait = || wait(mutex.as_glibcs());
            return stat::event_of_theirs(own, ObjectKind::Cond, site, |error| *error != 0, wait);
        }
        cancel::act();
        order::sleeps_releasing(core::ptr::from_ref(mutex).addr(), site);
        let hidden = self.hidden();
        let mut state = 0;
        // SAFETY: `state` is valid for the write. Cancellation is disabled meanwhile: it would have
        // to release the hidden mutex.
        unsafe { pthread_setcancelstate(DISABLE, &mut state) };
        // SAFETY: a mutex of glibc's.
        unsafe { real::pthread_mutex_lock(hidden) };
        mutex.release_any();
        let result = wait(hidden);
        // SAFETY: as above; the wait has acquired it again.
        unsafe { real::pthread_mutex_unlock(hidden) };
        let acquired = mutex.acquire_any(site);
        // SAFETY: `state` is the state that was set before.
        unsafe { pthread_setcancelstate(state, core::ptr::null_mut()) };
        cancel::act();
        if acquired == 0 { result } else { acquired }
    }

    /// Signals a condition variable that is glibc's, with its hidden mutex held. (If all mutexes
    /// are glibc's, no waiter has passed that.)
    fn signal_hidden(&self, signal: impl FnOnce() -> c_int) -> c_int {
        if config::leaves_others() {
            let own = core::ptr::from_ref(self).addr();
            stat::signals_theirs(own, stat::usage::signals_theirs);
            return signal();
        }
        let hidden = self.hidden();
        // SAFETY: a mutex of glibc's.
        unsafe { real::pthread_mutex_lock(hidden) };
        let result = signal();
        // SAFETY: acquired above.
        unsafe { real::pthread_mutex_unlock(hidden) };
        result
    }
}

/// `PTHREAD_CANCEL_DISABLE`.
const DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

with_site! {
    fn pthread_cond_init(2) => init;
    fn pthread_cond_wait(2) => wait;
    fn pthread_cond_timedwait(3) => timedwait;
    fn pthread_cond_clockwait(4) => clockwait;
}

pub(crate) unsafe extern "C" fn init(cond: *mut Cond, attr: *const u32, site: Site) -> c_int {
    // SAFETY: the caller's promise: null, or an attributes object: an int whose bit 0 says whether
    // it is shared, and whose other bits hold the clock.
    let attributes = unsafe { attr.as_ref() };
    let flags = attributes.map_or(0, |&flags| flags);
    let leaves = config::leaves_others();
    if flags & SHARED != 0 || leaves {
        match leaves {
            true => stat::initialised(cond.addr(), site),
            false => stat::keeps(cond.addr(), ObjectKind::KeptShared, site),
        }
        // SAFETY: the caller's promise.
        let error = unsafe { real::pthread_cond_init(cond.cast(), attr.cast()) };
        probes::cond_init(cond.addr(), attr.addr());
        return error;
    }
    let monotonic = flags >> 1 == CLOCK_MONOTONIC as u32;
    let new = Cond {
        cond: Condvar::new(),
        unused: [0; 5],
        newer_flags: AtomicU32::new(0),
        between: 0,
        flags: AtomicU32::new(if monotonic { MONOTONIC } else { 0 }),
        generation: AtomicU32::new(fork::generation()),
    };
    // SAFETY: the caller's promise: memory for a condition variable that nobody uses.
    unsafe { cond.write(new) };
    stat::initialised(cond.addr(), site);
    probes::cond_init(cond.addr(), attr.addr());
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
/// `pthread_cond_destroy`: waits until waiters that give up have left. The caller may own the
/// mutex.
pub unsafe extern "C" fn pthread_cond_destroy(cond: *mut Cond) -> c_int {
    // SAFETY: the caller's promise: a condition variable.
    let cond = unsafe { &*cond };
    probes::cond_destroy(core::ptr::from_ref(cond).addr());
    if cond.is_glibcs() {
        // SAFETY: as above; it is glibc's.
        return unsafe { real::pthread_cond_destroy(cond.as_glibcs()) };
    }
    cond.cond().drain();
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_cond_signal(cond: *mut Cond) -> c_int {
    // SAFETY: the caller's promise: a condition variable.
    let cond = unsafe { &*cond };
    probes::cond_signal(core::ptr::from_ref(cond).addr());
    if cond.is_glibcs() {
        // SAFETY: as above; it is glibc's.
        return cond.signal_hidden(|| unsafe { real::pthread_cond_signal(cond.as_glibcs()) });
    }
    let address = core::ptr::from_ref(cond).addr();
    let is_owners = stat::usage::signals(address);
    if cond.cond().notify_one() {
        stat::usage::has_signalled(address, is_owners);
    }
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_cond_broadcast(cond: *mut Cond) -> c_int {
    // SAFETY: the caller's promise: a condition variable.
    let cond = unsafe { &*cond };
    probes::cond_broadcast(core::ptr::from_ref(cond).addr());
    if cond.is_glibcs() {
        // SAFETY: as above; it is glibc's.
        return cond.signal_hidden(|| unsafe { real::pthread_cond_broadcast(cond.as_glibcs()) });
    }
    let address = core::ptr::from_ref(cond).addr();
    stat::usage::signals(address);
    if cond.cond().notify_all() > 0 {
        stat::usage::has_broadcast(address);
    }
    0
}

pub(crate) unsafe extern "C-unwind" fn wait(
    cond: *mut Cond,
    mutex: *mut Mutex,
    site: Site,
) -> c_int {
    // SAFETY: the caller's promise: a condition variable.
    let cond = unsafe { &*cond };
    // SAFETY: and a mutex, which it owns.
    let mutex = unsafe { &*mutex };
    let address = core::ptr::from_ref(mutex).addr();
    probes::cond_wait(core::ptr::from_ref(cond).addr(), address);
    if !cond.is_glibcs() {
        return cond.wait(mutex, None, site);
    }
    // SAFETY: a condition variable of glibc's, and a mutex of glibc's that the caller owns.
    let wait = |mutex| unsafe { real::pthread_cond_wait(cond.as_glibcs(), mutex) };
    cond.wait_glibcs(mutex, site, wait)
}

/// The timed waits: `glibcs` is glibc's for a shared condition variable. Without `clock` it is the
/// condition variable's own.
///
/// # Safety
///
/// A condition variable, a mutex that the caller owns, and a moment.
unsafe fn wait_until(
    cond: &Cond,
    mutex: *mut Mutex,
    (clock, at): (Option<clockid_t>, *const timespec),
    site: Site,
    glibcs: impl FnOnce(*mut c_void) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let mutex = unsafe { &*mutex };
    let address = core::ptr::from_ref(mutex).addr();
    probes::cond_wait(core::ptr::from_ref(cond).addr(), address);
    if cond.is_glibcs() {
        return cond.wait_glibcs(mutex, site, glibcs);
    }
    // SAFETY: the caller's promise.
    match deadline(clock.unwrap_or_else(|| cond.clock()), unsafe { &*at }, site) {
        Ok(until) => cond.wait(mutex, Some(until), site),
        Err(error) => error,
    }
}

pub(crate) unsafe extern "C-unwind" fn timedwait(
    cond: *mut Cond,
    mutex: *mut Mutex,
    at: *const timespec,
    site: Site,
) -> c_int {
    // SAFETY: the caller's promise: a condition variable.
    let cond = unsafe { &*cond };
    // SAFETY: as in `wait`.
    let glibcs = |mutex| unsafe { real::pthread_cond_timedwait(cond.as_glibcs(), mutex, at) };
    // SAFETY: the caller's promises.
    unsafe { wait_until(cond, mutex, (None, at), site, glibcs) }
}

unsafe extern "C-unwind" fn clockwait(
    cond: *mut Cond,
    mutex: *mut Mutex,
    clock: clockid_t,
    at: *const timespec,
    site: Site,
) -> c_int {
    if ![CLOCK_REALTIME, CLOCK_MONOTONIC].contains(&clock) {
        return EINVAL;
    }
    // SAFETY: the caller's promise: a condition variable.
    let cond = unsafe { &*cond };
    // SAFETY: as in `wait`.
    let glibcs =
        |mutex| unsafe { real::pthread_cond_clockwait(cond.as_glibcs(), mutex, clock, at) };
    // SAFETY: the caller's promises.
    unsafe { wait_until(cond, mutex, (Some(clock), at), site, glibcs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails on glibc 2.41, which has moved its flags, where only one of the words counts: waiters
    /// of two processes would not meet.
    #[test]
    fn a_shared_condition_is_known_by_the_flags_of_either_layout() {
        let new = |newer_flags, flags| Cond {
            cond: Condvar::new(),
            unused: [0; 5],
            newer_flags: AtomicU32::new(newer_flags),
            between: 0,
            flags: AtomicU32::new(flags),
            generation: AtomicU32::new(0),
        };
        assert!(new(SHARED | MONOTONIC, 0).is_glibcs());
        assert!(new(0, SHARED | MONOTONIC).is_glibcs());
        assert!(!new(0, MONOTONIC).is_glibcs());
    }
}
