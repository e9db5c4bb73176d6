//! `pthread_mutex_t`: overlock's mutexes in glibc's objects.
//!
//! # Layout
//!
//! glibc's object has 40 bytes on x86-64 and 48 on AArch64, and its kind at offset 16: the static
//! initialisers write it, and nothing else.
//!
//! | offset | field | who writes it |
//! |---|---|
//! | 0 | `lock`: an `Overlock`, 4 bytes | the lock |
//! | 4 | a mark; 0 for none | the validator at the first use; with statistics the initialisation |
//! | 8 | `Mutex::plan` of statistics; else of a recursive or error-checking one the last owner's id | the owner |
//! | 16 | `kind` | the initialiser; glibc's `pthread_mutex_init`, with the bits of what is shared, robust or bound to priorities; -1 when destroyed |
//! | 20 | `count` | the owner: of a recursive one, the number of acquisitions beyond the first; with statistics, of a normal or adaptive one, the lower half of its call site |
//! | 24 | `generation`: see [`crate::fork`] | its first user in a generation |
//! | 28 | `observed`: the number of the flight (`stat::flight`) of the present owner's acquisition; 0 for none | the owner; a waiter, to have the release noted |
//! | 32 | `owner` of a recursive or error-checking one; with statistics the last owner of any | the owner, while it owns it |
//!
//! All zero is a normal, free mutex of the first generation.
//!
//! # Which objects are ours
//!
//! A kind of 0 to 3 (normal, recursive, error-checking, adaptive) is ours, whether it was made by
//! an initialiser or a call. A kind with any further bit is glibc's: only glibc's
//! `pthread_mutex_init` sets one, for such attributes. A destroyed mutex is treated as glibc's,
//! too, which returns `EINVAL`. An adaptive mutex is a normal one: all of ours spin.
//!
//! # The fast path
//!
//! Without statistics or validator, a normal mutex of the present generation takes one comparison
//! of `kind`, one of `generation`, and the lock's own fast path.

mod counted;
pub mod functions;
pub mod raw;

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use libc::{EAGAIN, EBUSY, EDEADLK, EPERM, ETIMEDOUT};
use overlock_core::Deadline;
use overlock_core::raw::{RawFork, RawLock, RawTimedLock};
use overlock_shared::ObjectKind;

use crate::order::{self, How};
use crate::site::Site;
use crate::thread::{libcs_id, me};
use crate::{config, fork, probes, real, stat};

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
// The upper half of a word whose lower half comes first.
const _: () = assert!(core::mem::offset_of!(Mutex, owner) + 4 == overlock_shared::OUR_OWNER);

pub(crate) const NORMAL: c_int = libc::PTHREAD_MUTEX_NORMAL;
pub(crate) const RECURSIVE: c_int = libc::PTHREAD_MUTEX_RECURSIVE;
const ERRORCHECK: c_int = libc::PTHREAD_MUTEX_ERRORCHECK;
const ADAPTIVE: c_int = 3;
const DESTROYED: c_int = -1;

/// In the attributes: the kind. Any other bit makes the mutex glibc's, except for [`NO_ELISION`].
const KIND_MASK: c_int = 0x3;

/// In the attributes: transactional memory must not elide the lock. `pthread_mutexattr_settype`
/// sets it when it is asked for a normal or default mutex. No lock of ours elides.
const NO_ELISION: c_int = 0x200;

/// Returns why a mutex with these attributes is glibc's.
fn kept_kind(attributes: c_int) -> ObjectKind {
    const SHARED: c_int = 1 << 31;
    const ROBUST: c_int = 1 << 30;
    match attributes {
        shared if shared & SHARED != 0 => ObjectKind::KeptShared,
        robust if robust & ROBUST != 0 => ObjectKind::KeptRobust,
        _ => ObjectKind::KeptPriority,
    }
}

/// Returns the kind that attributes ask for, or `None` if such a mutex is glibc's.
fn kind_of(attributes: c_int) -> Option<c_int> {
    let kind = attributes & !NO_ELISION;
    (kind & !KIND_MASK == 0).then_some(kind)
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Forever,
    /// Without limit, as a waiter of a condition variable.
    Again,
    /// Without limit, as a waiter of a condition variable that the lock has adopted as its own
    /// sleeper.
    Adopted,
    Not,
    Until(Result<Deadline, c_int>),
}

