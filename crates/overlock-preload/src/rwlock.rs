//! `pthread_rwlock_t`: the recommended reader-writer lock in glibc's objects.
//!
//! # Layout
//!
//! 56 bytes. The static initialisers are all zero, but for the kind of lock at offset 48.
//!
//! | offset | field | who writes it |
//! |---|---|
//! | 0 | `lock`: `overlock_rw`, 8 bytes of 20 | the lock |
//! | 12 | with statistics, the id of the last reader | each reader that acquires it |
//! | 16 | a mark; 0 for none | the validator at the first use; with statistics the initialisation |
//! | 20 | `generation`: see [`crate::fork`] | its first user in a generation |
//! | 24 | `observed`: the number of the flight (`stat::flight`) of the writer's acquisition; 0 for none | the writer; one that waits for readers, to have the release noted |
//! | 28 | `shared`: not 0 in glibc's objects that are shared between processes | glibc's `pthread_rwlock_init` |
//! | 32 | `writer`: the thread that holds the lock for writing; 0 for none | that thread |
//! | 40 | `written`: with statistics, the number of write acquisitions, and above that the lower half of the last call site | the writer |
//! | 48 | `kind`: 2 where readers must not barge past waiting writers | the initialiser |
//! | 52 | `reader`: the lower half of a reader's call site, with statistics | each reader that acquires it |
//!
//! # Which objects are ours
//!
//! A process-shared lock is glibc's, whichever process has made it: its `shared` is not 0, and in
//! ours it is.
//!
//! # Readers and waiting writers
//!
//! POSIX leaves it open whether a reader waits for waiting writers. glibc's readers do so only with
//! the kind `PREFER_WRITER_NONRECURSIVE`, and programs have come to rely on that: a thread may
//! acquire a read lock recursively, and readers may wait for each other, by any means, while
//! writers wait. But then readers can starve writers.
//!
//! So here a reader waits behind a writer for a while (`BARGE_DELAY_NS`), and barges then. A thread
//! that reads any lock already barges at once. (A thread counts the locks that it reads, but does
//! not know which.) A trylock always barges. With `PREFER_WRITER_NONRECURSIVE` no reader barges
//! past the first waiting writer once that has found only readers, or has waited for
//! `BARGE_DELAY_NS`.

mod counted;
pub mod functions;
mod posix;
#[cfg(test)]
mod tests;

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use libc::EDEADLK;
use overlock::Linux;
use overlock_core::Deadline;
use overlock_core::raw::{RawForkRwLock, RawRwLock};
use overlock_core::rw::OverlockRw;
use overlock_core::rw::overlock_rw::Passing;

use crate::order::{self, How, Object};
use crate::site::Site;
use crate::thread::{self, me};
use crate::{config, fork, probes};

/// The program's object: see the [module's page](self).
#[derive(Debug)]
#[repr(C)]
pub struct RwLock {
    lock: [AtomicU32; 5],
    generation: AtomicU32,
    observed: AtomicU32,
    shared: AtomicU32,
    writer: AtomicUsize,
    written: AtomicU64,
    kind: AtomicU32,
    reader: AtomicU32,
}

const _: () = assert!(size_of::<RwLock>() == size_of::<libc::pthread_rwlock_t>());
const _: () = assert!(core::mem::offset_of!(RwLock, shared) == 28);
const _: () = assert!(core::mem::offset_of!(RwLock, kind) == 48);

