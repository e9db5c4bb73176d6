//! Acquisitions and releases [with statistics](crate::stat).
//!
//! A normal or adaptive mutex knows which acquisition is looked at next, and how many are left
//! until then: the fast path counts these down, and asks nothing else.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use libc::EBUSY;
use overlock_core::raw::RawLock;
use overlock_shared::ObjectKind;

use super::functions::{acquired, lock_generally};
use super::{Mutex, Wait, raw};
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
    if mutex.generation.load(Relaxed) == config::stat_generation() {
        if mutex.is_plain() {
            return match mutex.try_quickly(site) {
                Some(true) => {
                    probes::mutex_acquired(mutex.address());
                    0
                }
                Some(false) => wait_quickly(mutex, site),
                None => lock_generally(mutex, site),
            };
        }
        if mutex.knows_its_owner() {
            return lock_unless_mine(mutex, site);
        }
    }
    lock_generally(mutex, site)
}

#[inline(never)]
extern "C" fn wait_quickly(mutex: &Mutex, site: Site) -> c_int {
    // A child may not have begun its generation.
    mutex.update();
    acquired(mutex, mutex.wait_counted(Wait::Forever, site))
}

/// The same for recursive and error-checking mutexes.
#[inline(never)]
extern "C" fn lock_unless_mine(mutex: &Mutex, site: Site) -> c_int {
    if !mutex.is_mine() && mutex.try_as_owner(site) == Some(true) {
        probes::mutex_acquired(mutex.address());
        return 0;
    }
    lock_generally(mutex, site)
}

/// `pthread_mutex_trylock`, as far as it calls nothing; otherwise `None`.
#[inline(always)]
pub(super) fn try_counted(mutex: &Mutex, site: Site) -> Option<c_int> {
    if !mutex.is_plain() || mutex.generation.load(Relaxed) != config::stat_generation() {
        return None;
    }
    let is_taken = mutex.try_quickly(site)?;
    Some(if is_taken { 0 } else { EBUSY })
}

/// One acquisition in a [plan](Mutex::plan).
const ONE: u64 = 1 << u32::BITS;

/// Whether a plan has none left before the next look.
#[inline(always)]
fn is_due(plan: u64) -> bool {
    (plan as i64) < ONE as i64
}

impl Mutex {
    /// Of a normal or adaptive mutex, in the upper half how many acquisitions are left until one is
    /// looked at, which is signed, since looks may be overdue; in the lower half that one's number.
    /// Of another kind the lower half of the owner's call site, and the number of acquisitions. It
    /// is a word that the lock leaves free, and owners write it.
    #[inline(always)]
    fn plan(&self) -> &AtomicU64 {
        &self.lock[1]
    }

    /// Tries to acquire a normal or adaptive one, with statistics. `None` if it is to be looked at.
    #[inline(always)]
    fn try_quickly(&self, site: Site) -> Option<bool> {
        // Decided before the acquisition: while that atomic operation is under way the processor
        // has nothing else to do, and after it this would cost extra. The general path decides
        // again, and gives the thread its name: no call here, so no registers are saved.
        let name = known();
        if name == 0 || is_due(self.plan().load(Relaxed)) {
            return None;
        }
        let is_taken = self.main().try_lock().is_some();
        if is_taken {
            self.counts_down();
            self.note(site);
            self.owner.store(name, Relaxed);
        }
        Some(is_taken)
    }

    /// The same of a recursive or error-checking one, which another thread may own.
    #[inline(always)]
    fn try_as_owner(&self, site: Site) -> Option<bool> {
        let count = self.acquisitions(false);
        let name = known();
        let is_general = name == 0 || self.main().is_contended();
        if is_general || stat::sampled(count) || self.is_watched(count) {
            return None;
        }
        let is_taken = self.main().try_lock().is_some();
        if is_taken {
            self.counts(site);
            self.owner.store(name, Relaxed);
        }
        Some(is_taken)
    }

    /// Counts an acquisition of a normal or adaptive one. The plan is loaded once more than by who
    /// has decided: others may have acquired the lock since then, so it may be overdue.
    #[inline(always)]
    fn counts_down(&self) {
        let plan = self.plan().load(Relaxed);
        self.plan().store(plan.wrapping_sub(ONE), Relaxed);
    }

    /// Counts an acquisition of another kind.
    #[inline(always)]
    fn counts(&self, site: Site) {
        let count = (self.plan().load(Relaxed) as u32).wrapping_add(1);
        let site = u64::from(site as u32) << u32::BITS;
        self.plan().store(site | u64::from(count), Relaxed);
    }

    /// The number of acquisitions, modulo 2^32.
    fn acquisitions(&self, is_plain: bool) -> u32 {
        let plan = self.plan().load(Relaxed);
        match is_plain {
            true => (plan as u32).wrapping_sub((plan >> u32::BITS) as u32),
            false => plan as u32,
        }
    }

    /// The number by which the acquisition after `count` others is chosen: of one that is overdue
    /// that which was due.
    fn number(&self, is_plain: bool, count: u32) -> u32 {
        let plan = self.plan().load(Relaxed);
        match is_plain && is_due(plan) {
            true => plan as u32,
            false => count,
        }
    }

    /// Plans the next look, after `count` acquisitions. The caller owns the lock, which is plain.
    fn look_after(&self, count: u32) {
        let left = match self.is_watched(count) {
            true => 0,
            false => stat::left(self.address(), count, self.main().is_contended()),
        };
        let plan = u64::from(left) << u32::BITS | u64::from(count.wrapping_add(left));
        self.plan().store(plan, Relaxed);
    }

