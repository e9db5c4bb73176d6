//! Contention by lock and call site, as `/proc/lock_stat` has it, in a [table](overlock_stat) that
//! is shared with `overlock run`.
//!
//! # What is counted, and when
//!
//! - An acquisition that finds its lock held is a *contention*: it is always recorded, with its
//!   wait, its hold, and the call site of the owner that it found.
//! - Of the others one in [`SAMPLE`] is recorded and counts for as many, so that the rest costs no
//!   clock and no write to shared memory; of a lock that was acquired often, one in [`SPARSE`].
//!   Which, is drawn from the lock's own count of acquisitions by a hash, lest patterns in the
//!   program meet patterns in the sampling.
//! - Of those that find others waiting and take the lock all the same, the *unfair* ones, one in
//!   [`UNFAIR`] is counted, and all at first.
//! - A wait for something to happen is an [`Event`]: always recorded, with its length.
//!
//! What is recorded is a [flight] from the acquisition to the release; everything that takes time
//! happens after the latter, when it makes nobody wait.
//!
//! What the locks do not tell: whether a waiter slept, or in which order waiters came. In place of
//! that the report says how many did not wait where others did, and how often others passed one
//! that did.

mod clock;
pub(crate) mod flight;
mod modules;
mod objects;
mod table;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use overlock_stat::{Entry, Kind, MANY, Place, SAMPLE, SPARSE, place};

use crate::config;
use crate::site::Site;
pub(crate) use objects::initialised;
use objects::initialiser;
pub(crate) use table::{after_fork, make_table, start, use_no_files};

/// What is recorded, by which an entry of the table is found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Where {
    pub(crate) object: usize,
    pub(crate) kind: Kind,
    pub(crate) site: Site,
}

/// Of the acquisitions that pass waiters, one in so many is counted.
const UNFAIR: u32 = 32;

/// Up to this number of a lock's acquisitions all of those are: what happens seldom would not show
/// otherwise.
const FEW: u32 = 1024;

/// Whether `count`, another number for each, is among one in so many.
#[inline(always)]
fn one_in(rate: u32, count: u32) -> bool {
    // Multiples of the golden ratio are spread evenly, and over every residue of any period. The
    // first ones are not among the highest: a lock that is acquired once does not count for
    // many.
    count.wrapping_mul(0x9e37_79b1) > u32::MAX - u32::MAX / rate
}

/// Whether an acquisition that did not wait may have to be recorded; `count` is another number for
/// each.
#[inline(always)]
pub(crate) fn sampled(count: u32) -> bool {
    one_in(SAMPLE as u32, count)
}

/// For how many a [sampled] one counts; `None` for one that is not recorded. `count` is the lock's
/// own, or for one that does not count, its thread's.
pub(crate) fn weight(count: u32, is_locks_own: bool) -> Option<u64> {
    // Of a thread that has done much, a lock that it seldom takes would not be seen.
    let rate = match is_locks_own && count >= MANY {
        true => SPARSE,
        false => SAMPLE,
    };
    one_in(rate as u32, count).then_some(rate)
}

/// One that waits.
#[derive(Debug)]
pub(crate) struct Wait {
    began_ns: u64,
    holder: u32,
    count: u32,
}

impl Wait {
    /// The lock is held, and was acquired at `holder`, of which this is the lower half, or 0; it
    /// has counted `count` acquisitions.
    pub(crate) fn begin(holder: u32, count: u32) -> Self {
        Wait {
            began_ns: clock::now(),
            holder,
            count,
        }
    }

    /// It ends at `now`; meanwhile others have acquired the lock so often.
    fn ends(self, now: u64, passed: u32) -> flight::Waited {
        flight::Waited {
            ns: now.saturating_sub(self.began_ns),
            holder: self.holder,
            passed,
        }
    }

    /// The lock is acquired, and counts `count` with this one. Returns the flight's number, for the
    /// release.
    pub(crate) fn over(self, at: Where, count: u32) -> u32 {
        let now = clock::now();
        let passed = count.wrapping_sub(self.count).saturating_sub(1);
        flight::begin(at, now, 1, Some(self.ends(now, passed)))
    }

    /// The lock is acquired, beside others, and counts `count` without this one. How long it is
    /// held will not be known.
    pub(crate) fn over_shared(self, at: Where, count: u32) {
        let passed = count.wrapping_sub(self.count);
        without_flight(at, 1, Some(&self.ends(clock::now(), passed)));
    }

    /// It waits no longer, and has not got the lock.
    pub(crate) fn gave_up(self, at: Where) {
        let waited = self.ends(clock::now(), 0);
        if let Some((table, index, entry)) = entry(at) {
            entry.gave_up.fetch_add(1, Relaxed);
            record_wait(entry, waited.ns);
            record_holder(table, index, &waited);
        }
    }
}

/// One that waits for something to happen, or for a lock that has no room to say who holds it.
#[derive(Debug)]
pub(crate) struct Event {
    began_ns: u64,
}

impl Event {
    /// `None` where nothing is counted.
    pub(crate) fn begin() -> Option<Self> {
        let began = || Event {
            began_ns: clock::now(),
        };
        config::get().stat.then(began)
    }

    /// It has happened, or the wait has ended without that. The object, `address`, may be gone.
    #[cold]
    pub(crate) fn over(self, address: usize, kind: Kind, site: Site, gave_up: bool) {
        let at = Where {
            object: address,
            kind,
            site,
        };
        let ns = clock::now().saturating_sub(self.began_ns);
        if let Some((_, _, entry)) = entry(at) {
            entry.gave_up.fetch_add(gave_up.into(), Relaxed);
            record_wait(entry, ns);
        }
    }
}

/// An acquisition without a wait was [sampled], and counts for so many. Returns the flight's
/// number, for the release.
#[cold]
pub(crate) fn sample(at: Where, weight: u64) -> u32 {
    flight::begin(at, clock::now(), weight, None)
}

/// The same beside others: how long it is held will not be known.
#[cold]
pub(crate) fn sample_shared(at: Where, weight: u64) {
    without_flight(at, weight, None);
}

/// The lock was acquired while others waited for it; `count` is another number for each time, the
/// lock's own or the thread's.
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

/// The lock of the flight is about to be released: the moment.
pub(crate) fn releasing() -> u64 {
    clock::now()
}

/// And now it is released.
#[cold]
pub(crate) fn released(number: u32, at_ns: u64) {
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

/// A recorded acquisition that has no flight: its hold is not known.
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

/// Mostly it is higher already, and then it is only read.
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

/// A wait that has ended with the lock.
fn record_passed(
    table: &overlock_stat::Table,
    index: usize,
    entry: &Entry,
    waited: &flight::Waited,
) {
    record_wait(entry, waited.ns);
    entry.passed.fetch_add(waited.passed.into(), Relaxed);
    raise(&entry.passed_max, waited.passed.into());
    record_holder(table, index, waited);
}

fn record_holder(table: &overlock_stat::Table, index: usize, waited: &flight::Waited) {
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

/// The entry, with its number.
fn entry(at: Where) -> Option<(&'static overlock_stat::Table, usize, &'static Entry)> {
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
            modules::meet(table, at.site);
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

    /// Fails where what is sampled seldom does not count for more.
    #[test]
    fn weights_add_up_to_all() {
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
    fn one_in_so_many_is_sampled_whatever_the_pattern() {
        for stride in [1, 2, 3, 64, 100] {
            let counts = (0..400_000).map(|n: u32| n * stride);
            let sampled = counts.filter(|&count| sampled(count)).count();
            assert!((740..820).contains(&sampled), "{stride}: {sampled}");
        }
    }
}
