//! `pthread_mutex_t`.
//!
//! # Layout
//!
//! glibc's object has 40 bytes on x86-64 and 48 on AArch64, and its kind at offset 16: the static
//! initialisers write it, and nothing else.
//!
//! | offset | field | who writes it |
//! |---|---|
//! | 0 | `lock`: one of the locks that fit 16 bytes | the lock |
//! | 16 | `kind` | the initialiser; glibc's `pthread_mutex_init`, with the bits of what is shared, robust or bound to priorities; -1 when destroyed |
//! | 20 | `count` | the owner of a recursive one: how often it has acquired it beyond the first time; with statistics, of a normal one: where it has |
//! | 24 | `generation`: see [`crate::fork`] | whoever meets it first in a generation |
//! | 28 | `observed`: the number of what is recorded of the present owner; 0 for nothing | the owner |
//! | 32 | `owner` of a recursive or error-checking one | the owner, while it owns it |
//!
//! All zero is a normal, free mutex of the first generation.
//!
//! # Whose it is
//!
//! A kind of 0 to 3 (normal, recursive, error-checking, adaptive) is ours, whatever made it so.
//! With any further bit it is glibc's: only `pthread_mutex_init` with such attributes sets one, and
//! that was glibc's. A destroyed one is glibc's too: it says `EINVAL`. An adaptive one is a normal
//! one: all of ours spin.
//!
//! # The shortest way
//!
//! Without observers, a normal mutex of the present generation is one comparison of `kind`, one of
//! `generation`, and the lock's own fast path.

mod counted;
pub mod functions;
pub mod raw;

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use libc::{EAGAIN, EBUSY, EDEADLK, EPERM, ETIMEDOUT};
use overlock_core::Deadline;
use overlock_core::raw::{RawFork, RawLock, RawTimedLock};

use crate::order::{self, How};
use crate::site::Site;
use crate::thread::me;
use crate::{config, fork, real};
use raw::raw;

/// The program's object: see the [module's page](self).
#[derive(Debug)]
#[repr(C)]
pub struct Mutex {
    lock: [AtomicU64; 2],
    kind: AtomicI32,
    count: AtomicU32,
    generation: AtomicU32,
    observed: AtomicU32,
    owner: AtomicUsize,
}

const _: () = assert!(size_of::<Mutex>() <= size_of::<libc::pthread_mutex_t>());
const _: () = assert!(core::mem::offset_of!(Mutex, kind) == 16);

pub(crate) const NORMAL: c_int = libc::PTHREAD_MUTEX_NORMAL;
pub(crate) const RECURSIVE: c_int = libc::PTHREAD_MUTEX_RECURSIVE;
const ERRORCHECK: c_int = libc::PTHREAD_MUTEX_ERRORCHECK;
const ADAPTIVE: c_int = 3;
const DESTROYED: c_int = -1;

/// In the attributes: the kind; anything above is glibc's affair,
const KIND_MASK: c_int = 0x3;

/// but for whether transactional memory may elide the lock: `pthread_mutexattr_settype` says no to
/// that when it is asked for a normal or default mutex. No lock of ours does so.
const NO_ELISION: c_int = 0x200;

/// The kind that attributes ask for, if such a mutex is ours.
fn kind_of(attributes: c_int) -> Option<c_int> {
    let kind = attributes & !NO_ELISION;
    (kind & !KIND_MASK == 0).then_some(kind)
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Forever,
    /// The same, as a sleeper that the lock has adopted.
    Adopted,
    Not,
    Until(Result<Deadline, c_int>),
}

impl Mutex {
    /// A free one.
    fn new(kind: c_int) -> Self {
        Mutex {
            lock: [const { AtomicU64::new(0) }; 2],
            kind: AtomicI32::new(kind),
            count: AtomicU32::new(0),
            generation: AtomicU32::new(fork::generation()),
            observed: AtomicU32::new(0),
            owner: AtomicUsize::new(0),
        }
    }

    fn kind(&self) -> c_int {
        // Relaxed: written before the mutex is used, and after that.
        self.kind.load(Relaxed)
    }

