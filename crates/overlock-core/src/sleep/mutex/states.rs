//! The diagram of the [module's page](super) as data.

use super::Mutex;
use super::policy::{Policy, WaiterSpin};
use super::word::{PICKUP, WAITERS};
use crate::diagram::{Diagram, HasDiagram, diagram};
use crate::platform::Platform;
use crate::sleep::{osq, wait_list};

diagram! {
    "mutex" {
        Lock = "(0; ) -> (a; )",
        Unlock = "(a; ) -> (0; )",
        JoinFirst = "(*; ) -> (*; W)",
        JoinBehind = "(*; W) -> (*; W): behind b",
        UnlockSleepers = "(a; W) -> (0; W)",
        TakePast = "(0; W) -> (c; W)",
        Ask = "(a; W) -> (a; WH): b was woken in vain",
        Handoff = "(a; WH) -> (b; WP)",
        GiveFairly = "(a; W) -> (b; WP): a fair unlock",
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
        BackoffSleep = "without a node: backs off",
    }
}

impl Step {
    /// How a mutex is taken whose word is `seen`.
    pub(super) fn of_taking(seen: u32) -> Self {
        if seen & PICKUP != 0 {
            Step::PickUp
        } else if seen & WAITERS != 0 {
            Step::TakePast
        } else {
            Step::Lock
        }
    }

    /// How an unlock gives the mutex to a sleeper that has `asked` for it, or has not.
    pub(super) fn of_giving(asked: bool) -> Self {
        if asked {
            Step::Handoff
        } else {
            Step::GiveFairly
        }
    }
}

impl<P: Platform, Y: Policy> HasDiagram for Mutex<P, Y> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM, &osq::DIAGRAM, &wait_list::DIAGRAM];
    const UNREACHABLE: &'static [&'static str] = match Y::WAITER {
        WaiterSpin::Never => &[Step::WokenSpinTakes.text(), wait_list::Step::Come.text()],
        WaiterSpin::Outside | WaiterSpin::Inside => &[wait_list::Step::Come.text()],
    };
}
