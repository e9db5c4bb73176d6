//! `pthread_rwlock_t`.
//!
//! # Layout
//!
//! 56 bytes. The static initialisers are all zero, but for the kind of lock at offset 48.
//!
//! | offset | field | who writes it |
//! |---|---|
//! | 0 | `lock`: `overlock_rw_posix` or `rwsem`, 20 bytes | the lock |
//! | 20 | `generation`: see [`crate::fork`] | whoever meets it first in a generation |
//! | 28 | `shared`: not 0 in glibc's objects that are shared between processes | glibc's `pthread_rwlock_init` |
//! | 32 | `writer`: the thread that holds the lock for writing; 0 for none | that thread |
//! | 40 | `observed`: the number of what is recorded of the writer's acquisition; 0 for nothing | the writer |
//! | 44 | `site`: the lower half of its call site, with statistics | the writer |
//! | 48 | `kind`: 2 where readers must not pass writers that wait | the initialiser |
//!
//! # Whose it is
//!
//! One that is shared between processes is glibc's, whoever has made it: `shared` says so, and ours leave it 0.
//!
//! # Who passes whom
//!
//! POSIX leaves it open whether a reader waits for writers that wait. glibc's readers do not, but with the kind
//! `PREFER_WRITER_NONRECURSIVE`, and programs have come to need that: a thread may read what it reads already, and readers may wait for each
//! other, by any means, though writers wait. But then readers can keep writers out for ever. So here
//! a reader waits behind a writer for a while (`PATIENCE_NS`), and passes it then. A thread that reads any lock already passes at once. (It is not known
//! which locks a thread reads, only how many.) And an attempt passes always. With the kind nobody passes, as in glibc.

mod counted;
pub mod functions;
mod posix;
mod reads;
mod rwsem;
#[cfg(test)]
mod tests;

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use libc::EDEADLK;
use overlock::Linux;
use overlock::core::Instant;
use overlock::core::rw::OverlockRwPosix;
use overlock::core::rw::overlock_rw_posix::{PATIENCE_NS, Passing};
use overlock::core::sleep::RwSem;

use crate::mutex::me;
use crate::order::{self, How};
use crate::site::Site;
use crate::{config, fork};

/// The program's object: see the [module's page](self).
#[derive(Debug)]
#[repr(C)]
pub struct RwLock {
    lock: [AtomicU32; 5],
    generation: AtomicU32,
    _glibcs: AtomicU32,
    shared: AtomicU32,
    writer: AtomicUsize,
    observed: AtomicU32,
    site: AtomicU32,
    kind: AtomicU32,
}

const _: () = assert!(size_of::<RwLock>() == size_of::<libc::pthread_rwlock_t>());
const _: () = assert!(core::mem::offset_of!(RwLock, shared) == 28);
const _: () = assert!(core::mem::offset_of!(RwLock, kind) == 48);

