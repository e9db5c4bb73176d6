//! Waits that another thread, or a signal handler, can end: the user's form of an interruptible
//! sleep.
//!
//! # Why no cancellation is lost
//!
//! A waiter writes the token's address into its node (CW), then looks at the token's flag (CF),
//! then halts. The canceller sets the flag (CS), then looks through all nodes in use (CN). All four
//! are sequentially consistent, so one of the two sees the other: the waiter does not halt, or the
//! canceller kicks it (see `sleep/wait_list.rs` for why the kick then counts).

use core::sync::atomic::Ordering::{Release, SeqCst};

use super::wait_list::Watched;
use crate::node::Node;
use crate::platform::{Atomic, ConstPlatform, Platform, Zero};

/// Ends the waits that were given it. Once cancelled it stays so.
///
/// Any number of threads may wait with one token, for different locks. Cancelling takes as long as
/// a look at the queue nodes of all threads: some microseconds.
#[derive(Debug)]
pub struct CancelToken<P: Platform> {
    cancelled: P::U32,
}

impl<P: ConstPlatform> CancelToken<P> {
    /// A token that nobody has cancelled.
    pub const fn new() -> Self {
        CancelToken {
            cancelled: Zero::ZERO,
        }
    }
}

impl<P: ConstPlatform> Default for CancelToken<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> CancelToken<P> {
    /// As `new`, for platforms whose atomics cannot be built in a `const`.
    pub fn create() -> Self {
        CancelToken {
            cancelled: P::U32::new(0),
        }
    }

    /// Ends all waits with this token, those that sleep and those to come. What was acquired stays
    /// acquired. Safe to call from a signal handler. What the caller did before is visible to
    /// whoever finds its wait cancelled.
    pub fn cancel(&self) {
        // CS
        self.cancelled.store(1, SeqCst);
        let token = core::ptr::from_ref(self).addr();
        for slot in &P::tables().slots[..P::slots_in_use()] {
            for node in &slot.nodes {
                // CN
                if node.cancel.load(SeqCst) == token {
                    // Release: WK of `wait_list`.
                    node.kicks.fetch_add(1, Release);
                    P::kick(&node.kicks);
                }
            }
        }
    }

    /// Makes the token one that nobody has cancelled again. A cancellation that comes at the same
    /// time may be lost, or not: whoever reuses a token knows by other means what it was
    /// cancelled for.
    pub fn reset(&self) {
        self.cancelled.store(0, SeqCst);
    }

    /// Whether the token has been cancelled; if so, with what the canceller did before.
    pub fn is_cancelled(&self) -> bool {
        // CF
        self.cancelled.load(SeqCst) != 0
    }

    /// Makes the token's cancellation kick `node`, until the result is dropped.
    pub(crate) fn watch(&self, node: &'static Node<P>) -> Watched<P> {
        Watched::new(node, core::ptr::from_ref(self).addr())
    }
}
