//! Acquisitions and releases [with statistics](crate::stat).

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use overlock_core::raw::RawLock;
use overlock_shared::ObjectKind;

use super::functions::lock_generally;
use super::{Mutex, NORMAL, Wait, raw};
use crate::site::{Site, at_cache_line};
use crate::stat::{self, Spot, Where, flight};
use crate::thread::{id_of, known, me};
use crate::{config, probes};

/// How many acquisitions are [watched](Mutex::is_watched) after a wait, if none were a moment ago.
const WATCHED: u32 = 16;

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
    // nothing else to do, and after it this would cost extra. The general path decides again, and
    // gives the thread its name: no call here, so no registers are saved.
    let count = mutex.acquisitions().load(Relaxed);
    let name = known();
    let is_general = name == 0
        || stat::sampled(count)
        || is_within(mutex.spare().load(Relaxed), count)
        || lock.seems_contended() && stat::looks_at_unfair(mutex.address(), count);
    if is_general || lock.try_lock().is_none() {
        return lock_generally(mutex, site);
    }
    // Loaded once more: others may have acquired it since then.
    let count = mutex.acquisitions().load(Relaxed);
    mutex.acquisitions().store(count.wrapping_add(1), Relaxed);
    mutex.note(site);
    mutex.owner.store(name, Relaxed);
    probes::mutex_acquired(mutex.address());
    0
}

/// Whether the acquisition after `count` others is among the watched ones, which end with the
/// number `until`.
#[inline(always)]
fn is_within(until: u32, count: u32) -> bool {
    until.wrapping_sub(count).wrapping_sub(1) < WATCHED
}

impl Mutex {
    fn at(&self, site: Site) -> Spot {
        Spot::of(Where {
            object: core::ptr::from_ref(self).addr(),
            kind: ObjectKind::Mutex,
            site,
        })
    }

    /// The present owner, as far as it is known.
    fn holder(&self) -> flight::Holder {
        let site = match self.is_plain() {
            true => self.count.load(Relaxed),
            false => self.spare().load(Relaxed),
        };
        let stack = flight::stack(self.observed.load(Relaxed), site);
        let tid = id_of(self.owner.load(Relaxed));
        flight::Holder { site, stack, tid }
    }

    /// Whether the acquisition after `count` others is recorded for the sake of later waiters: some
    /// are after a wait, so that the next waiter knows its holder's callers, and not only the call
    /// site. Of locks that threads wait for often these are a sample: `overlock` takes it for all.
    #[inline(always)]
    fn is_watched(&self, count: u32) -> bool {
        let until = match self.is_plain() {
            true => self.spare().load(Relaxed),
            false => stat::usage::watched_until(self.address()),
        };
        is_within(until, count)
    }

    /// Has the next acquisitions watched. The caller owns the lock.
    fn watch(&self) {
        let until = self.acquisitions().load(Relaxed).wrapping_add(WATCHED);
        match self.is_plain() {
            true => self.spare().store(until, Relaxed),
            false => stat::usage::watch_until(self.address(), until),
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
        // A watched one counts for nothing: it is not chosen by chance.
        let watched = self.is_watched(count).then_some(0);
        let weight = stat::weight(count, true).or(watched);
        let unfair = is_waited_for
            .then(|| stat::unfair_weight(count, true))
            .flatten();
        let at = (unfair.is_some() || weight.is_some()).then(|| self.at(site));
        let error = self.try_acquire();
        if error == 0 {
            let is_noted = is_waited_for && stat::notes_owner(self.address(), count);
            if is_noted {
                stat::takes(self.address());
            }
            let flight = at.map(|at| {
                if let Some(unfair) = unfair {
                    stat::unfair(&at, unfair);
                }
                weight.map_or(0, |weight| stat::sample(at, weight))
            });
            let flight = match flight.unwrap_or_default() {
                0 if is_noted => flight::NOTED,
                flight => flight,
            };
            self.is_taken(flight, site);
        }
        error
    }

    /// Acquires a lock that was not free, with statistics: the general path. Returns 0 or an errno.
    #[cold]
    pub(super) fn wait_counted(&self, wait: Wait, site: Site) -> c_int {
        if matches!(wait, Wait::Adopted | Wait::Again) {
            return self.wait_again_counted(wait, site);
        }
        let at = self.at(site);
        let before = self.acquisitions().load(Relaxed);
        let waiting = stat::Wait::begin(at, self.holder(), before);
        stat::has_release_noted(&self.observed);
        let error = self.take(wait);
        if error == 0 {
            let count = self.acquisitions().load(Relaxed);
            let over = waiting.over(count);
            self.is_taken(stat::or_noted(over.flight), site);
            if stat::usage::may_watch(self.address(), over.now) {
                self.watch();
            }
        } else {
            waiting.gave_up();
        }
        error
    }

    /// The same after a wait for a condition. It is contention only while another thread has the
    /// lock: until a CPU is free for this one it would have had to wait anyway.
    #[cold]
    fn wait_again_counted(&self, wait: Wait, site: Site) -> c_int {
        let counts = config::get().stat_again;
        if !self.main().is_locked() || !counts {
            let holder = self.holder();
            let error = self.take(wait);
            if error == 0 {
                let flight = match wait {
                    Wait::Adopted if counts => {
                        let count = self.acquisitions().load(Relaxed);
                        let at = (raw::awaited(), count);
                        stat::or_noted(stat::WaitAgain::adopted(self.at(site), holder, at))
                    }
                    _ => 0,
                };
                self.is_taken(flight, site);
            }
            return error;
        }
        let at = self.at(site);
        let before = self.acquisitions().load(Relaxed);
        let waiting = stat::WaitAgain::begin(at, self.holder(), before);
        stat::has_release_noted(&self.observed);
        let error = self.take(wait);
        if error == 0 {
            let count = self.acquisitions().load(Relaxed);
            self.is_taken(stat::or_noted(waiting.over(count)), site);
        }
        error
    }

    /// Records the acquisition for later waiters, and its flight for the release.
    fn is_taken(&self, flight: u32, site: Site) {
        let count = self.acquisitions().load(Relaxed);
        self.acquisitions().store(count.wrapping_add(1), Relaxed);
        if self.is_plain() {
            self.note(site);
            self.owner.store(me(), Relaxed);
        } else {
            self.spare().store(site as u32, Relaxed);
        }
        self.observed.store(flight, Relaxed);
    }

    /// Releases the lock, whose owner's acquisition may be recorded.
    #[cold]
    pub(super) fn release_recorded(&self, release: impl FnOnce()) {
        let flight = self.observed.load(Relaxed);
        if config::get().profile {
            let count = self.acquisitions().load(Relaxed);
            stat::releases(self.address(), Some(count), false);
        }
        if flight == 0 {
            return release();
        }
        self.observed.store(0, Relaxed);
        match flight {
            flight::NOTED => release(),
            flight => stat::released_by(flight, release),
        }
    }
}