/// glibc's attributes.
#[derive(Debug)]
#[repr(C)]
pub struct Attributes {
    kind: c_int,
    shared: c_int,
}

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`
const PREFER_WRITER: u32 = 2;

/// What a lock here has to do. Results are 0 or an errno.
trait Behind {
    fn read(&self, passing: Passing, until: Option<Instant>) -> c_int;
    fn try_read(&self, passing: Passing) -> c_int;
    fn write(&self, until: Option<Instant>) -> c_int;
    fn try_write(&self) -> c_int;

    /// Whether a writer holds it; asked by one of its holders.
    fn is_written(&self) -> bool;

    /// Whether readers hold it; asked by one of its holders.
    fn is_read(&self) -> bool;

    /// # Safety
    ///
    /// The caller holds it for reading.
    unsafe fn unlock_read(&self);

    /// # Safety
    ///
    /// The caller holds it for writing.
    unsafe fn unlock_write(&self);

    /// Forgets who waits, in a child of fork; `written` says whether the child's thread holds it for writing.
    ///
    /// # Safety
    ///
    /// Those that waited are threads that are gone, and nobody uses it.
    unsafe fn settle(&self, written: bool);
}

/// The one that we recommend.
type Recommended = OverlockRwPosix<Linux>;

/// Evaluates an expression for the lock that the object is made of.
macro_rules! behind {
    ($rwlock:expr, |$lock:ident| $what:expr) => {
        match config::get().rwlock {
            config::RwLock::Rwsem => {
                let $lock = $rwlock.as_lock::<RwSem<Linux>>();
                $what
            }
            _ => {
                let $lock = $rwlock.as_lock::<Recommended>();
                $what
            }
        }
    };
}
use behind;

impl RwLock {
    fn new(kind: u32) -> Self {
        RwLock {
            lock: [const { AtomicU32::new(0) }; 5],
            generation: AtomicU32::new(fork::generation()),
            _glibcs: AtomicU32::new(0),
            shared: AtomicU32::new(0),
            writer: AtomicUsize::new(0),
            observed: AtomicU32::new(0),
            site: AtomicU32::new(0),
            kind: AtomicU32::new(kind),
        }
    }

    #[inline(always)]
    fn as_lock<L>(&self) -> &L {
        const {
            assert!(
                size_of::<L>() <= size_of::<[AtomicU32; 5]>()
                    && align_of::<L>() <= align_of::<u32>()
            )
        };
        // SAFETY: the lock's size and alignment fit, all zero bytes are an unlocked one, and all accesses are through the same type: the
        // configuration does not change.
        unsafe { &*core::ptr::from_ref(&self.lock).cast() }
    }

    /// The lock, where it is ours, of this generation, and a recommended one: then the shortest ways are for it.
    #[inline(always)]
    fn recommended(&self) -> Option<&Recommended> {
        // Relaxed: written before the lock is used.
        let plain = self.shared.load(Relaxed) == 0
            && self.generation.load(Relaxed) == config::rw_generation();
        plain.then(|| self.as_lock())
    }

    /// Whether it is ours; then of this generation.
    fn is_ours(&self) -> bool {
        self.shared.load(Relaxed) == 0 && self.settle()
    }

    fn settle(&self) -> bool {
        if config::get().rwlock == config::RwLock::Glibc {
            return false;
        }
        fork::settle(&self.generation, || {
            self.observed.store(0, Relaxed);
            // SAFETY: the threads of the generation before are gone, and those of this one wait until it is settled.
            behind!(self, |lock| unsafe {
                lock.settle(self.writer.load(Relaxed) != 0)
            });
        });
        true
    }

    fn as_glibcs(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    #[inline]
    fn passing(&self) -> Passing {
        if self.kind.load(Relaxed) == PREFER_WRITER {
            Passing::Never
        } else if reads::get() > 0 {
            Passing::AtOnce
        } else {
            Passing::Later
        }
    }

    /// Relaxed: only the caller itself can have written its own name.
    #[inline]
    fn is_mine(&self) -> bool {
        self.writer.load(Relaxed) == me()
    }

    /// How the validator of lock order sees a reader.
    fn how_read(&self) -> How {
        match self.kind.load(Relaxed) {
            PREFER_WRITER => How::SHARED,
            _ => How::SHARED_RECURSIVE,
        }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// The shortest way to read.
    #[inline]
    fn read_quickly(&self) -> bool {
        let read = self.recommended().is_some_and(Recommended::enter);
        if read {
            reads::change(|reads| reads.wrapping_add(1));
        }
        read
    }

    /// The shortest way to write.
    #[inline]
    fn write_quickly(&self) -> bool {
        let written = self.recommended().is_some_and(Recommended::seize);
        if written {
            self.writer.store(me(), Relaxed);
        }
        written
    }

    /// The shortest way to release.
    #[inline]
    fn release_quickly(&self) -> bool {
        let lock = self.recommended();
        lock.inspect(|lock| self.release_of(*lock)).is_some()
    }

    fn read(&self, until: Option<Instant>, site: Site) -> c_int {
        if self.is_mine() {
            return EDEADLK;
        }
        let wait = || behind!(self, |lock| lock.read(self.passing(), until));
        let result = if config::get().lockdep {
            // Not past those that wait: that is the wait's affair.
            let attempt = || behind!(self, |lock| lock.try_read(Passing::Never));
            let how = order::limited(self.how_read(), until.is_some());
            order::acquire(self.address(), how, site, attempt, wait)
        } else if config::get().stat {
            self.read_counted(until, site)
        } else {
            wait()
        };
        if result == 0 {
            reads::change(|reads| reads.wrapping_add(1));
        }
        result
    }

    fn try_read(&self, site: Site) -> c_int {
        let attempt = || behind!(self, |lock| lock.try_read(self.passing()));
        let result = if config::get().lockdep {
            order::attempt(self.address(), self.how_read(), site, attempt)
        } else if config::get().stat {
            self.has_read(attempt(), site)
        } else {
            attempt()
        };
        if result == 0 {
            reads::change(|reads| reads.wrapping_add(1));
        }
        result
    }

    fn write(&self, until: Option<Instant>, site: Site) -> c_int {
        if self.is_mine() {
            return EDEADLK;
        }
        let wait = || behind!(self, |lock| lock.write(until));
        let result = if config::get().lockdep {
            let attempt = || behind!(self, |lock| lock.try_write());
            let how = order::limited(How::EXCLUSIVE, until.is_some());
            order::acquire(self.address(), how, site, attempt, wait)
        } else if config::get().stat {
            self.write_counted(until, site)
        } else {
            wait()
        };
        if result == 0 {
            self.writer.store(me(), Relaxed);
        }
        result
    }

    fn try_write(&self, site: Site) -> c_int {
        let attempt = || behind!(self, |lock| lock.try_write());
        let result = if config::get().lockdep {
            order::attempt(self.address(), How::EXCLUSIVE, site, attempt)
        } else if config::get().stat {
            self.has_written(attempt(), site)
        } else {
            attempt()
        };
        if result == 0 {
            self.writer.store(me(), Relaxed);
        }
        result
    }

    fn release(&self) {
        if config::get().lockdep {
            self.release_in_order();
        }
        let release = || behind!(self, |lock| self.release_of(lock));
        match config::get().stat {
            true => self.release_counted(release),
            false => release(),
        }
    }

    /// Tells of it. A stranger's release of what is read cannot be told from that of a reader that was not seen.
    fn release_in_order(&self) {
        let address = self.address();
        if behind!(self, |lock| lock.is_written()) {
            order::release(address);
        } else if behind!(self, |lock| lock.is_read()) {
            order::release_shared(address);
        } else {
            order::release_free(address);
        }
    }

    /// Releases what the caller holds, which the lock itself knows.
    #[inline(always)]
    fn release_of(&self, lock: &impl Behind) {
        if lock.is_written() {
            self.writer.store(0, Relaxed);
            // SAFETY: there is a writer, and the caller holds the lock, as POSIX asks: so it is the writer.
            unsafe { lock.unlock_write() }
        } else if lock.is_read() {
            reads::change(|reads| reads.saturating_sub(1));
            // SAFETY: there is no writer, so the caller is a reader.
            unsafe { lock.unlock_read() }
        }
    }
}
