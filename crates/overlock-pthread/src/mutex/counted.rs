//! Acquisitions and releases that are [counted](crate::stat).

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use overlock::core::raw::RawLock;
use overlock_stat::{EARLY, Kind};

use super::raw::{Behind, raw};
use super::{Mutex, RECURSIVE, Wait, me};
use crate::site::Site;
use crate::stat::{self, Where, flight};

/// `pthread_mutex_lock`, the shortest way with statistics.
#[inline(always)]
pub(super) fn lock_counted(mutex: &Mutex, site: Site) -> c_int {
    let lock = mutex.main();
    let count = lock.acquisitions();
    // Decided before the acquisition: a processor has nothing else to do until that is over, and could do this only behind it.
    if count < EARLY || stat::late_sampled(count) {
        return lock_sampled(mutex, site, count);
    }
    if lock.try_lock().is_none() {
        return lock_contended(mutex, site);
    }
    mutex.owner.store(me(), Relaxed);
    mutex.note(site);
    0
}

// A function of C's convention does not unwind, so that calling it last is a jump.
#[cold]
#[inline(never)]
extern "C" fn lock_sampled(mutex: &Mutex, site: Site, count: u32) -> c_int {
    if mutex.main().try_lock().is_none() {
        return lock_contended(mutex, site);
    }
    mutex.owner.store(me(), Relaxed);
    mutex.note(site);
    let at = mutex.at(site);
    if stat::sampled(at.object, count) {
        mutex.observed.store(stat::sample(at, count), Relaxed);
    }
    0
}

#[cold]
#[inline(never)]
extern "C" fn lock_contended(mutex: &Mutex, site: Site) -> c_int {
    let lock = mutex.main();
    let wait = stat::Wait::begin(mutex.holder(), lock.acquisitions());
    lock.lock();
    mutex.owner.store(me(), Relaxed);
    mutex.note(site);
    let flight = wait.over(mutex.at(site), lock.acquisitions());
    mutex.observed.store(flight, Relaxed);
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
        match self.kind() {
            RECURSIVE => flight::site(self.observed.load(Relaxed)),
            _ => self.count.load(Relaxed),
        }
    }

    /// For those who wait: the lower half of the owner's call site, in a field that only recursive mutexes need.
    #[inline(always)]
    fn note(&self, site: Site) {
        self.count.store(site as u32, Relaxed);
    }

    /// The general way to take a lock that is not the caller's yet.
    #[cold]
    pub(super) fn take_counted(&self, wait: Wait, site: Site) -> c_int {
        let at = self.at(site);
        let mut error = self.try_acquire();
        let count = || raw!(self, |lock| lock.counted());
        let mut flight = 0;
        if error == 0 {
            let count = count().unwrap_or_else(stat::tick);
            if stat::sampled(at.object, count) {
                flight = stat::sample(at, count);
            }
        } else if !matches!(wait, Wait::Not | Wait::Until(Err(_))) {
            let before = count().unwrap_or_default();
            let waiting = stat::Wait::begin(self.holder(), before);
            error = self.take(wait);
            if error == 0 {
                flight = waiting.over(at, count().unwrap_or_default());
            } else {
                waiting.gave_up(at);
            }
        } else {
            error = self.take(wait);
        }
        if error == 0 {
            if self.kind() != RECURSIVE {
                self.note(site);
            }
            self.observed.store(flight, Relaxed);
        }
        error
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
