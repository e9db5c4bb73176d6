//! The diagram of the [module's page](super) as data.

use super::OverlockRw;
use crate::diagram::{Diagram, HasDiagram, diagram};
use crate::facts::{Facts, HasFacts};
use crate::platform::Platform;

diagram! {
    "overlock_rw" {
        Read = "(0, n) -> (0, n+1)",
        BackOut = "(w, n+1) -> (w, n): shut or full, a reader in vain",
        BackOutKicks = "(w, n+1) -> (w, n): a reader in vain, kicks",
        TryRead = "(0, n) -> (0, n+1): an attempt",
        ReadLate = "(0, n) -> (0, n+1): after a wait",
        CountBehindWriter = "(1, n) -> (1, n+1): a reader counts itself behind a writer",
        ShareBegins = "(0, n): a reader that counted itself behind a writer has a share",
        ReaderSleeps = "a reader: others = 1",
        CountedSleeps = "a reader counted behind a writer: others = 1",
        CountedGivesUp = "(w, n) -> (w, n-1): a reader counted behind a writer, at its limit",
        Leave = "(w, n) -> (w, n-1)",
        LeaveKicks = "(0, n) -> (0, n-1): the last that was waited for, kicks",
        Write = "(0, 0) -> (1, 0)",
        WriteAtGate = "(0, 0) -> (1, 0): at the gate",
        Close = "a writer at the gate: closed = 1",
        FirstSleeps = "at the gate: first = 1",
        FirstCloses = "at the gate: first = 1, closed = 1",
        FirstGivesUp = "at the gate: at its limit",
        Unlock = "(1, n) -> (0, n)",
        UnlockKicks = "(1, n) -> (0, n): kicks",
        Downgrade = "(1, n) -> (0, n+1)",
        Upgradable = "(0, n) -> (0, n+1) U",
        UpgradableAtGate = "(0, n) -> (0, n+1) U: at the gate",
        ReleaseUpgradable = "(0, n) U -> (0, n-1), (0, n)",
        ReleaseKicks = "(0, n) U -> (0, n-1), (0, n): kicks",
        Upgrade = "(0, 1) U -> (1, 0)",
        UpgraderSleeps = "an upgrader: others = 1",
        UpgradeGivesUp = "an upgrader: at its limit",
    }
}

impl<P: Platform> HasFacts for OverlockRw<P> {
    const FACTS: Facts = Facts {
        about: "the one we recommend: readers count, writers that wait do so at a gate",
        freed_by_last_user: true,
        tried_in_handlers: true,
        compared: true,
        ..Facts::SLEEPING
    };
}

/// Without the gate's diagram: the gate is the recommended lock, which has its own.
impl<P: Platform> HasDiagram for OverlockRw<P> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM];
}
