//! Acquisitions and releases [with statistics](crate::stat).
//!
//! Hold times of readers are not recorded: the lock has room for one flight, which is the writer's.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use overlock_core::Deadline;
use overlock_core::raw::RawRwLock;
use overlock_shared::ObjectKind;

use super::functions::{rdlock_generally, wrlock_generally};
use super::{Passing, RwLock};
use crate::config;
use crate::site::{Site, at_cache_line};
use crate::stat::{self, Where};
use crate::thread::{self, me};

at_cache_line!(".text.overlock.rdlock_counted");
at_cache_line!(".text.overlock.wrlock_counted");

/// The fast path to read with statistics; otherwise calls the general path.
#[inline(never)]
#[unsafe(link_section = ".text.overlock.rdlock_counted")]
pub(super) extern "C" fn read(lock: &RwLock, site: Site) -> c_int {
    if !lock.is_plain(config::rw_stat_generation()) {
        return rdlock_generally(lock, site);
    }
    let recommended = lock.recommended();
    // Decided before the acquisition, as with mutexes. The general path decides again.
    let is_general = stat::sampled(thread::call()) || recommended.is_contended();
    if is_general || !recommended.enter() {
        return rdlock_generally(lock, site);
    }
    thread::begin_read();
    lock.note_reader(site);
    0
}

/// The fast path to write with statistics; otherwise calls the general path.
#[inline(never)]
#[unsafe(link_section = ".text.overlock.wrlock_counted")]
pub(super) extern "C" fn write(lock: &RwLock, site: Site) -> c_int {
    if !lock.is_plain(config::rw_stat_generation()) {
        return wrlock_generally(lock, site);
    }
    let recommended = lock.recommended();
    // As above.
    if stat::sampled(lock.writes()) || recommended.is_contended() || !recommended.try_write_now() {
        return wrlock_generally(lock, site);
    }
    lock.writer.store(me(), Relaxed);
    lock.note_writer(site);
    0
}

impl RwLock {
    fn at(&self, kind: ObjectKind, site: Site) -> Where {
        Where {
            object: self.address(),
            kind,
            site,
        }
    }

    /// Records the call site of the writer, which is the caller, for later waiters, and counts the
    /// acquisition.
    #[inline(always)]
    fn note_writer(&self, site: Site) {
        // One store for both, and not a read-modify-write: only the writer writes it.
        let written = (site as u64) << 32 | u64::from(self.writes().wrapping_add(1));
        self.written.store(written, Relaxed);
    }

    /// The number of write acquisitions, modulo 2^32.
    #[inline(always)]
    fn writes(&self) -> u32 {
        self.written.load(Relaxed) as u32
    }

    /// The lower half of the call site of the present writer, or else of the last reader; 0 if
    /// there is none.
    fn holder(&self) -> u32 {
        let lock = self.recommended();
        if lock.is_write_locked() {
            (self.written.load(Relaxed) >> 32) as u32
        } else if lock.is_locked() {
            self.reader.load(Relaxed)
        } else {
            0
        }
    }

    #[cold]
    pub(super) fn attempt_to_read_counted(&self, passing: Passing, site: Site) -> c_int {
        stat::takes_lock();
        let is_waited_for = self.recommended().is_contended();
        let error = self.try_take_share(passing);
        if error == 0 {
            self.note_reader(site);
            let at = self.at(ObjectKind::Read, site);
            let call = thread::begin_call();
            if is_waited_for {
                stat::unfair(at, call);
            }
            if let Some(weight) = stat::weight(call, false) {
                stat::sample_shared(at, weight);
            }
        }
        error
    }

    #[cold]
    pub(super) fn wait_to_read_counted(&self, until: Option<Deadline>, site: Site) -> c_int {
        let wait = stat::Wait::begin(self.holder(), self.writes());
        let error = self.take_share(self.passing(), until);
        let at = self.at(ObjectKind::Read, site);
        if error == 0 {
            self.note_reader(site);
            wait.over_shared(at, self.writes());
        } else {
            wait.gave_up(at);
        }
        error
    }

    /// Records the call site of a reader for later waiters. Of concurrent readers one prevails.
    #[inline(always)]
    fn note_reader(&self, site: Site) {
        self.reader.store(site as u32, Relaxed);
    }

    #[cold]
    pub(super) fn attempt_to_write_counted(&self, site: Site) -> c_int {
        stat::takes_lock();
        let is_waited_for = self.recommended().is_contended();
        let error = self.try_take();
        if error != 0 {
            return error;
        }
        let count = self.writes();
        self.note_writer(site);
        let at = self.at(ObjectKind::Write, site);
        if is_waited_for {
            stat::unfair(at, count);
        }
        if let Some(weight) = stat::weight(count, true) {
            self.observed.store(stat::sample(at, weight), Relaxed);
        }
        0
    }

    #[cold]
    pub(super) fn wait_to_write_counted(&self, until: Option<Deadline>, site: Site) -> c_int {
        let wait = stat::Wait::begin(self.holder(), self.writes());
        let error = self.take(until);
        let at = self.at(ObjectKind::Write, site);
        if error == 0 {
            self.note_writer(site);
            let flight = wait.over(at, self.writes());
            self.observed.store(flight, Relaxed);
        } else {
            wait.gave_up(at);
        }
        error
    }

    /// Releases the lock, whose writer's acquisition may be recorded.
    #[cold]
    pub(super) fn release_counted(&self, release: impl FnOnce()) {
        // While a reader holds the lock there is no writer: the number is the caller's own, or 0.
        let flight = self.observed.load(Relaxed);
        if flight == 0 {
            return release();
        }
        self.observed.store(0, Relaxed);
        stat::released_by(flight, release);
    }
}
