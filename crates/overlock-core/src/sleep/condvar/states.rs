//! The diagram of the [module's page](super) as data.

use super::Condvar;
use crate::diagram::{Diagram, HasDiagram, diagram};
use crate::platform::Platform;
use crate::sleep::wait_list;

diagram! {
    "condvar" {
        Join = "owner -> waiting",
        JoinPolling = "owner -> waiting: and polls",
        Sleep = "waiting: has polled in vain",
        Notify = "waiting -> notified",
        Wake = "notified -> woken",
        WakePolling = "notified -> woken: while it polls",
        Requeue = "requeued, awake -> woken: a sleeper of its lock",
        Awake = "requeued -> awake",
        Return = "woken -> owner",
        Leave = "waiting -> leaving",
        TooLate = "notified: its limit is reached, it waits to be woken",
        PassBy = "leaving: skipped by a notification",
        BackoffSleep = "without a node: owner -> owner",
    }
}

impl<P: Platform> HasDiagram for Condvar<P> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM, &wait_list::DIAGRAM];
}
