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
//! A recorded acquisition is a [flight], which begins at the acquisition and ends at the release.
//! All slow work happens after the release, where it delays no waiter.
//!
//! The locks do not tell whether a waiter slept, or in which order waiters came. Instead the report
//! says how many acquisitions did not wait while others did, and how often others bypassed a
//! waiter.

mod clock;
pub(crate) mod flight;
mod modules;
mod objects;
mod table;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use overlock_linux::__private::spin::Account;
use overlock_shared::{Entry, MANY, ObjectKind, Place, SAMPLE, SPARSE, place};

use crate::config;
use crate::site::Site;
pub(crate) use objects::initialised;
use objects::initialiser;
pub(crate) use table::{after_fork, keeping_errno, make_table, start, use_no_files};

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

/// The key of an entry of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Where {
    pub(crate) object: usize,
    pub(crate) kind: ObjectKind,
    pub(crate) site: Site,
}

/// Of the acquisitions that bypass waiters, one in this many is counted.
const UNFAIR: u32 = 32;

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

/// Whether an acquisition without a wait may have to be recorded; `count` is a different number
/// each time.
#[inline(always)]
pub(crate) fn sampled(count: u32) -> bool {
    one_in(SAMPLE as u32, count)
}

/// The weight of a [sampled] acquisition; `None` if it is not recorded. `count` is the lock's own
/// acquisition count, or, for a lock without one, the thread's count of calls.
pub(crate) fn weight(count: u32, is_locks_own: bool) -> Option<u64> {
    // A rate of [`SPARSE`] for a thread's count would miss locks that a busy thread seldom takes.
    let rate = match is_locks_own && count >= MANY {
        true => SPARSE,
        false => SAMPLE,
    };
    one_in(rate as u32, count).then_some(rate)
}

/// A wait for a lock.
#[derive(Debug)]
pub(crate) struct Wait {
    began_ns: u64,
    holder: u32,
    count: u32,
}

impl Wait {
    /// Begins a wait for a lock that is held. `holder` is the lower half of the holder's call site,
    /// or 0; `count` is the lock's acquisition count.
    pub(crate) fn begin(holder: u32, count: u32) -> Self {
        Wait {
            began_ns: clock::now(),
            holder,
            count,
        }
    }

    /// The result of a wait that ends at `now`, while others have acquired the lock `passed` times.
    fn ends(self, now: u64, passed: u32) -> flight::Waited {
        flight::Waited {
            ns: now.saturating_sub(self.began_ns),
            holder: self.holder,
            passed,
        }
    }

    /// Ends the wait with the lock, whose count is `count`, this acquisition included. Returns the
    /// flight's number, for the release.
    pub(crate) fn over(self, at: Where, count: u32) -> u32 {
        let now = clock::now();
        let passed = count.wrapping_sub(self.count).saturating_sub(1);
        flight::begin(at, now, 1, Some(self.ends(now, passed)))
    }

    /// Ends the wait with a share of the lock, whose count is `count`, without this acquisition.
    /// Its hold time is not recorded.
    pub(crate) fn over_shared(self, at: Where, count: u32) {
        let passed = count.wrapping_sub(self.count);
        without_flight(at, 1, Some(&self.ends(clock::now(), passed)));
    }

    /// Ends the wait without the lock.
    pub(crate) fn gave_up(self, at: Where) {
        let waited = self.ends(clock::now(), 0);
        if let Some((table, index, entry)) = entry(at) {
            entry.gave_up.fetch_add(1, Relaxed);
            record_wait(entry, waited.ns);
            record_holder(table, index, &waited);
        }
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
        let at = Where {
            object: address,
            kind,
            site,
        };
        let ns = clock::now().saturating_sub(self.began_ns);
        if let Some((_, _, entry)) = entry(at) {
            entry.gave_up.fetch_add(gave_up.into(), Relaxed);
            record_wait(entry, ns);
            record_spins(entry);
        }
    }
}

/// Records an acquisition without a wait that was [sampled], with this weight. Returns the flight's
/// number, for the release.
#[cold]
pub(crate) fn sample(at: Where, weight: u64) -> u32 {
    flight::begin(at, clock::now(), weight, None)
}

/// As [`sample`], for a shared acquisition. Its hold time is not recorded.
#[cold]
pub(crate) fn sample_shared(at: Where, weight: u64) {
    without_flight(at, weight, None);
}

