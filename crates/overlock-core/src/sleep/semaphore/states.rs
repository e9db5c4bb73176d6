//! The diagram of the [module's page](super) as data.

use super::{QUEUED, Semaphore, WAIT_LOCK};
use crate::diagram::{Diagram, HasDiagram, diagram};
use crate::platform::Platform;
use crate::sleep::wait_list;

diagram! {
    "semaphore" {
        Take = "(p, 0, 0) -> (p - n, 0, 0)",
        LockListFirst = "(p, 0, 0) -> (p, 1, 1)",
        LockList = "(p, 1, 0) -> (p, 1, 1)",
        AwaitList = "(p, 1, 1): waits until the wait lock is free",
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
    }
}

impl Step {
    /// The transition that takes permits, where there are `enough`, or the wait lock.
    pub(super) fn of_taking(seen: u32, enough: bool) -> Self {
        if enough {
            Step::Take
        } else if seen & QUEUED == 0 {
            Step::LockListFirst
        } else {
            Step::LockList
        }
    }

    /// The transition that releases the wait lock.
    pub(super) fn of_serving(queued: u32) -> Self {
        if queued == 0 {
            Step::NobodyLeft
        } else {
            Step::TooFew
        }
    }

    /// The transition that releases permits.
    pub(super) fn of_releasing(seen: u32) -> Self {
        match seen & (QUEUED | WAIT_LOCK) {
            0 => Step::Release,
            QUEUED => Step::ReleaseAndServe,
            _ => Step::ReleaseOnly,
        }
    }
}

impl<P: Platform> HasDiagram for Semaphore<P> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM, &wait_list::DIAGRAM];
    const UNREACHABLE: &'static [&'static str] = &[wait_list::Step::ConditionHolds.text()];
}
