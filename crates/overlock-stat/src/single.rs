//! Single waits, for `overlock profile`: the second [file](overlock_shared::Waits), and what is
//! written there.
//!
//! A wait is shown while it lasts, and recorded when the lock that it ended with has been released:
//! the slow work delays no waiter. The acquisition itself only notes what is gone later: when the
//! lock was released to it, and, of a wait that was long, for how long its holder has run.

use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_shared::{
    Entry, GAVE_UP, IS_LOCK, LIVE, NOT_MEASURED, Owned, Owner, RECORDS, SPUN, SUMMED, Thread,
    UNCOUNTED, WAITS_MAGIC, WAITS_VERSION, Waits,
};

use crate::Site;
use crate::deferred::Sum;
use crate::flight::Waited;
use crate::spot::Spot;
use crate::{clock, places, threads};

static WAITS: AtomicPtr<Waits> = AtomicPtr::new(core::ptr::null_mut());

/// A wait has its holder's clock read if those at its entry take this long on average: the two
/// readings take half a microsecond.
const LONG_NS: u64 = 20_000;

/// While threads wait for a lock, its owners are noted once in this time, or all of them if it is
/// taken less often: a note takes some 60 ns.
const NOTED_EACH_NS: u64 = 2_000;

/// The most acquisitions that are left out. The lock may be held for longer from one on.
const LEFT_OUT: u32 = 256;

/// Begins to show waits in the mapping of a new file, of zeros.
pub(crate) fn start(made: *mut Waits, threshold_ns: u64, pid: u32) {
    // SAFETY: just mapped, zeroed, and of that size.
    let header = unsafe { &(*made).header };
    header.version.store(WAITS_VERSION, Relaxed);
    header.pid.store(pid, Relaxed);
    header.threshold_ns.store(threshold_ns, Relaxed);
    // Release: the reader that sees it (acquire) sees the above.
    header.magic.store(WAITS_MAGIC, Release);
    // Release: pairs with the load in `waits`.
    WAITS.store(made, Release);
}

/// The mapping, which a child of fork() drops.
pub(crate) fn drop_parents() -> *mut Waits {
    WAITS.swap(core::ptr::null_mut(), Relaxed)
}

#[inline]
fn waits() -> Option<&'static Waits> {
    // Acquire: pairs with the store in `start`. SAFETY: a mapping of that size, which is only
    // unmapped in a child of fork() while it has one thread, and is made of atomics.
    unsafe { WAITS.load(Acquire).as_ref() }
}

/// A wait that is shown.
#[derive(Debug)]
pub struct Shown {
    /// The index of its place; [`LIVE`] without one.
    place: u32,
    holder: u32,
    /// The holder's CPU time at the beginning.
    cpu_ns: u64,
}

/// Shows a wait for a lock that the thread `holder` has, or 0; `count` is the number of the lock's
/// acquisitions.
pub fn begin(at: &Spot, began_ns: u64, holder: u32, count: u32) -> Shown {
    let mut shown = Shown {
        place: LIVE as u32,
        holder,
        cpu_ns: NOT_MEASURED,
    };
    let Some(waits) = waits() else {
        return shown;
    };
    let object = at.object as u64;
    let owner = waits.owner(object);
    let known = Owned::of(owner.word.load(Relaxed));
    let found = Owned::new(object, holder);
    // That it was released stays known, if nobody has acquired it since then.
    let is_free = known == found.released() && owner.count.load(Relaxed) == u64::from(count);
    let is_known = known.is_of(object) && (holder == 0 || is_free);
    if !is_known {
        owner.word.store(found.word(), Relaxed);
    }
    let Some((_, entry)) = at.entry() else {
        return shown;
    };
    if holder != 0 && has_long_waits(entry) {
        shown.cpu_ns = known_cpu_of(holder);
    }
    let tid = threads::id();
    // The stack of those who call, about.
    let here = core::ptr::from_ref(&shown).addr() as u64;
    let place = places::take(waits, tid, here, |live| {
        live.holder.store(holder, Relaxed);
        // Locks of the program's own name their owner elsewhere, if they do.
        let kind = entry.name().map_or(entry.kind.load(Relaxed), |_| 0);
        live.kind.store(kind, Relaxed);
        live.entry.store(at.entry, Relaxed);
        live.began_ns.store(began_ns, Relaxed);
        live.object.store(object, Relaxed);
    });
    shown.place = place.unwrap_or(LIVE as u32);
    shown
}

