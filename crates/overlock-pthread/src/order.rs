//! The order of locks: what [`overlock::lockdep`] is told of mutexes and reader-writer locks where `OVERLOCK_LOCKDEP` asks for it.
//!
//! Only of ours: what stays glibc's is not seen. A timed wait ends by itself, so it counts as an attempt.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use libc::EBUSY;
pub(crate) use overlock::lockdep::How;
use overlock::lockdep::{self, Site as CodeSite};

use crate::config;
use crate::site::Site;

/// The thread-specific key (an unsigned int) + 1, whose destructor tells that a thread ends; 0 without one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// When the library is loaded.
pub(crate) fn start() {
    let mut key = 0;
    // SAFETY: `key` is valid for the write; `ends` has the signature of a destructor.
    if unsafe { libc::pthread_key_create(&mut key, Some(ends)) } == 0 {
        // Relaxed, as all here: the number is all there is to see.
        KEY.store(key + 1, Relaxed);
    }
}

/// Runs when a thread ends, and once more where a later destructor has used a lock.
unsafe extern "C" fn ends(_: *mut c_void) {
    lockdep::thread_exits();
}

/// Has us told when the calling thread ends.
fn watch_thread() {
    let key = KEY.load(Relaxed);
    if key != 0 {
        // SAFETY: the key was created and is never deleted.
        let known = unsafe { libc::pthread_getspecific(key - 1) };
        if known.is_null() {
            // SAFETY: as above. Without memory the thread's end is not seen.
            unsafe { libc::pthread_setspecific(key - 1, ptr::without_provenance(1)) };
        }
    }
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

/// An acquisition of the lock there: by `attempt`, then, if that is in vain, by `wait`, which returns what the acquisition does: 0
/// or an errno.
pub(crate) fn acquire(
    lock: usize,
    how: How,
    site: Site,
    attempt: impl FnOnce() -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    watch_thread();
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
    watch_thread();
    let result = attempt();
    if result == 0 {
        let class = lockdep::class_of_lock(lock);
        lockdep::acquired(lock, class, how.trying(), CodeSite::code(site));
    }
    result
}

/// The calling thread is about to release the lock there.
pub(crate) fn release(lock: usize) {
    if config::get().lockdep {
        lockdep::release(lock);
    }
}

/// The calling thread is about to wait for a condition with the mutex there, which it releases.
pub(crate) fn sleeps(mutex: usize, site: Site) {
    if config::get().lockdep {
        lockdep::sleeps(mutex, CodeSite::code(site));
    }
}

/// In a child of fork.
pub(crate) fn after_fork() {
    if config::get().lockdep {
        lockdep::fork_child();
    }
}
