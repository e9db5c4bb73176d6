//! Acquisitions and releases that are [counted](crate::stat).

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use overlock_core::raw::RawLock;
use overlock_stat::Kind;

use super::functions::lock_generally;
use super::raw::raw;
use super::{Mutex, NORMAL, Wait};
use crate::config;
use crate::site::{Site, at_cache_line};
use crate::stat::{self, Where, flight};
use crate::thread;

at_cache_line!(".text.overlock.lock_counted");

/// `pthread_mutex_lock`, the shortest way with statistics, or else the general one.
#[inline(never)]
#[unsafe(link_section = ".text.overlock.lock_counted")]
pub(super) extern "C" fn lock_counted(mutex: &Mutex, site: Site) -> c_int {
    // Adaptive ones go the general way: one branch less here.
    if mutex.kind() != NORMAL || mutex.generation.load(Relaxed) != config::stat_generation() {
        return lock_generally(mutex, site);
    }
    let lock = mutex.main();
    // Decided before the acquisition: a processor has nothing else to do until that is over, and
    // could do this only behind it. The general way looks again.
    let count = mutex.acquisitions().load(Relaxed);
    if stat::sampled(count) || lock.is_contended() || lock.try_lock().is_none() {
        return lock_generally(mutex, site);
    }
    mutex.acquisitions().store(count.wrapping_add(1), Relaxed);
    mutex.note(site);
    0
}

impl Mutex {
    fn at(&self, site: Site) -> Where {
        Where {
            object: core::ptr::from_ref(self).addr(),
            kind: Kind::Mutex,
            site,
        }
    }

    /// Where the present owner has acquired it: the lower half, or 0 where that is not known.
    fn holder(&self) -> u32 {
        match self.is_plain() {
            true => self.count.load(Relaxed),
            false => flight::site(self.observed.load(Relaxed)),
        }
    }

    /// For those who wait: the lower half of the owner's call site, in a field that normal mutexes
    /// do not need.
    #[inline(always)]
    fn note(&self, site: Site) {
        self.count.store(site as u32, Relaxed);
    }

    /// How often the lock was acquired, where that is counted.
    fn count_of_lock(&self) -> Option<u32> {
        let counts = config::get().mutex == config::MutexLock::Overlock;
        counts.then(|| self.acquisitions().load(Relaxed))
    }

    /// The lock, if it is free: the general way.
    #[cold]
    pub(super) fn attempt_counted(&self, site: Site) -> c_int {
        let is_waited_for = raw!(self, |lock| lock.is_contended());
        // Before the acquisition, as on the shortest way, which comes here with what is sampled.
        let own = self.count_of_lock();
        let error = self.try_acquire();
        if error == 0 {
            let at = self.at(site);
            let count = own.unwrap_or_else(thread::begin_call);
            if is_waited_for {
                stat::unfair(at, count);
            }
            let weight = stat::weight(count, own.is_some());
            let flight = weight.map_or(0, |weight| stat::sample(at, weight));
            self.is_taken(flight, site);
        }
        error
    }

    /// The lock, which was not free: the general way.
    #[cold]
    pub(super) fn wait_counted(&self, wait: Wait, site: Site) -> c_int {
        let before = self.count_of_lock().unwrap_or_default();
        let waiting = stat::Wait::begin(self.holder(), before);
        let error = self.take(wait);
        if error == 0 {
            let count = self.count_of_lock().unwrap_or_default();
            self.is_taken(waiting.over(self.at(site), count), site);
        } else {
            waiting.gave_up(self.at(site));
        }
        error
    }

    /// For those who wait, and for the release.
    fn is_taken(&self, flight: u32, site: Site) {
        if let Some(count) = self.count_of_lock() {
            self.acquisitions().store(count.wrapping_add(1), Relaxed);
        }
        if self.is_plain() {
            self.note(site);
        }
        self.observed.store(flight, Relaxed);
    }

    /// Releases one whose owner's acquisition is recorded.
    #[cold]
    pub(super) fn release_recorded(&self, release: impl FnOnce()) {
        let flight = self.observed.load(Relaxed);
        let now = stat::releasing();
        self.observed.store(0, Relaxed);
        release();
        stat::released(flight, now);
    }
}
