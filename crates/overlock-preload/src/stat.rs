//! Statistics: contention by lock and call site, like `/proc/lock_stat`, in a
//! [table](overlock_shared) that is shared with `overlock run`.
//!
//! # What is recorded, and when
//!
//! - An acquisition that finds its lock held is a *contention*: it is always counted, with its
//!   wait time. The hold time and the call site of the owner that it found are recorded, too, but
//!   for most short waits of a thread that waits all the time.
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

mod kept;
mod theirs;
pub(crate) mod usage;

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use overlock_linux::__private::spin::{self, Account};
use overlock_shared::ObjectKind;
pub(crate) use overlock_stat::record::{released_by, sample, sample_shared, unfair};
pub(crate) use overlock_stat::sampling::{sampled, unfair_weight, weight};
pub(crate) use overlock_stat::single::{has_released, releases, takes};
pub(crate) use overlock_stat::table::{keeping_errno, start};
pub(crate) use overlock_stat::{Spot, Wait, Where, flight, is_used};
use overlock_stat::{clock, objects, record, sampling, single, table, threads};

use crate::order::Object;
use crate::site::Site;
use crate::{config, real, thread};
use flight::{Holder, Waited};
pub(crate) use kept::keeps;
pub(crate) use theirs::{count_theirs, event_of_theirs, signals_theirs};

/// Comes first, where contention is counted.
pub(crate) fn set_up(is_profiled: bool) {
    table::set_up(real::find, is_profiled);
}

/// The process takes a lock, on the general path. The first time the table says so, and the fast
/// paths begin to work.
#[inline]
pub(crate) fn takes_lock() {
    if overlock_stat::takes_lock() {
        config::generation_changed();
    }
}

/// Records that an object without room for a mark is initialised at `site`, with statistics.
pub(crate) fn initialised(address: usize, site: Site) {
    if config::get().stat {
        usage::is_another(address);
        objects::initialised(address, objects::NO_ROOM, site);
    }
}

/// The same of a lock with room for a mark, which may have the validator's by now.
pub(crate) fn initialised_marked(lock: Object<'_>, site: Site) {
    if config::get().stat {
        if lock.mark.load(Relaxed) == 0 {
            lock.mark.store(objects::new_mark(), Relaxed);
        }
        objects::initialised(lock.address, lock.mark.load(Relaxed), site);
    }
}

/// Records that a lock without room for a mark is about to be destroyed, with statistics: after
/// that its memory may be another's.
pub(crate) fn destroyed(address: usize) {
    if config::get().stat {
        objects::gone(address);
    }
}

/// Makes the process's table if it has none, since the process may be unable to later.
pub(crate) fn make_table() {
    if config::get().stat {
        table::make_table();
    }
}

/// Reads the modules a last time, and opens no files after that.
pub(crate) fn use_no_files() {
    if config::get().stat {
        table::use_no_files();
    }
}

/// After fork() in the child, which makes a table of its own.
pub(crate) fn after_fork() {
    if let Some(id) = table::after_fork() {
        thread::forked(id);
    }
}

/// The id of the calling thread, where statistics want it, and it may be asked for.
pub(crate) fn thread_id() -> Option<u32> {
    let id = config::get().stat.then(threads::id);
    id.filter(|&id| id != 0)
}

/// How many acquisitions of the lock pass, after `count` of them, before one has to be looked at.
pub(crate) fn left(object: usize, count: u32, is_waited_for: bool) -> u32 {
    let left = sampling::left(count, is_waited_for);
    match config::is_profiled() {
        true => left.min(single::left(object, count, is_waited_for)),
        false => left,
    }
}

/// Whether the owner that has acquired the lock after `count` others, while threads wait, is noted
/// for their [profile](single).
#[inline(always)]
pub(crate) fn notes_owner(object: usize, count: u32) -> bool {
    config::is_profiled() && single::left(object, count, true) == 0
}

/// Has the release of a lock looked at, for a waiter's [profile](single): `observed` is the number
/// of its owner's flight.
#[inline]
pub(crate) fn has_release_noted(observed: &AtomicU32) {
    if config::is_profiled() && observed.load(Relaxed) == 0 {
        // Relaxed: a late or lost mark is a release that is not noted. The number of a flight that
        // an owner stores meanwhile has its release looked at, too.
        _ = observed.compare_exchange(0, flight::NOTED, Relaxed, Relaxed);
    }
}

/// The number of an owner's flight, or the mark of one without that has waited.
#[inline]
pub(crate) fn or_noted(flight: u32) -> u32 {
    match flight {
        0 if config::is_profiled() => flight::NOTED,
        flight => flight,
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
    /// The wait for a lock as it is shown, and the lock's holder.
    held: Option<(Spot, Holder, single::Shown)>,
}

impl Event {
    /// Begins it. Returns `None` without statistics.
    pub(crate) fn begin() -> Option<Self> {
        let began = || {
            Account::take();
            Event {
                began_ns: clock::now(),
                held: None,
            }
        };
        config::get().stat.then(began)
    }

    /// The same. If the object is a lock whose holder is known, that is looked at.
    #[cold]
    pub(crate) fn begin_held(object: usize, kind: ObjectKind, site: Site) -> Option<Self> {
        let mut event = Event::begin()?;
        if (kind == ObjectKind::Spin || usage::is_lock(object))
            && let Some(holder) = usage::holder(object)
        {
            let at = keeping_errno(|| spot(object, kind, site));
            let shown = single::begin(&at, event.began_ns, holder.tid, 0);
            event.held = Some((at, holder, shown));
        }
        Some(event)
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
        let ns = now.saturating_sub(self.began_ns);
        let mut waited = Waited::new(ns, Holder::default(), 0);
        let at = match self.held {
            Some((at, holder, shown)) => {
                waited.holder = holder;
                match gave_up {
                    true => shown.gave_up(),
                    false => shown.over(object, now, &mut waited),
                }
                at
            }
            None => spot(object, kind, site),
        };
        if as_lock && kind == ObjectKind::Cond && !gave_up {
            if waited.holder.tid == 0 {
                waited.holder = usage::signaller(object);
            }
            usage::is_held(object, site);
        }
        record::event(&at, now, &waited, &account, (gave_up, as_lock));
    }
}

fn spot(object: usize, kind: ObjectKind, site: Site) -> Spot {
    let mark = match kind {
        // No call initialises these, but one may have initialised what lay there before.
        ObjectKind::Futex | ObjectKind::Poll => 0,
        _ => objects::NO_ROOM,
    };
    Spot::of(Where {
        object,
        kind,
        site,
        mark,
    })
}
