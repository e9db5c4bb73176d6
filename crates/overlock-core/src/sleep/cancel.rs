//! Cancellation: another thread, or a signal handler, ends a wait. The user-space form of an
//! interruptible sleep.
//!
//! # Why no cancellation is lost
//!
//! A waiter writes the token's address into its node (CW), then loads the token's flag (CF), then
//! halts. The canceller sets the flag (CS), then searches all nodes in use (CN). All four are
//! `SeqCst`, so the waiter does not halt, or the canceller kicks it. `sleep/wait_list.rs` explains
//! why that kick counts even before the halt.

use core::sync::atomic::Ordering::SeqCst;

use super::wait_list::{self, Watched};
use crate::node::Node;
use crate::platform::{Atomic, Platform};

/// Ends the waits that use it. A cancelled token stays cancelled until it is reset.
///
/// Any number of threads may wait with one token, for different locks. A cancellation searches the
/// queue nodes of all threads, which takes some microseconds.
#[derive(Debug)]
pub struct CancelToken<P: Platform> {
    cancelled: P::U32,
}

impl<P: Platform> Default for CancelToken<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> CancelToken<P> {
    /// Returns a token that is not cancelled.
    pub const fn new() -> Self {
        CancelToken {
            cancelled: Atomic::ZERO,
        }
    }

    /// Ends all waits with this token, present and future ones. Acquired locks stay acquired. Safe
    /// to call from a signal handler. Everything that the caller did before is visible to a thread
    /// whose wait is cancelled.
    pub fn cancel(&self) {
        // CS
        self.cancelled.store(1, SeqCst);
        let token = core::ptr::from_ref(self).addr();
        for slot in P::tables().first(P::slots_in_use()) {
            for node in &slot.nodes {
                // CN
                if node.cancel.load(SeqCst) == token {
                    wait_list::kick_node::<P>(node);
                }
            }
        }
    }

    /// Resets the token to not cancelled. A cancellation at the same time may be lost or not, so a
    /// program that reuses a token needs another record of what was cancelled.
    pub fn reset(&self) {
        self.cancelled.store(0, SeqCst);
    }

    /// Whether the token is cancelled. If so, everything that the canceller did before is visible.
    pub fn is_cancelled(&self) -> bool {
        // CF
        self.cancelled.load(SeqCst) != 0
    }

    /// Registers `node`, so that a cancellation kicks it, until the result is dropped.
    pub fn watch(&self, node: &'static Node<P>) -> Watched<P> {
        Watched::new(node, core::ptr::from_ref(self).addr())
    }
}
