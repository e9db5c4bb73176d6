//! Statistics: contention by lock and call site, like `/proc/lock_stat`, in a
//! [table](overlock_shared) that is shared with `overlock run`.
//!
//! # What is recorded, and when
//!
//! - An acquisition that finds its lock held is a *contention*: it is always recorded, with its
//!   wait time, its hold time, and the call site of the owner that it found.
//! - Of the other acquisitions one in [`SAMPLE`] is recorded, with that weight, so that the rest
//!   costs no clock and no write to shared memory. For a lock that was acquired often it is one in
//!   [`SPARSE`]. A hash of the lock's own acquisition count selects them, so that patterns in the
//!   program do not bias the sampling.
//! - An acquisition that takes the lock while others wait is *unfair*. The first ones are all
//!   counted, and of later ones one in [`UNFAIR`].
//! - A wait for something to happen is an [`Event`]: always recorded, with its length.
//!
//! For `overlock profile` each wait is also shown and recorded by itself: see [single].
//!
//! A recorded acquisition is a [flight], which begins at the acquisition and ends at the release.
//! All slow work happens after the release, where it delays no waiter.
//!
//! The locks do not tell whether a waiter slept, or in which order waiters came. Instead the report
//! says how many acquisitions did not wait while others did, and how often others bypassed a
//! waiter.

mod cfi;
mod clock;
pub(crate) mod flight;
mod kept;
mod modules;
mod objects;
mod record;
mod single;
mod spot;
mod stacks;
mod steps;
mod table;
mod theirs;
mod threads;
mod unmarked;
mod unwind;
pub(crate) mod usage;

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use overlock_linux::__private::spin::{self, Account};
use overlock_shared::{MANY, ObjectKind, SAMPLE, SPARSE};

use crate::config;
use crate::site::Site;
use flight::Holder;
pub(crate) use kept::keeps;
pub(crate) use objects::initialised;
pub(crate) use record::{released_by, sample, sample_shared, unfair, unfair_weight};
use single::Shown;
pub(crate) use single::{releases, takes, thread_id};
pub(crate) use spot::{Spot, Where};
pub(crate) use table::{after_fork, keeping_errno, make_table, start, use_no_files};
pub(crate) use theirs::{count_theirs, event_of_theirs, signals_theirs};

/// Whether the process has taken a lock that is counted.
static USED: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_used() -> bool {
    USED.load(Relaxed)
}

/// The process takes a lock, on the general path. The first time the table says so, and the fast
/// paths begin to work.
#[inline]
pub(crate) fn takes_lock() {
    if !is_used() {
        USED.store(true, Relaxed);
        table::show_use();
        config::generation_changed();
    }
}

/// Of the acquisitions that bypass waiters, one in this many is counted.
const UNFAIR: u32 = 128;

/// Up to this number of a lock's acquisitions all unfair ones are counted: rare ones would not show
/// otherwise.
const FEW: u32 = 1024;

/// Whether `count`, a different number each time, is among one in `rate`.
#[inline(always)]
fn one_in(rate: u32, count: u32) -> bool {
    // Multiples of the golden ratio are spread evenly, and over every residue of any period. The
    // first ones are not among the highest, so a lock that is acquired once is not sampled with a
    // large weight.
    count.wrapping_mul(0x9e37_79b1) > u32::MAX - u32::MAX / rate
}

/// Whether an acquisition while others wait has to be looked at; `count` is a different number each
/// time. A [profile](single) needs the owner of each.
#[inline(always)]
pub(crate) fn looks_at_unfair(count: u32) -> bool {
    unfair_weight(count).is_some() || config::get().profile
}

/// Whether an acquisition without a wait may have to be recorded; `count` is a different number
/// each time.
#[inline(always)]
pub(crate) fn sampled(count: u32) -> bool {
    one_in(SAMPLE as u32, count)
}

/// The weight of a [sampled] acquisition; `None` if it is not recorded. `count` is the lock's own
/// acquisition count, or, for a lock without one, the thread's count of calls.
pub(crate) fn weight(count: u32, is_locks_own: bool) -> Option<u32> {
    // A rate of [`SPARSE`] for a thread's count would miss locks that a busy thread seldom takes.
    let rate = match is_locks_own && count >= MANY {
        true => SPARSE,
        false => SAMPLE,
    };
    one_in(rate as u32, count).then_some(rate as u32)
}

/// A wait for a lock.
#[derive(Debug)]
pub(crate) struct Wait {
    at: Spot,
    began_ns: u64,
    holder: Holder,
    count: u32,
    shown: Shown,
}

impl Wait {
    /// Begins a wait for a lock that is held by `holder`; `count` is the lock's acquisition count.
    pub(crate) fn begin(at: Spot, holder: Holder, count: u32) -> Self {
        let began_ns = clock::now();
        Wait {
            shown: single::begin(&at, began_ns, holder.tid, count),
            at,
            began_ns,
            holder,
            count,
        }
    }

    /// The result of a wait that ends at `now`, while others have acquired the lock `passed` times.
    fn ends(&self, now: u64, passed: u32) -> flight::Waited {
        flight::Waited::new(now.saturating_sub(self.began_ns), self.holder, passed)
    }

