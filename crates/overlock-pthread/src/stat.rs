//! Contention by lock and call site, as `/proc/lock_stat` has it, in a [table](overlock_stat) that is shared with `overlock run`.
//!
//! # What is counted, and when
//!
//! - An acquisition that finds its lock held is a *contention*: it is always recorded, with its wait, its hold, and the call site of the
//!   owner that it found.
//! - Of the others one in [`SAMPLE`] is recorded and counts for as many, more often while a lock is young, so that the rest costs no clock and no
//!   write to shared memory. Which, is drawn from the lock's own count of acquisitions by a hash, lest patterns in the program
//!   meet patterns in the sampling.
//!
//! What is recorded is a [flight] from the acquisition to the release; everything that takes time happens after the latter, when it makes nobody
//! wait.
//!
//! What the locks do not tell: whether a waiter slept, or queued. In place of that the report says how often others passed it.

mod clock;
pub(crate) mod flight;
mod modules;
mod objects;
mod table;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use overlock_stat::{EARLY, EARLY_SAMPLE, Entry, Kind, Place, SAMPLE, place};

use crate::site::Site;
pub(crate) use objects::{initialised, initialiser};
pub(crate) use table::{after_fork, start};

/// What is recorded, by which an entry of the table is found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Where {
    pub(crate) object: usize,
    pub(crate) kind: Kind,
    pub(crate) site: Site,
}

/// Whether to record an acquisition that did not wait; `count` is another number for each, of which there have been [`EARLY`].
#[inline(always)]
pub(crate) fn late_sampled(count: u32) -> bool {
    // Multiples of the golden ratio are spread evenly, and over every residue of any period.
    count.wrapping_mul(0x9e37_79b1) < u32::MAX / SAMPLE as u32
}

/// The same for any count. Objects that are seldom used are not all looked at in the same moments of their lives.
#[inline]
pub(crate) fn sampled(object: usize, count: u32) -> bool {
    if count >= EARLY {
        return late_sampled(count);
    }
    let number = count.wrapping_add((object >> 3) as u32);
    number.wrapping_mul(0x9e37_79b1) < u32::MAX / EARLY_SAMPLE as u32
}

/// A number for each call of a thread, where a lock does not count.
#[inline]
pub(crate) fn tick() -> u32 {
    use core::cell::Cell;
    thread_local!(static CALLS: Cell<u32> = const { Cell::new(0) });
    // No destructor, no lazy initialisation: this is always there.
    CALLS.with(|calls| {
        calls.set(calls.get().wrapping_add(1));
        calls.get()
    })
}

/// One that waits.
#[derive(Debug)]
pub(crate) struct Wait {
    began_ns: u64,
    holder: u32,
    count: u32,
}

impl Wait {
    /// The lock is held, and was acquired at `holder`, of which this is the lower half, or 0; it has counted `count` acquisitions.
    pub(crate) fn begin(holder: u32, count: u32) -> Self {
        Wait {
            began_ns: clock::now(),
            holder,
            count,
        }
    }

    /// The lock is acquired, and counts `count` with this one. Returns the flight's number, for the release.
    pub(crate) fn over(self, at: Where, count: u32) -> u32 {
        let now = clock::now();
        let waited = flight::Waited {
            ns: now.saturating_sub(self.began_ns),
            holder: self.holder,
            passed: count.wrapping_sub(self.count).saturating_sub(1),
        };
        flight::begin(at, now, 1, Some(waited))
    }

    /// It waits no longer, and has not got the lock.
    pub(crate) fn gave_up(self, at: Where) {
        let ns = clock::now().saturating_sub(self.began_ns);
        let waited = flight::Waited {
            ns,
            holder: self.holder,
            passed: 0,
        };
        if let Some((table, index, entry)) = entry(at) {
            entry.gave_up.fetch_add(1, Relaxed);
            record_wait(table, index, entry, &waited);
        }
    }
}

/// An acquisition without a wait was [sampled], with this count. Returns the flight's number, for the release.
#[cold]
pub(crate) fn sample(at: Where, count: u32) -> u32 {
    let weight = match count < EARLY {
        true => EARLY_SAMPLE,
        false => SAMPLE,
    };
    flight::begin(at, clock::now(), weight, None)
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
        record_wait(table, index, entry, waited);
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
        record_wait(table, index, entry, waited);
    }
}

/// Mostly it is higher already, and then it is only read.
fn raise(highest: &AtomicU64, value: u64) {
    if highest.load(Relaxed) < value {
        highest.fetch_max(value, Relaxed);
    }
}

fn record_wait(table: &overlock_stat::Table, index: usize, entry: &Entry, waited: &flight::Waited) {
    entry.contentions.fetch_add(1, Relaxed);
    entry.wait_ns.fetch_add(waited.ns, Relaxed);
    raise(&entry.wait_max_ns, waited.ns);
    entry.passed.fetch_add(waited.passed.into(), Relaxed);
    raise(&entry.passed_max, waited.passed.into());
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

    #[test]
    fn one_in_so_many_is_sampled_whatever_the_pattern() {
        for object in [0, 0x7fff_1230, 0x5555_0008] {
            for stride in [1, 2, 3, 64, 100] {
                let late = (0..400_000).map(|n: u32| EARLY + n * stride);
                let late = late.filter(|&count| sampled(object, count)).count();
                assert!((700..860).contains(&late), "{object:x} {stride}: {late}");
            }
            let early = (0..EARLY).filter(|&count| sampled(object, count)).count();
            assert!((250..262).contains(&early), "{object:x}: {early}");
        }
    }
}
