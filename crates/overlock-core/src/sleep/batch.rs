//! Waiters that are woken after the wait lock of their list is released.
//!
//! A batch never touches the lock that its waiters waited for: the first one that is signalled may
//! free it. Each waiter stays in the batch until it is signalled, and its node's links are the
//! batch's until then. A waiter that can give up learns of this from its node's `info`, which the
//! lock sets under the wait lock.

use crate::links::Links;
use crate::node::NodeId;
use crate::platform::Platform;
use crate::sleep::wait_list::{kick, signal};

#[derive(Debug)]
pub struct Batch<P: Platform>(Links<P>);

impl<P: Platform> Default for Batch<P> {
    fn default() -> Self {
        Batch(Links::default())
    }
}

impl<P: Platform> Batch<P> {
    /// Adds a waiter, which is in no list.
    pub fn push(&self, id: NodeId) {
        self.0.push_back(id);
    }

    /// Moves all of `waiters` here. The caller holds their wait lock.
    pub fn take_all(&self, waiters: &Links<P>) {
        while let Some(id) = waiters.first() {
            waiters.unlink(id);
            self.push(id);
        }
    }

    /// Signals `state` to all of them and wakes them, in order.
    pub fn wake(self, state: u32) {
        while let Some(id) = self.0.first() {
            // Before the signal: after it the waiter may be gone, and its node in use elsewhere.
            self.0.unlink(id);
            signal::<P>(id, state);
            kick::<P>(id);
        }
    }
}
