//! The order of locks: what [`overlock::lockdep`] is told of mutexes and reader-writer locks where
//! `OVERLOCK_LOCKDEP` asks for it.
//!
//! Only of ours: what stays glibc's is not seen. A timed wait ends by itself, so it counts as an
//! attempt.

use core::ffi::{c_int, c_void};

use libc::EBUSY;
pub(crate) use overlock::lockdep::How;
use overlock::lockdep::{self, Site as CodeSite};
use overlock_linux::__private::{ExitKey, variable};

use crate::config;
use crate::site::Site;

/// Tells that a thread ends.
static KEY: ExitKey = ExitKey::new(ends);

/// When the library is loaded.
pub(crate) fn start() {
    // Early, to be one of the first keys. Without one the ends of threads are not seen.
    let _ = KEY.get(|| ());
    lockdep::on_thread(watch_thread);
    lockdep::hide_own_frames();
    if let Some(path) = variable(c"OVERLOCK_LOCKDEP_READER") {
        lockdep::set_reader(path);
    }
}

/// Runs when a thread ends, and once more where a later destructor has used a lock.
unsafe extern "C" fn ends(_: *mut c_void) {
    lockdep::thread_exits();
}

/// Has us told when the calling thread ends.
fn watch_thread() {
    // Without memory the thread's end is not seen.
    KEY.set(1, || ());
}

/// A lock has been initialised there.
pub(crate) fn initialised(lock: usize, site: Site) {
    if config::get().lockdep {
        lockdep::lock_init(lock, CodeSite::code(site));
    }
}

/// The lock there has been destroyed.
pub(crate) fn destroyed(lock: usize) {
    if config::get().lockdep {
        lockdep::lock_destroy(lock);
    }
}

/// How a wait is seen that ends by itself, if it is one.
pub(crate) fn limited(how: How, is_limited: bool) -> How {
    if is_limited { how.trying() } else { how }
}

/// An acquisition of the lock there: by `attempt`, then, if that is in vain, by `wait`, which
/// returns what the acquisition does: 0 or an errno.
pub(crate) fn acquire(
    lock: usize,
    how: How,
    site: Site,
    attempt: impl FnOnce() -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let class = lockdep::class_of_lock(lock);
    let site = CodeSite::code(site);
    lockdep::acquire(lock, class, how, site);
    let mut result = attempt();
    if result == EBUSY {
        lockdep::begin_wait(lock, class, how, site);
        result = wait();
        lockdep::end_wait(lock);
    }
    if result == 0 {
        lockdep::acquired(lock, class, how, site);
    }
    result
}

/// An attempt to acquire the lock there, which waits for nobody.
pub(crate) fn attempt(lock: usize, how: How, site: Site, attempt: impl FnOnce() -> c_int) -> c_int {
    let result = attempt();
    if result == 0 {
        let class = lockdep::class_of_lock(lock);
        lockdep::acquired(lock, class, how.trying(), CodeSite::code(site));
    }
    result
}

/// The calling thread is about to release the lock there, which no other may release.
pub(crate) fn release(lock: usize) {
    if config::get().lockdep {
        lockdep::release_own(lock, CodeSite::NONE);
    }
}

/// The calling thread is about to release the lock there, of which there are several holders.
pub(crate) fn release_shared(lock: usize) {
    if config::get().lockdep {
        lockdep::release(lock);
    }
}

/// The calling thread releases the lock there, which is free.
pub(crate) fn release_free(lock: usize) {
    if config::get().lockdep {
        lockdep::release_free(lock, lockdep::class_of_lock(lock), CodeSite::NONE);
    }
}

/// The calling thread is about to wait for a condition with the mutex there, which it releases.
pub(crate) fn sleeps_without(mutex: usize, site: Site) {
    if config::get().lockdep {
        lockdep::sleeps(mutex, CodeSite::code(site));
    }
}

/// The calling thread is about to wait for what other threads do.
pub(crate) fn sleeps() {
    if config::get().lockdep {
        lockdep::sleeps(0, CodeSite::NONE);
    }
}

/// The calling thread is about to sleep for another reason, or to wait for what may as well be a
/// lock: a semaphore.
pub(crate) fn may_sleep() {
    if config::get().lockdep_sleep {
        sleeps();
    }
}

/// In a child of fork.
pub(crate) fn after_fork() {
    if config::get().lockdep {
        lockdep::fork_child();
    }
}

/// The handler of a signal begins. The result is for [`exit_signal`].
pub(crate) fn enter_signal(signal: c_int) -> u64 {
    lockdep::enter_signal(signal)
}

/// It has returned.
pub(crate) fn exit_signal(before: u64) {
    lockdep::exit_signal(before);
}

/// The calling thread jumps out of the handlers that it is in.
pub(crate) fn leave_signals() {
    lockdep::leave_signals();
}