    fn at(&self, site: Site) -> Spot {
        Spot::of(Where {
            object: core::ptr::from_ref(self).addr(),
            kind: ObjectKind::Mutex,
            site,
            mark: self.object().mark.load(Relaxed),
        })
    }

    /// The present owner, as far as it is known.
    fn holder(&self, is_plain: bool) -> flight::Holder {
        let site = match is_plain {
            true => self.count.load(Relaxed),
            false => (self.plan().load(Relaxed) >> u32::BITS) as u32,
        };
        let stack = flight::stack(self.observed.load(Relaxed), site);
        let tid = id_of(self.owner.load(Relaxed));
        flight::Holder { site, stack, tid }
    }

    /// Whether the acquisition after `count` others is recorded for the sake of later waiters: some
    /// are after a wait, so that the next waiter knows its holder's callers, and not only the call
    /// site. Of locks that threads wait for often these are a sample: `overlock` takes it for all.
    fn is_watched(&self, count: u32) -> bool {
        let until = stat::usage::watched_until(self.address());
        until.wrapping_sub(count).wrapping_sub(1) < WATCHED
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
        let is_plain = self.is_plain();
        let is_waited_for = self.main().is_contended();
        // Before the acquisition, as on the fast path, which calls this for sampled acquisitions.
        let count = self.acquisitions(is_plain);
        let number = self.number(is_plain, count);
        // A watched one counts for nothing: it is not chosen by chance.
        let watched = self.is_watched(count).then_some(0);
        let weight = stat::weight(number, true).or(watched);
        let unfair = is_waited_for
            .then(|| stat::unfair_weight(number, true))
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
            self.is_taken(is_plain, flight, site);
        }
        error
    }

    /// Acquires a lock that was not free, with statistics: the general path. Returns 0 or an errno.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_counted(&self, wait: Wait, site: Site) -> c_int {
        if matches!(wait, Wait::Adopted | Wait::Again) {
            return self.wait_again_counted(wait, site);
        }
        // All that the lock says, at once: each access may have to fetch its cache line again from
        // the owner.
        let is_plain = self.is_plain();
        let (holder, count) = (self.holder(is_plain), self.acquisitions(is_plain));
        let at = self.at(site);
        let mut waiting = match wait {
            Wait::Forever => stat::Wait::begin_briefly(at, holder, count),
            _ => stat::Wait::begin(at, holder, count),
        };
        let error = if waiting.is_shown() {
            stat::has_release_noted(&self.observed);
            self.take(wait)
        } else {
            self.main().lock_watched(|| {
                waiting.show();
                stat::has_release_noted(&self.observed);
            });
            0
        };
        if error != 0 {
            waiting.gave_up();
            return error;
        }
        let count = self.acquisitions(is_plain);
        let was_shown = waiting.is_shown();
        let over = waiting.over(count.wrapping_add(1));
        // Others may sleep meanwhile, whose profile wants to know of this owner.
        let is_noted =
            was_shown || self.main().is_contended() && stat::notes_owner(self.address(), count);
        if is_noted && !was_shown {
            stat::takes(self.address());
        }
        if stat::usage::may_watch(self.address(), over.now) {
            stat::usage::watch_until(self.address(), count.wrapping_add(1 + WATCHED));
        }
        let flight = match is_noted {
            true => stat::or_noted(over.flight),
            false => over.flight,
        };
        self.is_taken(is_plain, flight, site);
        0
    }

    /// The same after a wait for a condition. It is contention only while another thread has the
    /// lock: until a CPU is free for this one it would have had to wait anyway.
    #[cold]
    #[inline(never)]
    fn wait_again_counted(&self, wait: Wait, site: Site) -> c_int {
        let is_plain = self.is_plain();
        let counts = config::get().stat_again;
        if !self.main().is_locked() || !counts {
            let holder = self.holder(is_plain);
            let error = self.take(wait);
            if error == 0 {
                let flight = match wait {
                    Wait::Adopted if counts => {
                        let at = (raw::awaited(), self.acquisitions(is_plain));
                        stat::or_noted(stat::WaitAgain::adopted(self.at(site), holder, at))
                    }
                    _ => 0,
                };
                self.is_taken(is_plain, flight, site);
            }
            return error;
        }
        let at = self.at(site);
        let waiting =
            stat::WaitAgain::begin(at, self.holder(is_plain), self.acquisitions(is_plain));
        stat::has_release_noted(&self.observed);
        let error = self.take(wait);
        if error == 0 {
            let flight = waiting.over(self.acquisitions(is_plain).wrapping_add(1));
            self.is_taken(is_plain, stat::or_noted(flight), site);
        }
        error
    }

    /// Records the acquisition for later waiters, and its flight for the release.
    fn is_taken(&self, is_plain: bool, flight: u32, site: Site) {
        if is_plain {
            self.look_after(self.acquisitions(is_plain).wrapping_add(1));
            self.note(site);
            self.owner.store(me(), Relaxed);
        } else {
            self.counts(site);
        }
        self.observed.store(flight, Relaxed);
    }

    /// Releases the lock, whose owner's acquisition may be recorded.
    #[cold]
    pub(super) fn release_recorded(&self, release: impl FnOnce()) {
        let flight = self.observed.load(Relaxed);
        let is_plain = self.is_plain();
        let count = self.acquisitions(is_plain);
        if config::get().profile {
            stat::releases(self.address(), Some(count), false);
        }
        // Threads have begun to wait since the last look.
        if is_plain {
            self.plan().store(count.into(), Relaxed);
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