    /// Whether the shortest way is for it, if its word agrees.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        let kind = self.kind();
        kind == NORMAL || kind == ADAPTIVE
    }

    /// Whether it is a recursive one, or one that checks for errors.
    #[inline(always)]
    fn knows_its_owner(&self) -> bool {
        let kind = self.kind();
        kind == RECURSIVE || kind == ERRORCHECK
    }

    pub(crate) fn is_ours(&self) -> bool {
        (NORMAL..=ADAPTIVE).contains(&self.kind())
            && config::get().mutex != config::MutexLock::Glibc
    }

    pub(crate) fn as_glibcs(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    /// Where it is from another generation, brings it to this one.
    fn settle(&self) {
        fork::settle(&self.generation, || {
            self.observed.store(0, Relaxed);
            // SAFETY: of the generation before there is no other thread.
            raw!(self, |lock| unsafe { lock.forget_waiters() });
        });
    }

    /// The general way to acquire one of ours.
    fn acquire(&self, wait: Wait, site: Site) -> c_int {
        self.settle();
        let knows_its_owner = self.knows_its_owner();
        if knows_its_owner && self.is_mine() {
            return self.acquire_again(self.kind(), wait);
        }
        let config = config::get();
        let result = if config.lockdep {
            self.take_in_order(wait, site)
        } else if config.stat {
            match self.attempt(wait, site) {
                EBUSY if !matches!(wait, Wait::Not) => self.wait(wait, site),
                result => result,
            }
        } else {
            self.take(wait)
        };
        if result == 0 && knows_its_owner {
            self.owner.store(me(), Relaxed);
        }
        result
    }

    /// The lock, with its order checked.
    fn take_in_order(&self, wait: Wait, site: Site) -> c_int {
        let attempt = || self.attempt(wait, site);
        if matches!(wait, Wait::Not) {
            return order::attempt(self.address(), How::EXCLUSIVE, site, attempt);
        }
        let limited = !matches!(wait, Wait::Forever | Wait::Adopted);
        let how = order::limited(How::EXCLUSIVE, limited);
        let wait = || self.wait(wait, site);
        order::acquire(self.address(), how, site, attempt, wait)
    }

    /// The lock, if it is free and the caller is none of its sleepers; counted where that is asked
    /// for.
    fn attempt(&self, wait: Wait, site: Site) -> c_int {
        match (wait, config::get().stat) {
            (Wait::Adopted, _) => EBUSY,
            (_, true) => self.attempt_counted(site),
            (_, false) => self.try_acquire(),
        }
    }

    /// The lock, which was not free.
    fn wait(&self, wait: Wait, site: Site) -> c_int {
        match wait {
            Wait::Forever | Wait::Adopted | Wait::Until(Ok(_)) if config::get().stat => {
                self.wait_counted(wait, site)
            }
            _ => self.take(wait),
        }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// The lock itself.
    fn take(&self, wait: Wait) -> c_int {
        match wait {
            Wait::Forever => {
                raw!(self, |lock| lock.lock());
                0
            }
            Wait::Adopted => {
                raw!(self, |lock| lock.lock_adopted());
                0
            }
            Wait::Not => self.try_acquire(),
            Wait::Until(deadline) => match (self.try_acquire(), deadline) {
                (0, _) => 0,
                (_, Err(error)) => error,
                (_, Ok(deadline)) if raw!(self, |lock| lock.lock_until(deadline).is_some()) => 0,
                _ => ETIMEDOUT,
            },
        }
    }

    fn acquire_again(&self, kind: c_int, wait: Wait) -> c_int {
        match (kind, wait) {
            (RECURSIVE, _) => {
                let count = self.count.load(Relaxed);
                if count == u32::MAX {
                    return EAGAIN;
                }
                self.count.store(count + 1, Relaxed);
                0
            }
            (_, Wait::Not) => EBUSY,
            _ => EDEADLK,
        }
    }

    fn try_acquire(&self) -> c_int {
        match raw!(self, |lock| lock.try_lock()) {
            Some(()) => 0,
            None => EBUSY,
        }
    }

    /// The general way to release one of ours.
    fn release(&self) -> c_int {
        self.settle();
        let knows_its_owner = self.knows_its_owner();
        if knows_its_owner {
            if !self.is_mine() {
                return EPERM;
            }
            let count = self.count.load(Relaxed);
            if count > 0 {
                self.count.store(count - 1, Relaxed);
                return 0;
            }
        }
        if !raw!(self, |lock| lock.is_locked()) {
            order::release_free(self.address());
            return 0;
        }
        order::release(self.address());
        if knows_its_owner {
            self.owner.store(0, Relaxed);
        }
        // SAFETY: the caller owns it; of a normal one POSIX asks that.
        let unlock = || raw!(self, |lock| unsafe { lock.unlock(()) });
        if self.observed.load(Relaxed) == 0 {
            unlock();
        } else {
            self.release_recorded(unlock);
        }
        0
    }
}

impl Mutex {
    /// `pthread_mutex_lock`, the general way.
    pub(crate) fn acquire_any(&self, site: Site) -> c_int {
        if self.is_ours() {
            return self.acquire(Wait::Forever, site);
        }
        // SAFETY: whoever made the reference has a mutex, which is glibc's.
        unsafe { real::pthread_mutex_lock(self.as_glibcs()) }
    }

    /// Acquires one of ours as a sleeper that it has adopted.
    fn acquire_adopted(&self, site: Site) -> c_int {
        self.acquire(Wait::Adopted, site)
    }

    /// `pthread_mutex_trylock`.
    fn try_acquire_any(&self, site: Site) -> c_int {
        if self.is_ours() {
            return self.acquire(Wait::Not, site);
        }
        // SAFETY: as above.
        unsafe { real::pthread_mutex_trylock(self.as_glibcs()) }
    }

    /// `pthread_mutex_unlock`, the general way.
    pub(crate) fn release_any(&self) -> c_int {
        if self.is_ours() {
            return self.release();
        }
        // SAFETY: as above.
        unsafe { real::pthread_mutex_unlock(self.as_glibcs()) }
    }

    /// Whether the calling thread may wait for a condition with it, as far as its kind lets one
    /// tell: else the errno.
    pub(crate) fn check_owner(&self) -> c_int {
        let counts = [RECURSIVE, ERRORCHECK].contains(&(self.kind() & KIND_MASK));
        let owned = if self.is_ours() {
            self.is_mine()
        } else {
            self.is_mine_of_glibcs()
        };
        if counts && !owned { EPERM } else { 0 }
    }

    /// Whether the calling thread owns it, which is glibc's: that keeps the owner's id at offset 8.
    fn is_mine_of_glibcs(&self) -> bool {
        // SAFETY: it has no preconditions.
        let me = unsafe { libc::gettid() } as u32;
        let half = if cfg!(target_endian = "little") {
            0
        } else {
            32
        };
        // Relaxed: as in `is_mine`.
        (self.lock[1].load(Relaxed) >> half) as u32 == me
    }

    /// Whether the calling thread owns it, which is ours.
    pub(crate) fn is_mine(&self) -> bool {
        // Relaxed: nobody but the caller itself writes its own name, and what it wrote last it
        // sees.
        self.owner.load(Relaxed) == me()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_kind_a_program_asks_for_is_ours_and_what_is_shared_is_not() {
        type Attributes = libc::pthread_mutexattr_t;
        let attributes = |set: unsafe extern "C" fn(*mut Attributes, c_int) -> c_int, to| {
            let mut attr = core::mem::MaybeUninit::<Attributes>::uninit();
            // SAFETY: an attributes object of this thread's own.
            unsafe { libc::pthread_mutexattr_init(attr.as_mut_ptr()) };
            // SAFETY: as above, initialised by now.
            assert_eq!(unsafe { set(attr.as_mut_ptr(), to) }, 0);
            // SAFETY: as above; it is an int.
            unsafe { attr.as_ptr().cast::<c_int>().read() }
        };
        for kind in [NORMAL, RECURSIVE, ERRORCHECK, ADAPTIVE] {
            let flags = attributes(libc::pthread_mutexattr_settype, kind);
            assert_eq!(kind_of(flags), Some(kind), "{flags:#x}");
        }
        let shared = attributes(
            libc::pthread_mutexattr_setpshared,
            libc::PTHREAD_PROCESS_SHARED,
        );
        let robust = attributes(
            libc::pthread_mutexattr_setrobust,
            libc::PTHREAD_MUTEX_ROBUST,
        );
        let inheriting = attributes(
            libc::pthread_mutexattr_setprotocol,
            libc::PTHREAD_PRIO_INHERIT,
        );
        for flags in [shared, robust, inheriting] {
            assert_eq!(kind_of(flags), None, "{flags:#x}");
        }
    }
}