    /// Ends the wait with the lock, whose count is `count`, this acquisition included. Returns the
    /// flight's number, for the release.
    pub(crate) fn over(self, count: u32) -> u32 {
        let now = clock::now();
        let ns = now.saturating_sub(self.began_ns);
        self.over_after(ns, now, count)
    }

    /// The same for a wait of `ns`.
    fn over_after(self, ns: u64, now: u64, count: u32) -> u32 {
        let passed = count.wrapping_sub(self.count).saturating_sub(1);
        let mut waited = flight::Waited::new(ns, self.holder, passed);
        self.shown.over(self.at.object, now, &mut waited);
        flight::begin(self.at, now, 1, Some(waited))
    }

    /// Ends the wait with a share of the lock, whose count is `count`, without this acquisition.
    /// Its hold time is not recorded.
    pub(crate) fn over_shared(self, count: u32) {
        let passed = count.wrapping_sub(self.count);
        let now = clock::now();
        let mut waited = self.ends(now, passed);
        self.shown.over(self.at.object, now, &mut waited);
        record::without_flight(&self.at, 1, Some((now, &waited)));
    }

    /// Ends the wait without the lock.
    pub(crate) fn gave_up(self) {
        let now = clock::now();
        let waited = self.ends(now, 0);
        self.shown.gave_up();
        record::gave_up(&self.at, now, &waited);
    }
}

/// A wait for a lock that ends a wait for a condition.
#[derive(Debug)]
pub(crate) struct WaitAgain {
    wait: Wait,
    account: Account,
    cpu_ns: u64,
}

impl WaitAgain {
    /// As [`Wait::begin`].
    pub(crate) fn begin(at: Spot, holder: Holder, count: u32) -> Self {
        WaitAgain {
            account: Account::take(),
            cpu_ns: clock::cpu(),
            wait: Wait::begin(at, holder, count),
        }
    }

    /// Ends the wait of a thread that the lock has woken itself. It was held when the condition
    /// `cond` was signalled, until it woke the thread.
    pub(crate) fn adopted(at: Spot, holder: Holder, (cond, count): (usize, u32)) -> u32 {
        let now = clock::now();
        let account = Account::take();
        account.put_back();
        let woken = now.saturating_sub(account.latency);
        let held = woken.saturating_sub(usage::signalled_ns(cond));
        Wait::begin(at, holder, count).over_after(held, now, count)
    }

    /// As [`Wait::over`]. The wait is the time that the thread spun or slept until it was woken,
    /// and not that in which it had no CPU.
    pub(crate) fn over(self, count: u32) -> u32 {
        let now = clock::now();
        let own = Account::take();
        // The wait for the condition has all of it.
        self.account.put_back();
        own.put_back();
        let all = now.saturating_sub(self.wait.began_ns);
        let spun = clock::cpu().saturating_sub(self.cpu_ns);
        let held = match spin::are_wakes_noted() {
            true => all.min(spun.saturating_add(own.asleep)),
            false => all,
        };
        self.wait.over_after(held, now, count)
    }
}

/// A wait for something to happen, or for a lock that has no room to say who holds it.
#[derive(Debug)]
pub(crate) struct Event {
    began_ns: u64,
}

impl Event {
    /// Begins it. Returns `None` without statistics.
    pub(crate) fn begin() -> Option<Self> {
        let began = || {
            Account::take();
            Event {
                began_ns: clock::now(),
            }
        };
        config::get().stat.then(began)
    }

    /// Ends it; `gave_up` if nothing happened. The object at `address` may have been freed.
    #[cold]
    pub(crate) fn over(self, address: usize, kind: ObjectKind, site: Site, gave_up: bool) {
        self.over_as(address, kind, site, gave_up, false);
    }

    /// The same; `as_lock` if the object is used as a lock.
    #[cold]
    pub(crate) fn over_as(
        self,
        object: usize,
        kind: ObjectKind,
        site: Site,
        gave_up: bool,
        as_lock: bool,
    ) {
        let now = clock::now();
        let account = Account::take();
        let at = Spot::of(Where { object, kind, site });
        let times = (self.began_ns, now);
        record::event(&at, times, &account, gave_up, as_lock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where sparsely sampled acquisitions do not get a larger weight.
    #[test]
    fn weights_add_up_to_the_number_of_acquisitions() {
        for (all, is_locks_own) in [(MANY, true), (4 * MANY, true), (4 * MANY, false)] {
            let weights = (0..all).filter_map(|count| {
                let weight = weight(count, is_locks_own)?;
                assert!(sampled(count));
                Some(weight)
            });
            let sum: u64 = weights.map(u64::from).sum();
            let all = u64::from(all);
            assert!(
                (all - 2 * SPARSE..all + 2 * SPARSE).contains(&sum),
                "{all}: {sum}"
            );
        }
    }

    #[test]
    fn the_sampling_rate_is_independent_of_the_stride() {
        for stride in [1, 2, 3, 64, 100] {
            let counts = (0..400_000).map(|n: u32| n * stride);
            let sampled = counts.filter(|&count| sampled(count)).count();
            assert!((740..820).contains(&sampled), "{stride}: {sampled}");
        }
    }
}
