//! The diagram of the [module's page](super) as data.

use super::{ASLEEP, OverlockRwPosix};
use crate::diagram::{Diagram, Drawn, diagram};
use crate::platform::Platform;

diagram! {
    "overlock_rw_posix" {
        Read = "(0, n) -> (0, n+1)",
        ReadInVain = "(w, n) -> (w, n+1): written, closed or full: leaves again",
        TryRead = "(0, n) -> (0, n+1): an attempt",
        ReadPast = "(0, n) -> (0, n+1): at the gate, or past it",
        ReadBeside = "(1, n) -> (1, n+1): waits",
        Share = "(0, n): who waited beside the writer has a share",
        ReaderSleeps = "a reader at the gate: asleep = 1",
        PasserSleeps = "a reader that passes: passing = 1",
        ReaderGivesUp = "(w, n) -> (w, n-1): a reader at its limit",
        Leave = "(w, n) -> (w, n-1)",
        LeaveKicks = "(w, 1) -> (w, 0): asleep, kicks",
        Write = "(0, 0) -> (1, 0)",
        WriteAtGate = "(0, 0) -> (1, 0): at the gate",
        WriterSleeps = "a writer at the gate: asleep = 1",
        WriterCloses = "a writer at the gate: asleep = 1, closed = 1",
        WriterGivesUp = "a writer at the gate: at its limit",
        Unlock = "(1, n) -> (0, n)",
        UnlockKicks = "(1, n) -> (0, n): asleep, kicks one",
        UnlockKicksAll = "(1, n) -> (0, n): passing, kicks all",
    }
}

impl Step {
    /// How a reader goes to sleep that says so with `flag`.
    pub(super) fn of_reader(flag: u32) -> Self {
        if flag == ASLEEP {
            Step::ReaderSleeps
        } else {
            Step::PasserSleeps
        }
    }
}

/// The gate is the recommended lock, whole, and drawn there.
impl<P: Platform> Drawn for OverlockRwPosix<P> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM];
}
