//! Acquisitions and releases [with statistics](crate::stat).
//!
//! Hold times of readers are not recorded: the lock has room for one flight, which is the writer's.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use overlock_core::Deadline;
use overlock_core::raw::RawRwLock;
use overlock_shared::ObjectKind;

use super::functions::{rdlock_generally, wrlock_generally};
use super::{Passing, READER, RwLock};
use crate::site::{Site, at_cache_line};
use crate::stat::flight::{self, Holder};
use crate::stat::{self, Spot, Where};
use crate::thread::{self, id_of, known, me};
use crate::{config, probes};

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
    let name = known();
    if name == 0 || stat::sampled(thread::call()) || recommended.is_contended() {
        return rdlock_generally(lock, site);
    }
    if !recommended.come_in() {
        return read_slowly(lock, site);
    }
    thread::begin_read();
    lock.note_reader(name, site);
    probes::rdlock_acquire_read(lock.address());
    0
}

#[cold]
#[inline(never)]
extern "C" fn read_slowly(lock: &RwLock, site: Site) -> c_int {
    lock.recommended().back_out();
    rdlock_generally(lock, site)
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
    let name = known();
    let is_general = name == 0 || stat::sampled(lock.writes()) || recommended.is_contended();
    if is_general || !recommended.try_write_now() {
        return wrlock_generally(lock, site);
    }
    lock.writer.store(name, Relaxed);
    lock.note_writer(site);
    probes::wrlock_acquire_write(lock.address());
    0
}

impl RwLock {
    fn at(&self, kind: ObjectKind, site: Site) -> Spot {
        Spot::of(Where {
            object: self.address(),
            kind,
            site,
            mark: self.object().mark.load(Relaxed),
        })
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

    /// The present writer, or else the last reader, as far as that is known.
    fn holder(&self) -> Holder {
        let lock = self.recommended();
        if lock.is_write_locked() {
            let site = (self.written.load(Relaxed) >> 32) as u32;
            let stack = flight::stack(self.observed.load(Relaxed), site);
            let tid = id_of(self.writer.load(Relaxed));
            return Holder { site, stack, tid };
        }
        if !lock.is_locked() {
            return Holder::default();
        }
        Holder {
            site: self.reader.load(Relaxed),
            stack: 0,
            tid: self.lock[READER].load(Relaxed),
        }
    }

    #[cold]
    pub(super) fn attempt_to_read_counted(&self, passing: Passing, site: Site) -> c_int {
        stat::takes_lock();
        let is_waited_for = self.recommended().is_contended();
        let call = thread::begin_call();
        let weight = stat::weight(call, false);
        let unfair = is_waited_for
            .then(|| stat::unfair_weight(call, false))
            .flatten();
        let at = (unfair.is_some() || weight.is_some()).then(|| self.at(ObjectKind::Read, site));
        let error = self.try_take_share(passing);
        if error == 0 {
            self.note_reader(me(), site);
            if is_waited_for {
                stat::takes(self.address());
                stat::has_release_noted(&self.observed);
            }
            if let (Some(at), Some(unfair)) = (at, unfair) {
                stat::unfair(&at, unfair);
            }
            if let (Some(at), Some(weight)) = (at, weight) {
                stat::sample_shared(&at, weight);
            }
        }
        error
    }

    #[cold]
    pub(super) fn wait_to_read_counted(&self, until: Option<Deadline>, site: Site) -> c_int {
        let at = self.at(ObjectKind::Read, site);
        let wait = stat::Wait::begin(at, self.holder(), self.writes());
        stat::has_release_noted(&self.observed);
        let error = self.take_share(self.passing(), until);
        if error == 0 {
            self.note_reader(me(), site);
            wait.over_shared(self.writes());
        } else {
            wait.gave_up();
        }
        self.has_waited();
        error
    }

    /// Records the call site of a reader for later waiters. Of concurrent readers one prevails.
    #[inline(always)]
    fn note_reader(&self, name: usize, site: Site) {
        self.reader.store(site as u32, Relaxed);
        self.lock[READER].store(id_of(name), Relaxed);
    }

    #[cold]
    pub(super) fn attempt_to_write_counted(&self, site: Site) -> c_int {
        stat::takes_lock();
        let is_waited_for = self.recommended().is_contended();
        // Before the acquisition, as on the fast path, which calls this for sampled acquisitions.
        let count = self.writes();
        let weight = stat::weight(count, true);
        let unfair = is_waited_for
            .then(|| stat::unfair_weight(count, true))
            .flatten();
        let at = (unfair.is_some() || weight.is_some()).then(|| self.at(ObjectKind::Write, site));
        let error = self.try_take();
        if error != 0 {
            return error;
        }
        self.note_writer(site);
        let is_noted = is_waited_for && stat::notes_owner(self.address(), count);
        if is_noted {
            stat::takes(self.address());
        }
        if let (Some(at), Some(unfair)) = (at, unfair) {
            stat::unfair(&at, unfair);
        }
        if let (Some(at), Some(weight)) = (at, weight) {
            self.observed.store(stat::sample(at, weight), Relaxed);
        } else if is_noted {
            self.observed.store(flight::NOTED, Relaxed);
        }
        0
    }

    #[cold]
    pub(super) fn wait_to_write_counted(&self, until: Option<Deadline>, site: Site) -> c_int {
        let at = self.at(ObjectKind::Write, site);
        let wait = stat::Wait::begin(at, self.holder(), self.writes());
        stat::has_release_noted(&self.observed);
        let error = self.take(until);
        if error == 0 {
            self.note_writer(site);
            let flight = wait.over(self.writes()).flight;
            self.observed.store(stat::or_noted(flight), Relaxed);
        } else {
            wait.gave_up();
            self.has_waited();
        }
        error
    }

    /// Releases the lock, whose writer's acquisition may be recorded.
    #[cold]
    pub(super) fn release_counted(&self, release: impl FnOnce()) {
        // While a reader holds the lock there is no writer: a flight is the caller's own.
        let flight = self.observed.load(Relaxed);
        if flight == 0 {
            return release();
        }
        let lock = self.recommended();
        let is_writers = lock.is_write_locked();
        if config::get().profile {
            // Readers do not count.
            let count = is_writers.then(|| self.writes());
            stat::releases(self.address(), count, !is_writers && lock.is_contended());
        }
        if is_writers {
            self.observed.store(0, Relaxed);
        }
        // The mark stays for other readers: the last one's release is what a writer waits for.
        match flight {
            flight::NOTED => release(),
            flight => stat::released_by(flight, release),
        }
    }

    /// A wait has ended without an acquisition that has a release of its own. Its mark, if the
    /// owner did not see it, would have the releases of all later readers looked at.
    fn has_waited(&self) {
        if !self.recommended().is_contended() {
            // Relaxed: as where it is set.
            _ = (self.observed).compare_exchange(flight::NOTED, 0, Relaxed, Relaxed);
        }
    }
}
