//! The diagram of the [module's page](super) as data.

use super::policy::{OnReaders, Policy};
use super::word::{READ, Share};
use super::{RwSem, UPGRADABLE, WAITERS};
use crate::diagram::{Diagram, HasDiagram, diagram};
use crate::platform::Platform;
use crate::sleep::{osq, wait_list};

diagram! {
    "rwsem" {
        Read = "(0, u, n) -> (0, u, n + 1)",
        ReadInVain = "(*, u, n) -> (*, u, n + 1): in vain",
        Keep = "(*, u, n) -> (*, u, n + 1): keeps a free lock that others wait for",
        ReadPast = "(0, u, n) -> (0, u, n + 1): past those that wait",
        BringAlong = "the first reader wakes those that wait",
        Leave = "(*, u, n) -> (*, u, n - 1)",
        LastWakes = "the last reader wakes",
        LastIsNotNeeded = "the last reader leaves it to a writer that is there, or is called",
        Upgradable = "(0, 0, n) -> (0, 1, n + 1)",
        LeaveUpgradable = "(0, 1, n) -> (0, 0, n - 1)",
        OnlyRead = "(0, 1, n) -> (0, 0, n)",
        Write = "(0, 0, 0) -> (1, 0, 0)",
        WritePast = "(0, 0, 0) -> (1, 0, 0): past those that wait",
        LeaveWrite = "(1, 0, 0) -> (0, 0, 0)",
        LeaveToCalled = "the writer leaves it to one that is called",
        Downgrade = "(1, 0, 0) -> (0, 0, 1)",
        DowngradeToUpgradable = "(1, 0, 0) -> (0, 1, 1)",
        UpgradeAlone = "(0, 1, 1) -> (1, 0, 0)",
        Upgrade = "(0, 1, n) -> (1, 1, n - 1)",
        UpgradeSees = "(1, 1, 0) -> (1, 0, 0): seen by itself",
        UpgradeGranted = "(1, 1, 0) -> (1, 0, 0): seen by the last of the readers",
        ReadOn = "(1, 1, n) -> (0, 1, n + 1)",
        Grant = "(0, u, n) -> (0, *, n + r)",
        SpinTakes = "spins -> owner: alone at the lock",
        SpinInVain = "spins -> in vain",
        SeesWriterLeave = "spins -> owner: has seen a writer leave",
        JoinFirst = "waiters = 1: in the list, the first",
        JoinBehind = "in the list, behind others",
        JoinInFront = "waiters = 1: in the list, an upgrader, in front of others",
        ReadUnderGuard = "owner: a reader that finds the list empty",
        Call = "called = 1",
        CalledTakes = "in the list -> owner: a writer",
        CalledInVain = "called = 0: somebody was quicker",
        AskForHandoff = "handoff = 1",
        GiveUp = "in the list, at its limit -> without the lock",
        GrantedAtLimit = "in the list, at its limit -> granted just now",
        BackoffSleep = "without a node: backs off",
        Disable = "owner = 0 -> disabled",
        SpinAgain = "owner = disabled -> 0: the last reader has left",
    }
}

impl Step {
    /// How a newcomer takes a share of a lock whose word is `seen`.
    pub(super) fn of_share(share: Share, seen: u32) -> Self {
        if share.adds & UPGRADABLE != 0 {
            Step::Upgradable
        } else if seen & WAITERS != 0 {
            Step::ReadPast
        } else {
            Step::Read
        }
    }

    /// How a newcomer takes all of a lock whose word is `seen`.
    pub(super) fn of_write(seen: u32) -> Self {
        if seen & WAITERS != 0 {
            Step::WritePast
        } else {
            Step::Write
        }
    }

    /// How a writer lets go of all but `share`.
    pub(super) fn of_end(share: u32) -> Self {
        match share {
            0 => Step::LeaveWrite,
            _ if share == READ.adds => Step::Downgrade,
            _ => Step::DowngradeToUpgradable,
        }
    }

    /// How an upgradable reader lets go of all but what it `keeps`.
    pub(super) fn of_end_upgradable(keeps: u32) -> Self {
        if keeps == 0 {
            Step::LeaveUpgradable
        } else {
            Step::OnlyRead
        }
    }
}

/// Transitions that not all forms of the lock have; the two in the middle none.
const PARTIAL: &[&str] = &[
    Step::Disable.text(),
    Step::SpinAgain.text(),
    wait_list::Step::Come.text(),
    wait_list::Step::Cancelled.text(),
    Step::Keep.text(),
    Step::SeesWriterLeave.text(),
];

impl<P: Platform, Y: Policy> HasDiagram for RwSem<P, Y> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM, &osq::DIAGRAM, &wait_list::DIAGRAM];
    const UNREACHABLE: &'static [&'static str] = {
        let upto = if Y::READERS_STEAL { 4 } else { 6 };
        let from = match Y::ON_READERS {
            OnReaders::Sleep => 0,
            OnReaders::Count { .. } => 1,
            OnReaders::Time => 2,
        };
        PARTIAL.split_at(upto).0.split_at(from).1
    };
}
