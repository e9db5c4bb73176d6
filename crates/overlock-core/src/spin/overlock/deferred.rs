//! A kick that an owner keeps until it has unlocked, in its thread's slot.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::kick_entry;
use super::states::Step;
use crate::node::NodeId;
use crate::platform::{Atomic, ConstPlatform, Platform, Zero};
use crate::sleep::wait_list::kick;

/// A kick that the thread owes to `node`, for when it releases the lock at the address `lock`; 0: none. That lock's entry of the
/// kick table counts it.
#[derive(Debug)]
pub(crate) struct Deferred<P: Platform> {
    lock: P::Usize,
    node: P::U16,
}

impl<P: ConstPlatform> Deferred<P> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new one, as intended
    pub(crate) const INIT: Self = Deferred {
        lock: Zero::ZERO,
        node: Zero::ZERO,
    };
}

impl<P: Platform> Deferred<P> {
    pub(crate) fn new() -> Self {
        Deferred {
            lock: P::Usize::new(0),
            node: P::U16::new(0),
        }
    }

    /// Keeps a kick for the release of `lock`. False where there is another one.
    pub(super) fn keep(&self, lock: usize, id: NodeId) -> bool {
        let room = self.lock.load(Relaxed) == 0;
        if room {
            self.node.store(id.bits(), Relaxed);
            self.lock.store(lock, Relaxed);
            // For the thread itself; SeqCst as all that change the counts, so that no look that others owe each other is at an older value.
            kick_entry::<P>(lock).fetch_add(1, SeqCst);
            Step::Defer.taken::<P>();
        }
        room
    }

    /// The owner of `lock` has released it, or is about to: kicks if that is still owed.
    pub(super) fn kick(&self, lock: usize) {
        if let Some(id) = self.take(lock) {
            kick::<P>(id);
        }
    }

    /// What is owed for the release of `lock`, for the caller to [kick].
    pub(super) fn take(&self, lock: usize) -> Option<NodeId> {
        let id = NodeId::from_bits(self.node.load(Relaxed));
        // A handler that interrupts this may have got the lock, released it, and done this.
        let owed = self.lock.load(Relaxed) == lock
            && self
                .lock
                .compare_exchange(lock, 0, Relaxed, Relaxed)
                .is_ok();
        if owed {
            kick_entry::<P>(lock).fetch_sub(1, SeqCst);
            Step::KickDeferred.taken::<P>();
        }
        id.filter(|_| owed)
    }

    /// Whoever was to be kicked is gone, by a fork.
    pub(crate) fn forget(&self) {
        self.lock.store(0, Relaxed);
    }

    /// The thread exits: kicks now, which is early where a guard was forgotten or is dropped later, and does no harm.
    pub(crate) fn kick_whatever_is_owed(&self) {
        let lock = self.lock.load(Relaxed);
        if lock != 0 {
            self.kick(lock);
        }
    }
}