/// Whether those at this entry are, on average.
pub fn has_long_waits(entry: &Entry) -> bool {
    let count = entry.contentions.load(Relaxed);
    // Nothing is known of the first one.
    entry.wait_ns.load(Relaxed) >= count.saturating_mul(LONG_NS)
}

/// The CPU time of a thread; [`NOT_MEASURED`] where the clock says nothing.
fn known_cpu_of(tid: u32) -> u64 {
    match clock::cpu_of(tid) {
        0 => NOT_MEASURED,
        ns => ns,
    }
}

impl Shown {
    /// Shows the wait no more.
    fn hide(&self, waits: &Waits) {
        places::leave(waits, threads::id(), self.place);
    }

    /// The wait ends with the lock. Adds to its result what is known now and not later.
    pub fn over(&self, object: usize, now: u64, waited: &mut Waited) {
        let Some(waits) = waits() else {
            return;
        };
        self.hide(waits);
        let began = now.saturating_sub(waited.ns);
        let owner = waits.owner(object as u64);
        let last = Owned::of(owner.word.load(Relaxed));
        if last.is_of(object as u64) && last.is_released {
            // The lock orders it, if it is of this lock.
            let at = owner.released_ns.load(Relaxed);
            if (began..=now).contains(&at) {
                waited.released_ns = at;
            }
        }
        // One thread has caused it, as far as is known.
        let is_one =
            waited.passed == 0 && last == Owned::new(object as u64, self.holder).released();
        if self.cpu_ns != NOT_MEASURED && is_one && waited.ns >= LONG_NS {
            let now = known_cpu_of(self.holder);
            if now != NOT_MEASURED {
                waited.ran_ns = now.saturating_sub(self.cpu_ns);
            }
        }
        takes(object);
    }

    /// The wait ends without the lock.
    pub fn gave_up(&self) {
        if let Some(waits) = waits() {
            self.hide(waits);
        }
    }
}

/// The calling thread has acquired a lock that others wait for. Its release is noted.
pub fn takes(object: usize) {
    if let Some(waits) = waits() {
        let owned = Owned::new(object as u64, threads::id());
        let owner = waits.owner(object as u64);
        owner.word.store(owned.word(), Relaxed);
    }
}

/// The calling thread has acquired a lock that others waited for before, or still do: its owner
/// stays known.
pub fn takes_again(object: usize) {
    if let Some(waits) = waits() {
        let word = &waits.owner(object as u64).word;
        if Owned::of(word.load(Relaxed)).is_of(object as u64) {
            word.store(Owned::new(object as u64, threads::id()).word(), Relaxed);
        }
    }
}

/// The calling thread has released a lock, which another one may have by now.
pub fn has_released(object: usize) {
    let Some(waits) = waits() else {
        return;
    };
    let owner = waits.owner(object as u64);
    let own = Owned::new(object as u64, threads::id());
    if owner.word.load(Relaxed) == own.word() {
        owner.released_ns.store(clock::now(), Relaxed);
        owner.count.store(UNCOUNTED, Relaxed);
        // The next owner has written its own word.
        let _ = (owner.word).compare_exchange(own.word(), own.released().word(), Relaxed, Relaxed);
    }
}

/// The calling thread has acquired a lock of the C library's.
pub fn acquired_at(object: usize, site: Site) {
    if let Some(waits) = waits() {
        waits.set_site(object as u64, site as u32);
    }
}

