//! The diagram of the [module's page](super) as data.

use super::Condvar;
use crate::diagram::{Diagram, Drawn, diagram};
use crate::node::NodeId;
use crate::platform::Platform;
use crate::sleep::wait_list;

diagram! {
    "condvar" {
        Join = "owner -> waiting",
        NotifyAll = "waiting -> notified",
        CallFirst = "notified -> called: at once, nobody else of the chain is",
        CallNext = "called -> owner: calls the next",
        EndChain = "called -> owner: the last of the chain",
        NotifyOne = "waiting -> called alone",
        ComeBackAlone = "called alone -> owner",
        GiveUp = "waiting -> owner: gives up",
        NotifiedAtLimit = "notified: gives up, waits for its call",
        NotifyNobody = "a notification finds nobody under the guard",
        Nap = "without a node: owner -> owner",
    }
}

impl Step {
    /// How one of the chain becomes the owner again, which calls `next`.
    pub(super) fn of_coming_back(next: Option<NodeId>) -> Self {
        match next {
            Some(_) => Step::CallNext,
            None => Step::EndChain,
        }
    }
}

impl<P: Platform> Drawn for Condvar<P> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM, &wait_list::DIAGRAM];
    const LACKS: &'static [&'static str] = &[wait_list::Step::Come.text()];
}
