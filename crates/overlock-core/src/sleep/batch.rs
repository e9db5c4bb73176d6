//! Waiters that were taken out of their list and are told so only after its guard was dropped.
//!
//! Nothing here touches the lock that they waited for: the first to be told may free it. A waiter
//! stays in the batch until it is told, so its links are the batch's own; where it can give up, the
//! lock has a mark in the node, under its guard, by which it learns that it must not.

use crate::links::Links;
use crate::node::NodeId;
use crate::platform::Platform;
use crate::sleep::wait_list::{kick, signal};

pub(super) struct Batch<P: Platform>(Links<P>);

impl<P: Platform> Batch<P> {
    pub(super) fn new() -> Self {
        Batch(Links::new())
    }

    /// Adds a waiter, which is in no list.
    pub(super) fn push(&self, id: NodeId) {
        self.0.push_back(id);
    }

    /// Moves all of `waiters` here. The caller holds their guard.
    pub(super) fn take_all(&self, waiters: &Links<P>) {
        while let Some(id) = waiters.first() {
            waiters.unlink(id);
            self.push(id);
        }
    }

    /// Tells all of them `state`, and wakes them, the first first.
    pub(super) fn wake(self, state: u32) {
        while let Some(id) = self.0.first() {
            // Before it is told: it may be gone after that, and its node in use elsewhere.
            self.0.unlink(id);
            signal::<P>(id, state);
            kick::<P>(id);
        }
    }
}