/// The lower half of the call site at which a lock of the C library's was acquired last; or 0.
pub fn site_of(object: usize) -> u32 {
    waits().map_or(0, |waits| waits.site(object as u64))
}

/// The calling thread is about to release a lock that was acquired `count` times, as far as it
/// counts. `is_again` if others have shares of it, of which the last release counts.
#[inline]
pub fn releases(object: usize, count: Option<u32>, is_again: bool) {
    let Some(waits) = waits() else {
        return;
    };
    let owner = waits.owner(object as u64);
    let owned = Owned::of(owner.word.load(Relaxed));
    if owned.is_of(object as u64) && (!owned.is_released || is_again) {
        note_release(owner, owned, count);
    }
}

#[cold]
fn note_release(owner: &Owner, owned: Owned, count: Option<u32>) {
    let now = clock::now();
    if let Some(count) = count {
        let taken = u64::from(count).wrapping_sub(owner.count.load(Relaxed));
        let ns = now.saturating_sub(owner.released_ns.load(Relaxed));
        let left_out = left_out(taken, ns);
        owner.again.store(count.wrapping_add(left_out), Relaxed);
    }
    owner.released_ns.store(now, Relaxed);
    let count = count.map_or(UNCOUNTED, u64::from);
    owner.count.store(count, Relaxed);
    owner.word.store(owned.released().word(), Relaxed);
}

/// How many acquisitions are not noted, of a lock that was acquired `taken` times within `ns`.
fn left_out(taken: u64, ns: u64) -> u32 {
    let often = NOTED_EACH_NS.saturating_mul(taken) / ns.max(1);
    // Another lock's numbers may be anything. One acquisition more is as good as none.
    (often.min(LEFT_OUT.into()) as u32).saturating_sub(1)
}

/// How many acquisitions of a lock pass, after `count` of them, before one's owner has to be noted,
/// if threads wait for it then.
pub fn left(object: usize, count: u32, is_waited_for: bool) -> u32 {
    waits().map_or(u32::MAX, |waits| {
        let again = waits.owner(object as u64).again.load(Relaxed);
        left_before(again, count, is_waited_for)
    })
}

/// The same before the acquisition number `again`, unless that is past.
fn left_before(again: u32, count: u32, is_waited_for: bool) -> u32 {
    match again.wrapping_sub(count) {
        left if left <= LEFT_OUT => left,
        _ if is_waited_for => 0,
        _ => u32::MAX,
    }
}

/// Records a wait that has ended.
pub fn record(at: &Spot, entry: &Entry, (began, ended): (u64, u64), waited: &Waited, flags: u32) {
    let Some(waits) = waits() else {
        return;
    };
    let header = &waits.header;
    if waited.ns < header.threshold_ns.load(Relaxed) {
        let waits = match flags & SUMMED {
            0 => 1,
            _ => waited.ran_ns,
        };
        header.short.0.fetch_add(waits, Relaxed);
        return;
    }
    let mut number = header.next.0.load(Relaxed);
    let record = loop {
        let record = &waits.records[number as usize % RECORDS];
        let free = number / RECORDS as u64 * 2;
        // Acquire: pairs with the reader's release (W-free).
        let state = record.state.load(Acquire);
        let latest = header.next.0.load(Relaxed);
        if latest != number {
            number = latest;
            continue;
        }
        // The reader has not taken the record of the last lap.
        if state.wrapping_add(1) == free {
            header.lost.0.fetch_add(1, Relaxed);
            return;
        }
        // Relaxed: the number orders nothing; the thread that has it owns the record.
        match (header.next.0).compare_exchange_weak(number, number + 1, Relaxed, Relaxed) {
            Ok(_) if state == free => break record,
            // A thread has not written its record of an earlier lap, since a handler has jumped out
            // of that, or since it has no CPU. The others do without it.
            Ok(_) => number += 1,
            Err(other) => number = other,
        }
    };
    record.entry.store(at.entry, Relaxed);
    record.kind.store(entry.kind.load(Relaxed), Relaxed);
    record.tid.store(threads::id(), Relaxed);
    record.holder.store(waited.holder.tid, Relaxed);
    record.holder_site.store(waited.holder.site, Relaxed);
    record.holder_stack.store(waited.holder.stack, Relaxed);
    record.passed.store(waited.passed, Relaxed);
    let spun = flag(waited.has_spun, SPUN);
    record.flags.store(flags | spun, Relaxed);
    record.object.store(at.object as u64, Relaxed);
    record.began_ns.store(began, Relaxed);
    record.ended_ns.store(ended, Relaxed);
    record.released_ns.store(waited.released_ns, Relaxed);
    record.ran_ns.store(waited.ran_ns, Relaxed);
    // W-full: release, pairs with the reader's acquire.
    record.state.store(number / RECORDS as u64 * 2 + 1, Release);
}

