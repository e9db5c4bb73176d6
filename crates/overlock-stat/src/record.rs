//! Records of acquisitions and waits in the table.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use overlock_linux::__private::spin::Account;
use overlock_shared::{Entry, Place, Table, length, place};

use crate::deferred::{self, Sum};
use crate::flight::{self, Holder, Waited};
use crate::spot::Spot;
use crate::{clock, single, table};

/// Records an acquisition without a wait that was [sampled](crate::sampling::sampled), with this
/// weight. Returns the flight's number, for the release.
#[cold]
pub fn sample(at: Spot, weight: u32) -> u32 {
    flight::begin(at, clock::now(), weight, None)
}

/// As [`sample`], for a shared acquisition. Its hold time is not recorded.
#[cold]
pub fn sample_shared(at: &Spot, weight: u32) {
    without_flight(at, weight, None);
}

/// Counts an acquisition while others waited, with this [weight](crate::sampling::unfair_weight).
#[cold]
pub fn unfair(at: &Spot, weight: u32) {
    if let Some((_, entry)) = at.entry() {
        entry.unfair.fetch_add(weight.into(), Relaxed);
    }
}

/// Ends a flight with the release of its lock.
#[cold]
pub fn released_by(number: u32, release: impl FnOnce()) {
    let at_ns = clock::now();
    release();
    ends(number, |began_ns| at_ns.saturating_sub(began_ns));
}

/// Ends a flight whose lock was held for `held` nanoseconds, and is released.
pub(crate) fn released_after(number: u32, held: u64) {
    ends(number, |_| held);
}

fn ends(number: u32, held: impl FnOnce(u64) -> u64) {
    let Some(flight) = flight::end(number) else {
        return;
    };
    let Some((table, entry)) = flight.at.entry() else {
        return;
    };
    let held = held(flight.began_ns);
    let weight = u64::from(flight.weight);
    // One that is watched has no weight, and others have waited for it.
    single::has_held(held.saturating_mul(weight.max(1)));
    entry.acquisitions.fetch_add(weight, Relaxed);
    entry
        .hold_ns
        .fetch_add(held.saturating_mul(weight), Relaxed);
    raise(&entry.hold_max_ns, held);
    if let Some(waited) = &flight.waited {
        record_passed(table, &flight.at, entry, flight.began_ns, waited);
    }
}

/// Records an acquisition that has no flight: its hold time is not known. With a wait there is its
/// end.
pub fn without_flight(at: &Spot, weight: u32, waited: Option<(u64, &Waited)>) {
    let Some((table, entry)) = at.entry() else {
        return;
    };
    entry.lost_holds.fetch_add(weight.into(), Relaxed);
    entry.acquisitions.fetch_add(weight.into(), Relaxed);
    if let Some((ended, waited)) = waited {
        record_passed(table, at, entry, ended, waited);
    }
}

/// Records a wait that ended without the lock.
pub fn gave_up(at: &Spot, ended: u64, waited: &Waited) {
    if let Some((table, entry)) = at.entry() {
        entry.gave_up.fetch_add(1, Relaxed);
        record_wait(table, at, entry, waited.ns);
        let times = (ended - waited.ns, ended);
        single::record(at, entry, times, waited, single::flags(true, false));
        record_holder(table, at, waited);
    }
}

/// Records a wait for something to happen, or for a lock that has no room for its owner, which has
/// ended at `ended`.
pub fn event(
    at: &Spot,
    ended: u64,
    waited: &Waited,
    account: &Account,
    (gave_up, as_lock): (bool, bool),
) {
    if let Some((table, entry)) = at.entry() {
        entry.gave_up.fetch_add(gave_up.into(), Relaxed);
        entry.as_lock.fetch_add(as_lock.into(), Relaxed);
        record_wait(table, at, entry, waited.ns);
        record_spins(entry, account);
        if waited.holder.site != 0 {
            record_holder(table, at, waited);
        }
        let times = (ended.saturating_sub(waited.ns), ended);
        single::record(at, entry, times, waited, single::flags(gave_up, as_lock));
    }
}

/// Raises a maximum. Mostly it is higher already, and then it is only read.
fn raise(highest: &AtomicU64, value: u64) {
    if highest.load(Relaxed) < value {
        highest.fetch_max(value, Relaxed);
    }
}

fn record_wait(table: &Table, at: &Spot, entry: &Entry, ns: u64) {
    raise(&entry.wait_max_ns, ns);
    record_waits(table, at, entry, (1, ns));
}

/// Records waits with their sum.
fn record_waits(table: &Table, at: &Spot, entry: &Entry, (waits, ns): (u64, u64)) {
    entry.contentions.fetch_add(waits, Relaxed);
    entry.wait_ns.fetch_add(ns, Relaxed);
    let mean = ns.checked_div(waits).unwrap_or(0);
    entry.lengths[length(mean)].fetch_add(waits, Relaxed);
    let object = match place(&table.objects, &[at.entry.into(), at.object as u64]) {
        Some(Place::Known(_, object)) => object,
        Some(Place::New(_, object)) => {
            object.entry.store(at.entry, Relaxed);
            object.address.store(at.object as u64, Relaxed);
            table::show(&object.ready);
            object
        }
        None => {
            table.header.lost_objects.fetch_add(1, Relaxed);
            return;
        }
    };
    object.waits.fetch_add(waits, Relaxed);
    object.wait_ns.fetch_add(ns, Relaxed);
}

/// Records the spins and wake-ups of a wait.
fn record_spins(entry: &Entry, account: &Account) {
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
fn record_passed(table: &Table, at: &Spot, entry: &Entry, ended: u64, waited: &Waited) {
    record_wait(table, at, entry, waited.ns);
    entry.passed.fetch_add(waited.passed.into(), Relaxed);
    raise(&entry.passed_max, waited.passed.into());
    record_holder(table, at, waited);
    let times = (ended.saturating_sub(waited.ns), ended);
    single::record(at, entry, times, waited, 0);
    deferred::flush();
}

/// Records short waits that have ended with the lock.
pub(crate) fn sum(sum: &Sum) {
    let Some((table, entry)) = sum.at.entry() else {
        return;
    };
    let waits = u64::from(sum.waits);
    entry.lost_holds.fetch_add(waits, Relaxed);
    entry.acquisitions.fetch_add(waits, Relaxed);
    raise(&entry.wait_max_ns, sum.longest_ns);
    record_waits(table, &sum.at, entry, (waits, sum.wait_ns));
    entry.passed.fetch_add(sum.passed, Relaxed);
    raise(&entry.passed_max, sum.passed_most.into());
    record_holders(table, &sum.at, sum.holder, (waits, sum.wait_ns));
    single::record_sum(sum, entry);
}

fn record_holder(table: &Table, at: &Spot, waited: &Waited) {
    record_holders(table, at, waited.holder, (1, waited.ns));
}

fn record_holders(table: &Table, at: &Spot, found: Holder, (waits, ns): (u64, u64)) {
    let words = [at.entry.into(), found.site.into(), found.stack.into()];
    let holder = match place(&table.holders, &words) {
        Some(Place::Known(_, holder)) => holder,
        Some(Place::New(_, holder)) => {
            holder.entry.store(at.entry, Relaxed);
            holder.site.store(found.site, Relaxed);
            holder.stack.store(found.stack, Relaxed);
            table::show(&holder.ready);
            holder
        }
        None => {
            table.header.lost_holders.fetch_add(1, Relaxed);
            return;
        }
    };
    holder.waits.fetch_add(waits, Relaxed);
    holder.wait_ns.fetch_add(ns, Relaxed);
}
