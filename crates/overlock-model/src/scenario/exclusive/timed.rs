//! Courses that depend on how long things take: through states that a lock reaches when a section is long, or a sleeper comes late.
//!
//! While a thread stays in its section or rests, and nobody else can go on, time passes until the first wait is over. So these lead
//! far into a lock without a single departure, and the search departs from there.

use super::Act::{Busy, Cancel, Cancellable, Cycles, Hold, HoldFair, Lock, Rest, Within};
use super::Script;
use crate::scenario::{Length, Setting};

const TIMED: Setting = Setting::TIMED;
const LONG: Setting = Setting {
    length: Length::Course,
    ..TIMED
};
const RESTLESS: Setting = Setting {
    restless: true,
    ..TIMED
};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// The sleepers of the recommended lock wake in a section that is longer than any sleep, after 16 ms and some 3 us of spinning: they
/// spin for 2 us, ask, spin for 2 us more, and sleep again. The third time they claim, and so the second one may meet a claim of the first when it has just asked, if it came 32 ms and
/// some us later: how many depends on the policy.
#[rustfmt::skip]
const OVERLOCK: &[Script] = &[
    Script("fair-late",   TIMED, &[&[HoldFair(16 * MS + 8 * US)], &[Lock], &[Rest(MS), Lock]]),
    Script("asks",        TIMED, &[&[Hold(16 * MS + 20 * US)], &[Lock], &[Lock]]),
    Script("gives-up",    TIMED, &[&[Hold(16 * MS + 20 * US)], &[Within(16 * MS + 6 * US)], &[Rest(MS), Lock]]),
    Script("cancelled",   TIMED, &[&[Hold(16 * MS + 20 * US)], &[Cancellable], &[Rest(16 * MS + 5 * US), Cancel, Lock]]),
    Script("claims",      TIMED, &[&[Hold(50 * MS)], &[Lock]]),
    Script("leaves",      TIMED, &[&[Hold(50 * MS)], &[Lock], &[Rest(32 * MS), Within(18 * MS)]]),
    Script("displaces",   TIMED, &[&[Hold(48 * MS + 100 * US)], &[Lock], &[Rest(32 * MS + 10_200), Lock]]),
    Script("displaces-x", TIMED, &[&[Hold(48 * MS + 100 * US)], &[Lock], &[Rest(32 * MS + 7_200), Lock]]),
    Script("displaces-f", TIMED, &[&[Hold(48 * MS + 100 * US)], &[Lock], &[Rest(32 * MS + 38_000), Lock]]),
    Script("turns",       LONG,  &[&[Cycles(16, 3 * US, US), Cycles(100, 15 * US, 5 * US)],
                                   &[Cycles(16, 3 * US, US), Cycles(100, 15 * US, 5 * US)]]),
    Script("late",        LONG,  &[&[Hold(4 * US), Lock, Busy(1_200, 4_500), Rest(2_490 * US), Hold(20 * US), Rest(90 * US), Hold(20 * US)],
                                   &[Lock, Rest(2_500 * US), Lock, Rest(100 * US), Lock],
                                   &[Lock, Rest(2_500 * US), Lock, Rest(100 * US), Lock],
                                   &[Lock]]),
    Script("passed",      LONG,  &[&[Cycles(100, 30 * US, 0)], &[Lock], &[Lock]]),
];

/// The second in the queue sleeps from the beginning, since the head does. And: by the time the head runs, the lock that it was kicked for is
/// held again.
#[rustfmt::skip]
const PV: &[Script] = &[
    Script("restless",    RESTLESS, &[&[Hold(MS)], &[Rest(US), Lock], &[Rest(MS / 2), Lock]]),
    Script("robbed",      TIMED,    &[&[Hold(MS), Hold(MS)], &[Rest(US), Lock]]),
];

/// Those for the lock with this name.
pub(super) fn scripts(lock: &str) -> &'static [Script] {
    match lock {
        "overlock" | "overlock_exchange" | "overlock_posix" | "overlock_fixed"
        | "overlock_owner_cpu" => OVERLOCK,
        "pv_queued" | "hybrid" | "hybrid_short" => PV,
        _ => &[],
    }
}
