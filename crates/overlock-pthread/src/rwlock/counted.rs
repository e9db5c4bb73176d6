//! Acquisitions and releases that are [counted](crate::stat).
//!
//! How long readers hold a lock is not: there is one place in it for what is under way, and it is the writer's.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use libc::EBUSY;
use overlock::core::Instant;
use overlock::core::sleep::RwSem;
use overlock_stat::Kind;

use super::raw::Recommended;
use super::{Behind, Linux, Passing, RwLock, behind, reads};
use crate::config;
use crate::mutex::me;
use crate::site::Site;
use crate::stat::{self, Where};

impl RwLock {
    fn at(&self, kind: Kind, site: Site) -> Where {
        Where {
            object: self.address(),
            kind,
            site,
        }
    }

    /// The lock, where the shortest ways with statistics are for it.
    #[inline(always)]
    fn plain_counted(&self) -> Option<&Recommended> {
        // Relaxed: written before the lock is used.
        let plain = self.shared.load(Relaxed) == 0
            && self.generation.load(Relaxed) == config::rw_stat_generation();
        plain.then(|| self.as_lock())
    }

    #[inline]
    pub(super) fn read_quickly_counted(&self, site: Site) -> bool {
        let read = self.plain_counted().is_some_and(Recommended::enter);
        if read {
            reads::change(|reads| reads.wrapping_add(1));
            self.has_read(0, site);
        }
        read
    }

    #[inline]
    pub(super) fn write_quickly_counted(&self, site: Site) -> bool {
        let written = self.plain_counted().is_some_and(Recommended::seize);
        if written {
            self.writer.store(me(), Relaxed);
            self.has_written(0, site);
        }
        written
    }

    #[inline]
    pub(super) fn release_quickly_counted(&self) -> bool {
        let lock = self.plain_counted();
        let lock = lock.filter(|_| self.observed.load(Relaxed) == 0);
        lock.inspect(|lock| self.release_of(*lock)).is_some()
    }

    /// Where the writer that is inside has acquired it: the lower half, or 0 where there is none.
    fn holder(&self) -> u32 {
        match behind!(self, |lock| lock.is_written()) {
            true => self.site.load(Relaxed),
            false => 0,
        }
    }

    #[cold]
    pub(super) fn read_counted(&self, until: Option<Instant>, site: Site) -> c_int {
        // One that passes nobody: who would have waited waits.
        let error = behind!(self, |lock| lock.try_read(Passing::Never));
        if error != EBUSY {
            return self.has_read(error, site);
        }
        let wait = stat::Wait::begin(self.holder(), 0);
        let error = behind!(self, |lock| lock.read(self.passing(), until));
        let at = self.at(Kind::Read, site);
        match error {
            0 => wait.over_shared(at),
            _ => wait.gave_up(at),
        }
        error
    }

    /// An attempt to read has ended so.
    #[inline]
    pub(super) fn has_read(&self, error: c_int, site: Site) -> c_int {
        if error == 0 && stat::sampled(stat::tick()) {
            stat::sample_shared(self.at(Kind::Read, site));
        }
        error
    }

    #[cold]
    pub(super) fn write_counted(&self, until: Option<Instant>, site: Site) -> c_int {
        let error = behind!(self, |lock| lock.try_write());
        if error != EBUSY {
            return self.has_written(error, site);
        }
        let wait = stat::Wait::begin(self.holder(), 0);
        let error = behind!(self, |lock| lock.write(until));
        let at = self.at(Kind::Write, site);
        if error == 0 {
            self.site.store(site as u32, Relaxed);
            self.observed.store(wait.over(at, 0), Relaxed);
        } else {
            wait.gave_up(at);
        }
        error
    }

    /// An attempt to write has ended so.
    #[inline]
    pub(super) fn has_written(&self, error: c_int, site: Site) -> c_int {
        if error == 0 {
            self.site.store(site as u32, Relaxed);
            if stat::sampled(stat::tick()) {
                let flight = stat::sample(self.at(Kind::Write, site));
                self.observed.store(flight, Relaxed);
            }
        }
        error
    }

    /// Releases one whose writer's acquisition may be recorded.
    #[cold]
    pub(super) fn release_counted(&self, release: impl FnOnce()) {
        // While a reader is inside there is no writer: what is there is the caller's own, or nothing.
        let flight = self.observed.load(Relaxed);
        if flight == 0 {
            return release();
        }
        let now = stat::releasing();
        self.observed.store(0, Relaxed);
        release();
        stat::released(flight, now);
    }
}
