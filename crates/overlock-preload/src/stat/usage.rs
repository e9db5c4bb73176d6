//! How conditions and semaphores are used: as locks or for events, and when they were signalled.
//!
//! A semaphore that is a lock is signalled by the thread that has taken it last: the owner. A
//! condition that is one (the GIL of an interpreter) is signalled by threads that have waited for
//! it themselves. A thread that comes back to it while others wait signals it before any other
//! does. Events are signalled by others. Those signals are compared that find a waiter.
//!
//! The notes are beside the objects, by their addresses, since a woken thread may not look at the
//! object any more. Objects whose addresses have the same hash disturb each other: a wrong word in
//! a report, and no more. All accesses are Relaxed, since no other data depends on them.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use overlock_stat::flight::Holder;
use overlock_stat::{clock, single, threads};

use crate::config;
use crate::site::Site;
use crate::thread::me;

const NOTES: usize = 1024;

#[derive(Debug)]
struct Note {
    /// The object of which signals were counted last.
    object: AtomicUsize,
    /// Of a semaphore: the thread that has taken it last; 0 once that has signalled. Of a
    /// condition: the thread that came back last while others waited; 0 once that has signalled,
    /// or waits.
    owner: AtomicUsize,
    /// The thread that has the object, as far as it is a lock: its id, and the lower half of the
    /// call site. 0 where nobody knows.
    holder: AtomicU64,
    /// Of a condition: the thread that has signalled it last.
    signaller: AtomicU32,
    /// The time of the last signal.
    signalled_ns: AtomicU64,
    by_owner: AtomicU32,
    by_others: AtomicU32,
    /// Of a mutex: see `watch_until`, and the time of the last wait that had others watched.
    watched: AtomicU32,
    watched_ns: AtomicU64,
    /// Of a condition, and of an object of the C library's: its waiters, and those that were
    /// cancelled.
    waiters: AtomicU32,
}

static ALL: [Note; NOTES] = [const {
    Note {
        object: AtomicUsize::new(0),
        owner: AtomicUsize::new(0),
        holder: AtomicU64::new(0),
        signaller: AtomicU32::new(0),
        signalled_ns: AtomicU64::new(0),
        by_owner: AtomicU32::new(0),
        by_others: AtomicU32::new(0),
        watched: AtomicU32::new(0),
        watched_ns: AtomicU64::new(0),
        waiters: AtomicU32::new(0),
    }
}; NOTES];

