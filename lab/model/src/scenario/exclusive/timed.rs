//! Scripts that depend on how long things take: through states that a lock reaches when a section
//! is long, or a sleeper comes late.
//!
//! While a thread stays in its section or rests, and nobody else can go on, time passes until the
//! first wait is over. So these scripts lead far into a lock without a single departure, and the
//! search departs from there.

use overlock_core::raw::RawLock;
use overlock_core::sleep::Overlock;
use overlock_family::spin::{Hybrid, HybridShort, PvQueued};

use super::Act::{Cancel, Cancellable, Fair, Hold, HoldFair, Lock, Rest, Within};
use super::Script;
use crate::scenario::{Length, Setting};
use crate::world::World;

const TIMED: Setting = Setting::TIMED;
const LONG: Setting = Setting {
    length: Length::Course,
    ..TIMED
};
const SLOW: Setting = Setting::SLOW;
const RESTLESS: Setting = Setting {
    restless: true,
    ..TIMED
};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A sleeper of the recommended mutex that was woken in vain after 4 ms of waiting asks for a
/// handoff; sections are so long that it sleeps through them, and others come in between. In
/// `rounds` waits end by their limits, and handoffs are requested, or taken back.
#[rustfmt::skip]
const OVERLOCK: &[Script] = &[
    Script("asks",        LONG,  &[&[Hold(5 * MS), Hold(5 * MS), Hold(5 * MS)], &[Lock], &[Rest(MS), Lock]]),
    Script("asks-late",   LONG,  &[&[Hold(5 * MS), Hold(5 * MS)], &[Within(7 * MS)], &[Rest(MS), Lock]]),
    Script("asks-cancel", LONG,  &[&[Hold(5 * MS), Hold(5 * MS)], &[Cancellable], &[Rest(7 * MS), Cancel, Lock]]),
    Script("asks-fair",   LONG,  &[&[Hold(5 * MS), Hold(5 * MS), HoldFair(5 * MS)], &[Lock], &[Rest(MS), Lock]]),
    Script("fair-limit",  TIMED, &[&[HoldFair(MS)], &[Within(MS)], &[Rest(MS / 2), Lock]]),
    Script("fair-late",   TIMED, &[&[HoldFair(MS)], &[Lock], &[Rest(MS / 2), Lock]]),
    Script("rounds",      SLOW,  &[&[Lock, Lock, Fair], &[Lock, Within(2 * MS), Lock], &[Within(3 * MS), Fair, Lock]]),
];

/// The second in the queue sleeps from the beginning, since the head does. And: by the time the
/// head runs, the lock that it was kicked for is held again.
#[rustfmt::skip]
const PV: &[Script] = &[
    Script("restless",    RESTLESS, &[&[Hold(MS)], &[Rest(US), Lock], &[Rest(MS / 2), Lock]]),
    Script("robbed",      TIMED,    &[&[Hold(MS), Hold(MS)], &[Rest(US), Lock]]),
];

/// Returns those for the lock with this name.
pub(super) fn scripts<W: World>(lock: &str) -> &'static [Script] {
    let pv = [
        PvQueued::<W>::NAME,
        Hybrid::<W>::NAME,
        HybridShort::<W>::NAME,
    ];
    if lock == Overlock::<W>::NAME {
        OVERLOCK
    } else if pv.contains(&lock) {
        PV
    } else {
        &[]
    }
}