/// Counts an acquisition while others waited for the lock; `count` is a different number each time,
/// the lock's own or the thread's.
#[cold]
pub(crate) fn unfair(at: Where, count: u32) {
    let weight = if count < FEW { 1 } else { UNFAIR };
    if weight != 1 && !one_in(UNFAIR, count) {
        return;
    }
    if let Some((_, _, entry)) = entry(at) {
        entry.unfair.fetch_add(weight.into(), Relaxed);
    }
}

/// Ends a flight with the release of its lock.
#[cold]
pub(crate) fn released_by(number: u32, release: impl FnOnce()) {
    let at_ns = clock::now();
    release();
    let Some(flight) = flight::end(number) else {
        return;
    };
    let Some((table, index, entry)) = entry(flight.at) else {
        return;
    };
    let held = at_ns.saturating_sub(flight.began_ns);
    entry.acquisitions.fetch_add(flight.weight, Relaxed);
    entry
        .hold_ns
        .fetch_add(held.saturating_mul(flight.weight), Relaxed);
    raise(&entry.hold_max_ns, held);
    if let Some(waited) = &flight.waited {
        record_passed(table, index, entry, waited);
    }
}

/// Records an acquisition that has no flight: its hold time is not known.
fn without_flight(at: Where, weight: u64, waited: Option<&flight::Waited>) {
    let Some((table, index, entry)) = entry(at) else {
        return;
    };
    entry.lost_holds.fetch_add(weight, Relaxed);
    entry.acquisitions.fetch_add(weight, Relaxed);
    if let Some(waited) = waited {
        record_passed(table, index, entry, waited);
    }
}

/// Raises a maximum. Mostly it is higher already, and then it is only read.
fn raise(highest: &AtomicU64, value: u64) {
    if highest.load(Relaxed) < value {
        highest.fetch_max(value, Relaxed);
    }
}

fn record_wait(entry: &Entry, ns: u64) {
    entry.contentions.fetch_add(1, Relaxed);
    entry.wait_ns.fetch_add(ns, Relaxed);
    raise(&entry.wait_max_ns, ns);
}

/// Records what the thread's spins and wake-ups since the wait's beginning have come to.
fn record_spins(entry: &Entry) {
    let account = Account::take();
    let sums = [
        (&entry.spins, account.spins),
        (&entry.spins_in_time, account.in_time),
        (&entry.spin_ns, account.spun),
        (&entry.saved_ns, account.saved),
        (&entry.wakes, account.wakes),
        (&entry.wake_ns, account.latency),
    ];
    for (sum, more) in sums {
        if more != 0 {
            sum.fetch_add(more, Relaxed);
        }
    }
}

/// Records a wait that has ended with the lock.
fn record_passed(
    table: &overlock_shared::Table,
    index: usize,
    entry: &Entry,
    waited: &flight::Waited,
) {
    record_wait(entry, waited.ns);
    entry.passed.fetch_add(waited.passed.into(), Relaxed);
    raise(&entry.passed_max, waited.passed.into());
    record_holder(table, index, waited);
}

fn record_holder(table: &overlock_shared::Table, index: usize, waited: &flight::Waited) {
    let words = [index as u64, waited.holder.into()];
    let holder = match place(&table.holders, &words) {
        Some(Place::Known(_, holder)) => holder,
        Some(Place::New(_, holder)) => {
            holder.entry.store(index as u32, Relaxed);
            holder.site.store(waited.holder, Relaxed);
            table::show(&holder.ready);
            holder
        }
        None => {
            table.header.lost_holders.fetch_add(1, Relaxed);
            return;
        }
    };
    holder.waits.fetch_add(1, Relaxed);
    holder.wait_ns.fetch_add(waited.ns, Relaxed);
}

/// Returns the table, and the number and the address of the entry.
fn entry(at: Where) -> Option<(&'static overlock_shared::Table, usize, &'static Entry)> {
    let table = table::get()?;
    let init = initialiser(at.object);
    let words = [
        at.object as u64,
        at.kind as u64,
        at.site as u64,
        init as u64,
    ];
    match place(&table.entries, &words) {
        Some(Place::Known(index, entry)) => Some((table, index, entry)),
        Some(Place::New(index, entry)) => {
            entry.object.store(at.object as u64, Relaxed);
            entry.site.store(at.site as u64, Relaxed);
            entry.init.store(init as u64, Relaxed);
            entry.kind.store(at.kind as u32, Relaxed);
            table::show(&entry.ready);
            modules::read_if_unknown(table, at.site);
            Some((table, index, entry))
        }
        None => {
            table.header.lost_entries.fetch_add(1, Relaxed);
            None
        }
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
            let sum: u64 = weights.sum();
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
