//! The diagram of the [module's page](super) as data.

use super::policy::{OnReaders, Policy};
use super::{RwSem, WAITERS};
use crate::sleep::osq;
use overlock_core::diagram::{Diagram, HasDiagram, diagram};
use overlock_core::platform::Platform;
use overlock_core::sleep::wait_list;

diagram! {
    "rwsem" {
        Read = "(0, n) -> (0, n + 1)",
        ReadInVain = "(*, n) -> (*, n + 1): in vain",
        Keep = "(*, n) -> (*, n + 1): keeps a free lock that has waiters",
        ReadPast = "(0, n) -> (0, n + 1): past waiters",
        WakeQueuedReaders = "the first reader wakes the waiters",
        Leave = "(*, n) -> (*, n - 1)",
        LastWakes = "the last reader wakes",
        LastIsNotNeeded = "the last reader leaves the wake-up to a writer that is inside, or woken",
        Write = "(0, 0) -> (1, 0)",
        WritePast = "(0, 0) -> (1, 0): past waiters",
        LeaveWrite = "(1, 0) -> (0, 0)",
        LeaveToWoken = "the writer leaves the lock to a woken writer",
        Downgrade = "(1, 0) -> (0, 1)",
        Grant = "(0, n) -> (0, n + r)",
        SpinTakes = "spins -> owner: alone at the lock",
        SpinInVain = "spins -> in vain",
        SeesWriterLeave = "spins -> owner: has seen a writer leave",
        JoinFirst = "waiters = 1: in the list, the first",
        JoinBehind = "in the list, behind others",
        ReadUnderLock = "owner: a reader that finds the list empty",
        WakeWriter = "woken = 1",
        WokenTakes = "in the list -> owner: a writer",
        WokenInVain = "woken = 0: another thread was quicker",
        RequestHandoff = "handoff = 1",
        GiveUp = "in the list, at its limit -> without the lock",
        GrantedAtLimit = "in the list, at its limit -> granted just now",
        Disable = "owner = 0 -> disabled",
        Reenable = "owner = disabled -> 0: the last reader has left",
    }
}

impl Step {
    /// The transition of a newcomer that takes a lock for reading whose word is `seen`.
    pub(super) fn of_read(seen: u32) -> Self {
        if seen & WAITERS != 0 {
            Step::ReadPast
        } else {
            Step::Read
        }
    }

    /// The transition of a newcomer that takes a lock for writing whose word is `seen`.
    pub(super) fn of_write(seen: u32) -> Self {
        if seen & WAITERS != 0 {
            Step::WritePast
        } else {
            Step::Write
        }
    }

    /// The transition of a writer that leaves, and keeps `share`.
    pub(super) fn of_end(share: u32) -> Self {
        if share == 0 {
            Step::LeaveWrite
        } else {
            Step::Downgrade
        }
    }
}

/// The transitions that the lock cannot take with [`policy::None`](super::policy::None).
const UNREACHABLE_NONE: &[&str] = &[
    wait_list::Step::ConditionHolds.text(),
    wait_list::Step::Cancelled.text(),
    Step::Disable.text(),
    Step::Reenable.text(),
    Step::Keep.text(),
    Step::SeesWriterLeave.text(),
];
/// With [`policy::Counted`](super::policy::Counted).
const UNREACHABLE_COUNTED: &[&str] = &[
    wait_list::Step::ConditionHolds.text(),
    wait_list::Step::Cancelled.text(),
    Step::Reenable.text(),
    Step::Keep.text(),
    Step::SeesWriterLeave.text(),
];
/// With [`policy::Timed`](super::policy::Timed).
const UNREACHABLE_TIMED: &[&str] = &[
    wait_list::Step::ConditionHolds.text(),
    wait_list::Step::Cancelled.text(),
];

impl<P: Platform, Y: Policy> HasDiagram for RwSem<P, Y> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM, &osq::DIAGRAM, &wait_list::DIAGRAM];
    const UNREACHABLE: &'static [&'static str] = match (Y::ON_READERS, Y::READERS_STEAL) {
        (OnReaders::Sleep, false) => UNREACHABLE_NONE,
        (OnReaders::Count { .. }, false) => UNREACHABLE_COUNTED,
        (OnReaders::Time, true) => UNREACHABLE_TIMED,
        _ => panic!("list the transitions that this policy cannot take"),
    };
}