/// glibc's attributes object.
#[derive(Debug)]
#[repr(C)]
pub struct Attributes {
    kind: c_int,
    shared: c_int,
}

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`
const PREFER_WRITER: u32 = 2;

/// The word of `lock` in which readers leave their ids.
const READER: usize = 3;

type Recommended = OverlockRw<Linux>;

impl RwLock {
    fn new(kind: u32) -> Self {
        RwLock {
            lock: [const { AtomicU32::new(0) }; 5],
            generation: AtomicU32::new(fork::generation()),
            observed: AtomicU32::new(0),
            shared: AtomicU32::new(0),
            writer: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            kind: AtomicU32::new(kind),
            reader: AtomicU32::new(0),
        }
    }

    #[inline(always)]
    fn recommended(&self) -> &Recommended {
        const {
            assert!(
                size_of::<Recommended>() <= size_of::<[AtomicU32; 5]>()
                    && align_of::<Recommended>() <= align_of::<u32>()
            )
        };
        // SAFETY: the lock's size and alignment fit, all zero bytes are an unlocked one, and all
        // accesses are through the same type.
        unsafe { &*core::ptr::from_ref(&self.lock).cast() }
    }

    /// Whether it is ours; updates it to the process's generation.
    fn is_ours(&self) -> bool {
        self.shared.load(Relaxed) == 0 && self.update()
    }

    fn update(&self) -> bool {
        if config::get().rwlock == config::Lock::Glibc {
            return false;
        }
        fork::update(&self.generation, || {
            self.observed.store(0, Relaxed);
            // SAFETY: no other thread of the earlier generation exists, and those of this one wait
            // until the update is done.
            unsafe {
                self.recommended()
                    .forget_waiters(self.writer.load(Relaxed) != 0)
            };
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
        } else if thread::reads() > 0 {
            Passing::AtOnce
        } else {
            Passing::Later
        }
    }

    /// Whether the calling thread holds it for writing. Relaxed: only the caller itself can have
    /// written its own name.
    #[inline]
    fn is_mine(&self) -> bool {
        self.writer.load(Relaxed) == me()
    }

    /// The validator's mode for a reader.
    fn how_read(&self) -> How {
        match self.kind.load(Relaxed) {
            PREFER_WRITER => How::SHARED,
            _ => How::SHARED_RECURSIVE,
        }
    }

    /// The lock as the validator knows it.
    fn object(&self) -> Object<'_> {
        const { assert!(size_of::<Recommended>() <= size_of::<[AtomicU32; READER]>()) };
        Object {
            address: self.address(),
            mark: &self.lock[4],
        }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Whether it is ours, and of `generation`. The configuration has one
    /// such generation for each use of the fast path.
    #[inline(always)]
    fn is_plain(&self, generation: u32) -> bool {
        // Relaxed: written before the lock is used.
        self.generation.load(Relaxed) == generation && self.shared.load(Relaxed) == 0
    }

    /// The fast path of a write acquisition.
    #[inline(always)]
    fn write_quickly(&self) -> bool {
        let plain = self.is_plain(config::rw_generation());
        let written = plain && self.recommended().try_write_now();
        if written {
            self.writer.store(me(), Relaxed);
        }
        written
    }

    /// The fast path of a release.
    #[inline]
    fn release_quickly(&self) -> bool {
        let plain =
            self.is_plain(config::rw_unlock_generation()) && self.observed.load(Relaxed) == 0;
        if plain {
            self.release_raw();
        }
        plain
    }

    fn read(&self, until: Option<Deadline>, site: Site) -> c_int {
        if self.is_mine() {
            return EDEADLK;
        }
        // Barges only if `wait` would do so at once, and never under the validator.
        let passing = match self.passing() {
            Passing::AtOnce if !config::get().lockdep => Passing::AtOnce,
            _ => Passing::Never,
        };
        let attempt = || self.attempt_to_read(passing, site);
        let wait = || match config::get().stat {
            true => self.wait_to_read_counted(until, site),
            false => self.take_share(self.passing(), until),
        };
        let how = order::limited(self.how_read(), until.is_some());
        let result = self.has_read(order::acquire(self.object(), how, site, attempt, wait));
        if result == 0 && until.is_none() {
            probes::rdlock_acquire_read(self.address());
        }
        result
    }

    fn try_read(&self, site: Site) -> c_int {
        let attempt = || self.attempt_to_read(self.passing(), site);
        self.has_read(order::attempt(
            self.object(),
            self.how_read(),
            site,
            attempt,
        ))
    }

    /// Counts the lock among those that the thread reads, if an acquisition has returned 0.
    fn has_read(&self, result: c_int) -> c_int {
        if result == 0 {
            thread::change_reads(|reads| reads.wrapping_add(1));
        }
        result
    }

    /// Tries to acquire a share of the lock, with statistics if configured. Returns 0 or an errno.
    fn attempt_to_read(&self, passing: Passing, site: Site) -> c_int {
        match config::get().stat {
            true => self.attempt_to_read_counted(passing, site),
            false => self.try_take_share(passing),
        }
    }

    fn write(&self, until: Option<Deadline>, site: Site) -> c_int {
        if self.is_mine() {
            return EDEADLK;
        }
        let wait = || match config::get().stat {
            true => self.wait_to_write_counted(until, site),
            false => self.take(until),
        };
        let attempt = || self.attempt_to_write(site);
        let how = order::limited(How::EXCLUSIVE, until.is_some());
        let result = self.has_written(order::acquire(self.object(), how, site, attempt, wait));
        if result == 0 && until.is_none() {
            probes::wrlock_acquire_write(self.address());
        }
        result
    }

    fn try_write(&self, site: Site) -> c_int {
        let attempt = || self.attempt_to_write(site);
        self.has_written(order::attempt(self.object(), How::EXCLUSIVE, site, attempt))
    }

    /// Records the calling thread as the writer, if an acquisition has returned 0.
    fn has_written(&self, result: c_int) -> c_int {
        if result == 0 {
            self.writer.store(me(), Relaxed);
        }
        result
    }

    /// Tries to acquire the lock for writing, with statistics if configured. Returns 0 or an errno.
    fn attempt_to_write(&self, site: Site) -> c_int {
        match config::get().stat {
            true => self.attempt_to_write_counted(site),
            false => self.try_take(),
        }
    }

    fn release(&self) {
        if config::get().lockdep {
            self.report_release();
        }
        let release = || self.release_raw();
        match config::get().stat {
            true => self.release_counted(release),
            false => release(),
        }
    }

    /// Reports the release. A release by a thread that does not hold a share looks like that of a
    /// reader whose acquisition was not seen.
    fn report_release(&self) {
        let address = self.address();
        if self.recommended().is_write_locked() {
            order::release(address);
        } else if self.recommended().is_locked() {
            order::release_shared(address);
        } else {
            order::release_free(address);
        }
    }

    /// Releases what the caller holds: the lock's state says whether for reading or writing.
    #[inline(always)]
    fn release_raw(&self) {
        let lock = self.recommended();
        if lock.is_write_locked() {
            self.writer.store(0, Relaxed);
            // SAFETY: there is a writer, and the caller holds the lock, as POSIX demands: so it is
            // the writer.
            unsafe { lock.unlock_write(()) }
        } else if lock.is_locked() {
            thread::change_reads(|reads| reads.saturating_sub(1));
            // SAFETY: there is no writer, so the caller is a reader.
            unsafe { lock.unlock_read(()) }
        }
    }
}