/// Records short waits.
pub fn record_sum(sum: &Sum, entry: &Entry) {
    let began_ns = sum.ended_ns.saturating_sub(sum.longest_ns);
    let passed = sum.passed.try_into().unwrap_or(u32::MAX);
    let waited = Waited {
        released_ns: sum.wait_ns,
        ran_ns: sum.waits.into(),
        ..Waited::new(sum.longest_ns, sum.holder, passed)
    };
    record(&sum.at, entry, (began_ns, sum.ended_ns), &waited, SUMMED);
}

/// Whether waits of this length may be summed: they are all listed, or none is.
pub fn may_sum(ns: u64) -> bool {
    waits().is_none_or(|waits| {
        let threshold_ns = waits.header.threshold_ns.load(Relaxed);
        threshold_ns == 0 || ns < threshold_ns
    })
}

/// The flags of a record.
pub fn flags(gave_up: bool, is_lock: bool) -> u32 {
    flag(gave_up, GAVE_UP) | flag(is_lock, IS_LOCK)
}

fn flag(is: bool, flag: u32) -> u32 {
    if is { flag } else { 0 }
}

/// The figures of the calling thread.
fn mine() -> Option<&'static Thread> {
    Some(places::figures(waits()?, threads::id()))
}

/// The calling thread has held a lock.
pub fn has_held(ns: u64) {
    if let Some(thread) = mine() {
        let before = thread.held_ns.load(Relaxed);
        thread.held_ns.store(before.saturating_add(ns), Relaxed);
    }
}

/// The calling thread ends.
pub fn ends() {
    if let Some(thread) = mine() {
        thread.cpu_ns.store(clock::cpu(), Relaxed);
    }
    if let Some(waits) = waits() {
        places::leave_all(waits, threads::id());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where the owners of a lock that is taken all the time are all noted: that made up half
    /// of the time of threads that only lock.
    #[test]
    fn owners_of_a_busy_lock_are_noted_once_in_a_while() {
        let each = |ns| left_out(100, 100 * ns);
        assert_eq!(each(10), 199);
        assert_eq!(each(1), LEFT_OUT - 1);
        assert_eq!(each(0), LEFT_OUT - 1);
        for slow in [NOTED_EACH_NS - 1, NOTED_EACH_NS, 1_000_000] {
            assert_eq!(each(slow), 0, "{slow}");
        }
        // Of another lock.
        assert_eq!(left_out(u64::MAX - 5, 0), LEFT_OUT - 1);
        assert_eq!(left_out(0, u64::MAX), 0);
    }

    /// Fails where the numbers of another lock in the same place hold for ever.
    #[test]
    fn owners_are_left_out_up_to_a_number_of_acquisitions() {
        let again = 1_000_u32;
        let first = (0..2_000_u32).find(|&count| left_before(again, count, true) != 0);
        assert_eq!(first, Some(again - LEFT_OUT));
        let many = (0..2_000).filter(|&count| left_before(again, count, true) != 0);
        assert_eq!(many.count(), LEFT_OUT as usize);
        assert_ne!(left_before(5, u32::MAX, true), 0);
    }
}
