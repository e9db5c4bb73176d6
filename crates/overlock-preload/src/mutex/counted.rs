//! Acquisitions and releases [with statistics](crate::stat).

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use overlock_core::raw::RawLock;
use overlock_shared::ObjectKind;

use super::functions::lock_generally;
use super::{Mutex, NORMAL, Wait};
use crate::config;
use crate::site::{Site, at_cache_line};
use crate::stat::{self, Where, flight};

at_cache_line!(".text.overlock.lock_counted");

/// `pthread_mutex_lock`: the fast path with statistics; otherwise calls the general path.
#[inline(never)]
#[unsafe(link_section = ".text.overlock.lock_counted")]
pub(super) extern "C" fn lock_counted(mutex: &Mutex, site: Site) -> c_int {
    // Adaptive mutexes take the general path: one branch less here.
    if mutex.kind() != NORMAL || mutex.generation.load(Relaxed) != config::stat_generation() {
        return lock_generally(mutex, site);
    }
    let lock = mutex.main();
    // Decided before the acquisition: while that atomic operation is under way the processor has
    // nothing else to do, and after it this would cost extra. The general path decides again.
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
            kind: ObjectKind::Mutex,
            site,
        }
    }

    /// The lower half of the call site of the present owner, or 0 if that is not known.
    fn holder(&self) -> u32 {
        match self.is_plain() {
            true => self.count.load(Relaxed),
            false => flight::site(self.observed.load(Relaxed)),
        }
    }

    /// Records the lower half of the owner's call site for later waiters, in a field that normal
    /// mutexes do not need.
    #[inline(always)]
    fn note(&self, site: Site) {
        self.count.store(site as u32, Relaxed);
    }

    /// Tries to acquire the lock with statistics: the general path. Returns 0 or `EBUSY`.
    #[cold]
    pub(super) fn attempt_counted(&self, site: Site) -> c_int {
        stat::takes_lock();
        let is_waited_for = self.main().is_contended();
        // Before the acquisition, as on the fast path, which calls this for sampled acquisitions.
        let count = self.acquisitions().load(Relaxed);
        let error = self.try_acquire();
        if error == 0 {
            let at = self.at(site);
            if is_waited_for {
                stat::unfair(at, count);
            }
            let weight = stat::weight(count, true);
            let flight = weight.map_or(0, |weight| stat::sample(at, weight));
            self.is_taken(flight, site);
        }
        error
    }

    /// Acquires a lock that was not free, with statistics: the general path. Returns 0 or an errno.
    #[cold]
    pub(super) fn wait_counted(&self, wait: Wait, site: Site) -> c_int {
        let before = self.acquisitions().load(Relaxed);
        let waiting = stat::Wait::begin(self.holder(), before);
        let error = self.take(wait);
        if error == 0 {
            let count = self.acquisitions().load(Relaxed);
            self.is_taken(waiting.over(self.at(site), count), site);
        } else {
            waiting.gave_up(self.at(site));
        }
        error
    }

    /// Records the acquisition for later waiters, and its flight for the release.
    fn is_taken(&self, flight: u32, site: Site) {
        let count = self.acquisitions().load(Relaxed);
        self.acquisitions().store(count.wrapping_add(1), Relaxed);
        if self.is_plain() {
            self.note(site);
        }
        self.observed.store(flight, Relaxed);
    }

    /// Releases the lock, whose owner's acquisition is recorded.
    #[cold]
    pub(super) fn release_recorded(&self, release: impl FnOnce()) {
        let flight = self.observed.load(Relaxed);
        self.observed.store(0, Relaxed);
        stat::released_by(flight, release);
    }
}
