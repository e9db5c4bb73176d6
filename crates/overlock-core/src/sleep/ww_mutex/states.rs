//! The diagram of the [module's page](super) as data.

use super::WwMutex;
use crate::diagram::{Diagram, HasDiagram, diagram};
use crate::platform::Platform;
use crate::sleep::wait_list;

diagram! {
    "ww_mutex" {
        Lock = "(-, 0, 0) -> (n, 1, 0)",
        Unlock = "(n, 1, 0) -> (-, 0, 0)",
        UnlockAgain = "(n, 1, 0) -> (-, 0, 0): the list has just become empty",
        Wait = "(n, 1, *) -> (n, 1, 1): enters the list",
        EnterBefore = "(n, 1, 1): enters the list before younger contexts",
        LeaveAtOnce = "(n, 1, 1) -> (n, 1, *): leaves it at once",
        FindFree = "(-, 0, *) -> (m, 1, *): free by now, taken under the wait lock",
        WakeFirst = "(n, 1, 1) -> (-, 0, 1)",
        Steal = "(-, 0, 1) -> (m, 1, *): a newcomer that tries",
        WokenTakes = "(-, 0, 1) -> (m, 1, *): a woken waiter",
        Bypassed = "(m, 1, *): a woken waiter waits again",
        HandOff = "(n, 1, 1) -> (f, 1, *)",
        Granted = "(f, 1, *): the first waiter has it",
        GiveUp = "(n, 1, 1) -> (n, 1, *)",
        WoundHolder = "wound-wait: an older waiter wounds the holder",
        WoundItself = "wound-wait: past an older waiter, wounds itself",
        FindWounded = "wound-wait: a waiter is wounded, gives up",
        WakeToDie = "wait-die: wakes a waiter that has to die",
        Die = "wait-die: a waiter dies, gives up",
        Abort = "an attempt is aborted",
        AbortWithoutNode = "an attempt is aborted for want of a node",
        StartWithLock = "the next attempt: the wanted lock is held",
        StartAfterBackoff = "the next attempt: after a back-off",
    }
}

impl<P: Platform> HasDiagram for WwMutex<P> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM, &wait_list::DIAGRAM];
    // It sleeps by `sleep_until`.
    const UNREACHABLE: &'static [&'static str] = &[
        wait_list::Step::Signalled.text(),
        wait_list::Step::DeadlinePassed.text(),
        wait_list::Step::Cancelled.text(),
    ];
}
