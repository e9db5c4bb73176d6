//! Locks of the C library with statistics, where `--mutex glibc` and `--rwlock glibc` leave them in
//! place: a baseline for our own.
//!
//! An attempt comes before the wait. If that finds the lock held, the time of the C library's
//! function is the wait. The objects name the thread that owns them, and have no room for more: for
//! how long they are held is not known, and where they were acquired only with `overlock profile`.

use core::ffi::c_int;

use libc::EBUSY;
use overlock_shared::ObjectKind;
use overlock_stat::flight::Holder;
use overlock_stat::{objects, record, single, table};

use super::{Event, Spot, Wait, Where, takes_lock, usage, weight};
use crate::config;
use crate::site::Site;
use crate::thread;

/// Acquires a lock by `attempt`, or else by `wait`, and counts both. Without statistics, `wait`
/// alone. They return 0 or an errno. `owner` is the id of the thread that has it, or 0.
#[inline]
pub(crate) fn count_theirs(
    object: usize,
    (kind, site): (ObjectKind, Site),
    owner: impl FnOnce() -> u32,
    attempt: impl FnOnce() -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    if !config::get().stat {
        return wait();
    }
    takes_lock();
    let at = Where {
        object,
        kind,
        site,
        mark: objects::NO_ROOM,
    };
    let weight = weight(thread::begin_call(), false);
    let sampled = weight.map(|weight| (spot(at), weight));
    let error = attempt();
    if error == 0 {
        single::acquired_at(object, site);
    }
    match (error, sampled) {
        (EBUSY, sampled) => waited(at, sampled, owner(), wait),
        (0, Some(sampled)) => free(sampled),
        _ => error,
    }
}

#[cold]
fn spot(at: Where) -> Spot {
    table::keeping_errno(|| Spot::of(at))
}

/// An acquisition without a wait.
#[cold]
fn free((spot, weight): (Spot, u32)) -> c_int {
    record::sample_shared(&spot, weight);
    0
}

/// Acquires a lock that is held by another thread. Not inlined: the path without a wait saves no
/// registers for this.
#[cold]
#[inline(never)]
fn waited(
    at: Where,
    sampled: Option<(Spot, u32)>,
    owner: u32,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let holder = Holder {
        tid: owner,
        site: single::site_of(at.object),
        stack: 0,
    };
    let spot = sampled.map_or_else(|| spot(at), |(spot, _)| spot);
    let waiting = Wait::begin(spot, holder, 0);
    let error = wait();
    match error {
        0 => {
            single::acquired_at(at.object, at.site);
            waiting.over_shared(0);
        }
        _ => waiting.gave_up(),
    }
    error
}

/// Waits for an event by the C library's function `wait`, with statistics where the configuration
/// leaves it in place. `failed` tells of its result whether nothing happened.
#[inline]
pub(crate) fn event_of_theirs<T>(
    object: usize,
    kind: ObjectKind,
    site: Site,
    failed: impl FnOnce(&T) -> bool,
    wait: impl FnOnce() -> T,
) -> T {
    // A wait that is cancelled does not return, and is not counted.
    if !config::leaves_others() {
        return wait();
    }
    let begun = match kind {
        ObjectKind::Sem | ObjectKind::Cond => Event::begin_held(object, kind, site),
        _ => Event::begin(),
    };
    let Some(begun) = begun else {
        return wait();
    };
    match kind {
        ObjectKind::Cond => usage::waits_for(object),
        _ => usage::waits(object),
    }
    let result = wait();
    let failed = failed(&result);
    match kind {
        ObjectKind::Cond => usage::comes_back(object, !failed),
        _ => usage::has_waited(object),
    }
    let as_lock = usage::is_lock(object);
    table::keeping_errno(|| begun.over_as(object, kind, site, failed, as_lock));
    if !failed && kind == ObjectKind::Sem {
        usage::is_taken(object, site);
    }
    result
}

/// One of the C library's is signalled, where the configuration leaves it in place; `signalled`
/// notes that.
#[inline]
pub(crate) fn signals_theirs(object: usize, signalled: fn(usize)) {
    if config::get().stat && config::leaves_others() && usage::is_waited_for(object) {
        signalled(object);
    }
}
