//! What an unlocker does for the sleepers.

use core::sync::atomic::Ordering::{Relaxed, Release};

use super::queue::{CALLED, CLAIMING, Queue};
use super::{FREE, HAND_OVER, HANDED, KICK, NOTHING, Overlock, Policy};
use crate::node::NodeId;
use crate::platform::{Atomic, Platform};
use crate::sleep::wait_list::kick;

impl<P: Platform, Y: Policy> Overlock<P, Y> {
    /// What an unlocker does where its entry of the kick table is not 0.
    #[cold]
    pub(super) fn after_unlock(&self) {
        self.kick_deferred();
        self.wake_one();
    }

    /// Keeps a kick until the caller, the owner, unlocks. False where it keeps another one already, or has no slot.
    pub(super) fn defer(&self, id: NodeId) -> bool {
        let Some(slot) = P::slot() else {
            return false;
        };
        let deferred = &P::slots()[slot].deferred;
        let room = deferred.lock.load(Relaxed) == 0;
        if room {
            deferred.node.store(id.bits(), Relaxed);
            deferred
                .lock
                .store(core::ptr::from_ref(self).addr(), Relaxed);
            // Relaxed: for the caller itself.
            self.kicks().fetch_add(1, Relaxed);
        }
        room
    }

    /// Does what was [kept](Self::defer) for the caller's unlock, which was just now.
    pub(super) fn kick_deferred(&self) {
        let Some(slot) = P::slot() else {
            return;
        };
        let deferred = &P::slots()[slot].deferred;
        if deferred.lock.load(Relaxed) != core::ptr::from_ref(self).addr() {
            return;
        }
        let id = NodeId::from_bits(deferred.node.load(Relaxed));
        deferred.lock.store(0, Relaxed);
        self.kicks().fetch_sub(1, Relaxed);
        if let Some(id) = id {
            kick::<P>(id);
        }
    }

    /// What an unlocker does where `kick` may be set (another lock may share the entry): after the release, so never inside the section.
    pub(super) fn wake_one(&self) {
        // A stale look is as good: the announcer of a later `kick` looks at the lock itself.
        if self.request() == NOTHING {
            return;
        }
        let queue = self.queue();
        match self.request() {
            KICK => {
                queue.set_kick(NOTHING);
                let Some(first) = queue.first() else {
                    return;
                };
                queue.unlink(first);
                queue.set_awake(true);
                let node = first.node::<P>();
                node.kicked_at.store(P::now().as_nanos(), Relaxed);
                // NS: release, pairs with NA.
                node.state.store(CALLED, Release);
                drop(queue);
                kick::<P>(first);
            }
            HAND_OVER => {
                // free -> handed (I4). Release: goes on with UL's sequence for LA; where it fails, the
                // next unlock tries again.
                if self
                    .locked
                    .compare_exchange(FREE, HANDED, Release, Relaxed)
                    .is_err()
                {
                    return;
                }
                self.call_chosen(queue);
            }
            _ => {}
        }
    }

    /// Hands the lock, which the caller owns, to whoever has asked for that, or to the first sleeper. False where there
    /// is neither.
    #[cold]
    pub(super) fn give_away(&self) -> bool {
        let queue = self.queue();
        let asked = self.request() == HAND_OVER;
        let first = queue.first();
        if !asked && first.is_none() {
            return false;
        }
        // held -> handed (I4), before anybody is told. UL: release, pairs with LA.
        self.locked.store(HANDED, Y::RELEASE);
        if asked {
            self.call_chosen(queue);
        } else if let Some(first) = first {
            queue.give(first);
            drop(queue);
            kick::<P>(first);
        }
        true
    }

    /// The lock was handed to the chosen one: ends its request, and wakes it if it sleeps.
    fn call_chosen(&self, queue: Queue<'_, P, Y>) {
        queue.set_kick(NOTHING);
        let Some(chosen) = NodeId::from_bits(self.chosen.load(Relaxed)) else {
            return;
        };
        let state = &chosen.node::<P>().state;
        // One that is awake watches `locked`.
        if state.load(Relaxed) == CLAIMING {
            // NS: release, pairs with NA.
            state.store(CALLED, Release);
            drop(queue);
            kick::<P>(chosen);
        }
    }
}
