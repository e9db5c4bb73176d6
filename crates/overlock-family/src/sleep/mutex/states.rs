//! The diagram of the [module's page](super) as data.

use super::KernelMutex;
use super::policy::{Policy, WaiterSpin};
use super::word::{PICKUP, WAITERS};
use crate::sleep::osq;
use overlock_core::diagram::{Diagram, HasDiagram, diagram};
use overlock_core::platform::Platform;
use overlock_core::sleep::wait_list;

diagram! {
    "mutex" {
        Lock = "(0; ) -> (a; )",
        Unlock = "(a; ) -> (0; )",
        JoinFirst = "(*; ) -> (*; W)",
        JoinBehind = "(*; W) -> (*; W): behind b",
        UnlockSleepers = "(a; W) -> (0; W)",
        TakePast = "(0; W) -> (c; W)",
        RequestHandoff = "(a; W) -> (a; WH): b was woken in vain",
        Handoff = "(a; WH) -> (b; WP)",
        HandoffFairly = "(a; W) -> (b; WP): a fair unlock",
        PickUp = "(b; WP) -> (b; W)",
        LeaveLast = "(*; W) -> (*; )",
        LeaveOthers = "(*; W) -> (*; W): b has left the list",
        UnlockAgain = "(a; ): the unlock saw W, it tries again",
        FindAwake = "an unlock finds b awake",
        SpinTakes = "spins, as the queue's head -> owner",
        SpinInVain = "spins, as the queue's head -> in vain",
        JoinerTakes = "in the list -> owner",
        JoinerSleeps = "in the list -> asleep",
        WokenTakes = "asleep, woken -> owner",
        WokenSpinTakes = "asleep, woken, spins -> owner",
        LastAttemptTakes = "last attempt -> owner",
        LastAttemptInVain = "last attempt -> asleep",
        LimitTakes = "asleep, at its limit -> owner",
        GiveUp = "asleep, at its limit -> without the mutex",
    }
}

impl Step {
    /// The transition that takes a mutex whose word is `seen`.
    pub(super) fn of_taking(seen: u32) -> Self {
        if seen & PICKUP != 0 {
            Step::PickUp
        } else if seen & WAITERS != 0 {
            Step::TakePast
        } else {
            Step::Lock
        }
    }

    /// The transition of an unlock that hands off to a sleeper, which has `requested` it or not.
    pub(super) fn of_handoff(requested: bool) -> Self {
        if requested {
            Step::Handoff
        } else {
            Step::HandoffFairly
        }
    }
}

/// The transitions that a mutex cannot take whose woken sleepers spin.
const UNREACHABLE: &[&str] = &[wait_list::Step::ConditionHolds.text()];
/// The transitions that a mutex cannot take whose woken sleepers do not spin.
const UNREACHABLE_NO_SPIN: &[&str] = &[
    wait_list::Step::ConditionHolds.text(),
    Step::WokenSpinTakes.text(),
];

impl<P: Platform, Y: Policy> HasDiagram for KernelMutex<P, Y> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM, &osq::DIAGRAM, &wait_list::DIAGRAM];
    const UNREACHABLE: &'static [&'static str] = match Y::WAITER {
        WaiterSpin::Never => UNREACHABLE_NO_SPIN,
        WaiterSpin::Outside | WaiterSpin::Inside => UNREACHABLE,
    };
}