impl Mutex {
    /// A free mutex of this kind.
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
        // Relaxed: written before the mutex is used, and after all uses.
        self.kind.load(Relaxed)
    }

    /// Whether the fast path is possible by its kind.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        let kind = self.kind();
        kind == NORMAL || kind == ADAPTIVE
    }

    /// Whether it is recursive or error-checking.
    #[inline(always)]
    fn knows_its_owner(&self) -> bool {
        let kind = self.kind();
        kind == RECURSIVE || kind == ERRORCHECK
    }

    pub(crate) fn is_ours(&self) -> bool {
        (NORMAL..=ADAPTIVE).contains(&self.kind()) && config::get().mutex != config::Lock::Glibc
    }

    pub(crate) fn as_glibcs(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    /// Updates it to the process's generation, if it is of another.
    fn update(&self) {
        fork::update(&self.generation, || {
            self.observed.store(0, Relaxed);
            // SAFETY: no other thread of the earlier generation exists.
            unsafe { self.main().forget_waiters() };
        });
    }

    /// Acquires one of ours: the general path. Returns 0 or an errno.
    fn acquire(&self, wait: Wait, site: Site) -> c_int {
        self.update();
        let knows_its_owner = self.knows_its_owner();
        if knows_its_owner && self.is_mine() {
            return self.acquire_again(self.kind(), wait);
        }
        let attempt = || self.attempt(wait, site);
        let result = if matches!(wait, Wait::Not) {
            order::attempt(self.object(), How::EXCLUSIVE, site, attempt)
        } else {
            let limited = matches!(wait, Wait::Until(_));
            let how = order::limited(How::EXCLUSIVE, limited);
            let wait = || self.wait(wait, site);
            order::acquire(self.object(), how, site, attempt, wait)
        };
        if result == 0 && knows_its_owner {
            match config::get().stat {
                true => self.owner.store(me(), Relaxed),
                false => self.set_owner(),
            }
        }
        result
    }

    /// Tries to acquire the lock, with statistics if configured. Returns `EBUSY` if it is not free,
    /// and for an adopted sleeper, which has to wait.
    fn attempt(&self, wait: Wait, site: Site) -> c_int {
        match (wait, config::get().stat) {
            (Wait::Adopted, _) => EBUSY,
            (_, true) => self.attempt_counted(site),
            (_, false) => self.try_acquire(),
        }
    }

    /// Acquires a lock that was not free, with statistics if configured. Returns 0 or an errno.
    fn wait(&self, wait: Wait, site: Site) -> c_int {
        match wait {
            Wait::Forever | Wait::Again | Wait::Adopted | Wait::Until(Ok(_))
                if config::get().stat =>
            {
                self.wait_counted(wait, site)
            }
            _ => self.take(wait),
        }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Acquires the lock itself. Returns 0 or an errno.
    fn take(&self, wait: Wait) -> c_int {
        match wait {
            Wait::Forever | Wait::Again => {
                self.main().lock();
                0
            }
            Wait::Adopted => {
                self.main().lock_adopted();
                0
            }
            Wait::Not => self.try_acquire(),
            Wait::Until(deadline) => match (self.try_acquire(), deadline) {
                (0, _) => 0,
                (_, Err(error)) => error,
                (_, Ok(deadline)) if self.main().lock_until(deadline).is_some() => 0,
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
        match self.main().try_lock() {
            Some(()) => 0,
            None => EBUSY,
        }
    }

    /// Releases one of ours: the general path. Returns 0 or an errno.
    fn release(&self) -> c_int {
        self.update();
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
        if !self.main().is_locked() {
            order::release_free(self.address());
            return 0;
        }
        order::release(self.address());
        if knows_its_owner {
            self.owner.store(0, Relaxed);
        }
        probes::mutex_release(self.address());
        // SAFETY: the caller owns it; for a normal mutex POSIX demands that.
        let unlock = || unsafe { self.main().unlock(()) };
        if self.observed.load(Relaxed) == 0 {
            unlock();
        } else {
            self.release_recorded(unlock);
        }
        0
    }
}

impl Mutex {
    /// `pthread_mutex_lock`, the general path.
    pub(crate) fn acquire_any(&self, site: Site) -> c_int {
        if self.is_ours() {
            return self.acquire(Wait::Forever, site);
        }
        // SAFETY: the reference is to a mutex, which is glibc's.
        let wait = || unsafe { real::pthread_mutex_lock(self.as_glibcs()) };
        self.count_glibcs(site, wait)
    }

    /// Acquires one of glibc's by `wait`, with statistics if the configuration leaves it in place.
    /// One that stays glibc's anyway is not counted.
    fn count_glibcs(&self, site: Site, wait: impl FnOnce() -> c_int) -> c_int {
        if config::get().mutex != config::Lock::Glibc {
            return wait();
        }
        // SAFETY: as above.
        let attempt = || unsafe { real::pthread_mutex_trylock(self.as_glibcs()) };
        let owner = || self.owner_of_glibcs();
        stat::count_theirs(
            self.address(),
            (ObjectKind::Mutex, site),
            owner,
            attempt,
            wait,
        )
    }

    /// Acquires it after a wait for a condition.
    fn acquire_again_any(&self, site: Site) -> c_int {
        match self.is_ours() {
            true => self.acquire(Wait::Again, site),
            false => self.acquire_any(site),
        }
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

    /// `pthread_mutex_unlock`, the general path.
    pub(crate) fn release_any(&self) -> c_int {
        if self.is_ours() {
            return self.release();
        }
        // A tool that watches would take the look for a race with the C library's store.
        if config::get().watched || !self.is_nested_of_glibcs() {
            if config::get().profile {
                stat::releases(self.address(), None, false);
            }
            probes::mutex_release(self.address());
        }
        // SAFETY: as above.
        unsafe { real::pthread_mutex_unlock(self.as_glibcs()) }
    }

    /// Returns `EPERM` if the calling thread does not own the mutex, as far as its kind records the
    /// owner; else 0.
    pub(crate) fn check_owner(&self) -> c_int {
        let counts = [RECURSIVE, ERRORCHECK].contains(&(self.kind() & KIND_MASK));
        let owned = if self.is_ours() {
            self.is_mine()
        } else {
            self.is_mine_of_glibcs()
        };
        if counts && !owned { EPERM } else { 0 }
    }

    /// Whether the calling thread owns it. It is glibc's, which keeps the owner's id at offset 8.
    fn is_mine_of_glibcs(&self) -> bool {
        // SAFETY: it has no preconditions.
        let me = unsafe { libc::gettid() } as u32;
        self.owner_of_glibcs() == me
    }

    /// Whether its owner, the caller, has acquired it more than once. It is glibc's, which counts
    /// at offset 4.
    fn is_nested_of_glibcs(&self) -> bool {
        let half = if cfg!(target_endian = "little") {
            32
        } else {
            0
        };
        (self.lock[0].load(Relaxed) >> half) as u32 > 1
    }

    /// The id of the thread that owns it, which is glibc's.
    fn owner_of_glibcs(&self) -> u32 {
        let half = if cfg!(target_endian = "little") {
            0
        } else {
            32
        };
        // Relaxed: as in `is_mine`; of another thread it is a word in a report.
        (self.lock[1].load(Relaxed) >> half) as u32
    }

    /// The calling thread has become the owner of one that knows it, without statistics.
    #[inline(always)]
    fn set_owner(&self) {
        self.owner.store(me(), Relaxed);
        // Chromium and Firefox lock one in a child of a bare clone(), to learn from it which id the
        // C library believes the thread to have. They die if that is not what it keeps.
        if let Some(id) = libcs_id() {
            self.lock[1].store(id.into(), Relaxed);
        }
    }

    /// Whether the calling thread owns it, which is ours.
    pub(crate) fn is_mine(&self) -> bool {
        // Relaxed: only the calling thread writes its own name, and it sees what it wrote last.
        self.owner.load(Relaxed) == me()
    }
}

/// The id that the C library believes the calling thread to have, by a mutex of its own.
pub(crate) fn owner_of_a_glibcs() -> u32 {
    let mut theirs = libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    // SAFETY: a mutex is no larger, is aligned alike, and is made of atomics.
    let mutex = unsafe { &*(&raw mut theirs).cast::<Mutex>() };
    // SAFETY: as its initialiser leaves it.
    unsafe { real::pthread_mutex_lock(mutex.as_glibcs()) };
    let owner = mutex.owner_of_glibcs();
    // SAFETY: locked above.
    unsafe { real::pthread_mutex_unlock(mutex.as_glibcs()) };
    owner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_are_ours_unless_shared_robust_or_priority_inheriting() {
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
