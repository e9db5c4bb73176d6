//! The diagram of the [module's page](super) as data.

use super::{GUARDED, QUEUED, Semaphore};
use crate::diagram::{Diagram, HasDiagram, diagram};
use crate::platform::Platform;
use crate::sleep::wait_list;

diagram! {
    "semaphore" {
        Take = "(p, 0, 0) -> (p - n, 0, 0)",
        GuardFirst = "(p, 0, 0) -> (p, 1, 1)",
        Guard = "(p, 1, 0) -> (p, 1, 1)",
        AwaitGuard = "(p, 1, 1): waits until the guard is free",
        Join = "(p, 1, 1): joins the list",
        GiveUp = "(p, 1, 1): leaves the list, at its limit",
        GrantedAtLimit = "(p, 1, 1): granted just now, at its limit",
        Release = "(p, 0, 0) -> (p + n, 0, 0)",
        ReleaseAndServe = "(p, 1, 0) -> (p + n, 1, 1)",
        ReleaseOnly = "(p, 1, 1) -> (p + n, 1, 1)",
        Grant = "(p, 1, 1) -> (p - n, 1, 1)",
        TooFew = "(p, 1, 1) -> (p, 1, 0)",
        NobodyLeft = "(p, 1, 1) -> (p, 0, 0)",
        ServeAgain = "(p, 1, 1): more permits by now, serves again",
        BackoffSleep = "without a node: backs off",
    }
}

impl Step {
    /// How permits are taken, where there are `enough`, or the guard.
    pub(super) fn of_taking(seen: u32, enough: bool) -> Self {
        if enough {
            Step::Take
        } else if seen & QUEUED == 0 {
            Step::GuardFirst
        } else {
            Step::Guard
        }
    }

    /// How the guard is dropped.
    pub(super) fn of_serving(queued: u32) -> Self {
        if queued == 0 {
            Step::NobodyLeft
        } else {
            Step::TooFew
        }
    }

    /// How permits are released.
    pub(super) fn of_releasing(seen: u32) -> Self {
        match seen & (QUEUED | GUARDED) {
            0 => Step::Release,
            QUEUED => Step::ReleaseAndServe,
            _ => Step::ReleaseOnly,
        }
    }
}

impl<P: Platform> HasDiagram for Semaphore<P> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM, &wait_list::DIAGRAM];
    const UNREACHABLE: &'static [&'static str] = &[wait_list::Step::Come.text()];
}