fn note(object: usize) -> &'static Note {
    &ALL[((object >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % NOTES]
}

/// The calling thread has taken a semaphore.
#[inline]
pub(crate) fn is_taken(object: usize, site: Site) {
    if config::get().stat {
        note(object).owner.store(me(), Relaxed);
        is_held(object, site);
    }
}

/// The calling thread has acquired an object that has no room for its owner.
pub(crate) fn is_held(object: usize, site: Site) {
    let id = u64::from(threads::id());
    let word = id << 32 | u64::from(site as u32);
    note(object).holder.store(word, Relaxed);
    single::takes_again(object);
}

/// The thread that has the object, as far as is known: not the calling one, which waits.
pub(super) fn holder(object: usize) -> Option<Holder> {
    let word = note(object).holder.load(Relaxed);
    let tid = (word >> 32) as u32;
    (tid != 0 && tid != threads::id()).then_some(Holder {
        tid,
        site: word as u32,
        stack: 0,
    })
}

/// The thread that has signalled a condition last: it had the lock until then.
pub(super) fn signaller(condition: usize) -> Holder {
    Holder {
        tid: note(condition).signaller.load(Relaxed),
        ..Holder::default()
    }
}

/// The calling thread is about to signal a condition. Returns whether it does so as an owner.
#[inline]
pub(crate) fn signals(condition: usize) -> bool {
    let counts = config::get().stat;
    if counts {
        is_signalled(condition);
        note(condition).signalled_ns.store(clock::now(), Relaxed);
    }
    counts && is_owners(condition)
}

/// Whether a signal of the calling thread is one of a lock's owner.
fn is_owners(condition: usize) -> bool {
    let owner = &note(condition).owner;
    // An owner that waits has released it; so the next signal is another's.
    let found = owner.compare_exchange(me(), 0, Relaxed, Relaxed);
    let is_anothers = found.is_err_and(|other| other != 0);
    WAITED.get() == condition && !is_anothers
}

fn is_signalled(condition: usize) {
    let note = note(condition);
    note.signaller.store(threads::id(), Relaxed);
    // A thread that takes it without a wait is not noted.
    note.holder.store(0, Relaxed);
    single::has_released(condition);
}

thread_local! {
    /// The condition that the calling thread has waited for last. It has no destructor and no lazy
    /// initialisation, so it exists at any time.
    static WAITED: Cell<usize> = const { Cell::new(0) };
}

/// The calling thread waits for a condition, with statistics.
#[inline]
pub(crate) fn waits_for(condition: usize) {
    WAITED.set(condition);
    let note = note(condition);
    // It has found the lock taken, or has no further use for it.
    let _ = note.owner.compare_exchange(me(), 0, Relaxed, Relaxed);
    note.waiters.fetch_add(1, Relaxed);
}

/// The same thread has waited for it.
#[inline]
pub(crate) fn comes_back(condition: usize, is_notified: bool) {
    let note = note(condition);
    let has_others = note.waiters.fetch_sub(1, Relaxed) > 1;
    // Without others an owner may release it and signal nobody.
    if is_notified && has_others {
        note.owner.store(me(), Relaxed);
    }
}

/// The calling thread has signalled a condition, for which others waited.
#[inline]
pub(crate) fn has_signalled(condition: usize, is_owners: bool) {
    if config::get().stat {
        note(condition).signaller.store(threads::id(), Relaxed);
        count_signal(condition, is_owners);
    }
}

/// The same of one of the C library's, just before.
pub(crate) fn signals_theirs(condition: usize) {
    has_signalled(condition, is_owners(condition));
}

/// The calling thread has woken all that waited for a condition, as who waits for an event expects.
#[inline]
pub(crate) fn has_broadcast(condition: usize) {
    if config::get().stat {
        count_signal(condition, false);
    }
}

/// The calling thread has signalled a semaphore, for which others waited.
#[inline]
pub(crate) fn has_posted(semaphore: usize) {
    if config::get().stat {
        let owner = &note(semaphore).owner;
        let was_owner = owner.compare_exchange(me(), 0, Relaxed, Relaxed).is_ok();
        count_signal(semaphore, was_owner);
        single::has_released(semaphore);
    }
}

fn count_signal(object: usize, is_by_owner: bool) {
    let note = note(object);
    let count = match is_by_owner {
        true => &note.by_owner,
        false => &note.by_others,
    };
    count.fetch_add(1, Relaxed);
    note.object.store(object, Relaxed);
}

/// The object is initialised: what was counted of an earlier one in its memory is not its own.
pub(super) fn is_another(object: usize) {
    let note = note(object);
    if note.object.load(Relaxed) == object {
        for count in [&note.by_owner, &note.by_others, &note.signaller] {
            count.store(0, Relaxed);
        }
        note.owner.store(0, Relaxed);
        note.holder.store(0, Relaxed);
    }
}

/// The calling thread is about to wait for an object of the C library's.
pub(super) fn waits(object: usize) {
    note(object).waiters.fetch_add(1, Relaxed);
}

/// It has waited.
pub(super) fn has_waited(object: usize) {
    note(object).waiters.fetch_sub(1, Relaxed);
}

/// Whether others may wait for it.
pub(super) fn is_waited_for(object: usize) -> bool {
    note(object).waiters.load(Relaxed) > 0
}

/// Whether the object is used as a lock, as far as is known.
pub(crate) fn is_lock(object: usize) -> bool {
    /// Fewer may be by chance.
    const LEAST: u32 = 4;
    let note = note(object);
    let by_owner = note.by_owner.load(Relaxed);
    by_owner >= LEAST && by_owner > note.by_others.load(Relaxed)
}

/// Whether a wait for the mutex that has ended now has the next acquisitions watched: not so soon
/// after another one that the cost would show.
pub(crate) fn may_watch(mutex: usize, now: u64) -> bool {
    /// Each acquisition that is watched takes a tenth of a microsecond more.
    const LEAST_NS: u64 = 500_000;
    let last = &note(mutex).watched_ns;
    let may = now.saturating_sub(last.load(Relaxed)) >= LEAST_NS;
    if may {
        last.store(now, Relaxed);
    }
    may
}

/// Has the acquisitions of a mutex watched, up to this number of them.
pub(crate) fn watch_until(mutex: usize, count: u32) {
    note(mutex).watched.store(count, Relaxed);
}

/// The number of acquisitions up to which they are watched.
pub(crate) fn watched_until(mutex: usize) -> u32 {
    note(mutex).watched.load(Relaxed)
}

/// The time of the last signal.
pub(super) fn signalled_ns(object: usize) -> u64 {
    note(object).signalled_ns.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_waits_that_follow_each_other_few_have_others_watched() {
        let waits = (1..=10_000).map(|wait| may_watch(0x5000, 1_000_000 + wait * 1000));
        assert_eq!(waits.filter(|&may| may).count(), 20);
    }

    /// Fails where a queue with a bound is a lock, since those that make room have waited for some.
    #[test]
    fn who_comes_back_to_a_lock_signals_before_others() {
        let (lock, queue) = (0x2000, 0x2a38);
        let other = 0x77;
        for _ in 0..8 {
            WAITED.set(lock);
            note(lock).owner.store(me(), Relaxed);
            count_signal(lock, is_owners(lock));
            // Another thread has come back, and this one signals first.
            WAITED.set(queue);
            note(queue).owner.store(other, Relaxed);
            count_signal(queue, is_owners(queue));
        }
        assert!(is_lock(lock) && !is_lock(queue));
        WAITED.set(0);
    }

    #[test]
    fn a_lock_is_signalled_by_its_owner() {
        let signal = count_signal;
        let (lock, event) = (0x1000, 0x1238);
        for _ in 0..4 {
            assert!(!is_lock(lock));
            signal(lock, true);
        }
        signal(lock, false);
        signal(event, false);
        signal(event, true);
        assert!(is_lock(lock) && !is_lock(event));
        is_another(lock);
        assert!(!is_lock(lock));
    }
}
