//! What an unlocker does for the sleepers.

use core::sync::atomic::Ordering::{Relaxed, Release};

use super::deferred::Deferred;
use super::queue::{CALLED, CLAIMING, Queue};
use super::states::Step;
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

    /// Where the calling thread keeps a kick.
    pub(super) fn deferred() -> Option<&'static Deferred<P>> {
        Some(&P::slots()[P::slot()?].deferred)
    }

    /// What was kept for the caller's release of the lock, for the caller to kick.
    pub(super) fn take_deferred(&self) -> Option<NodeId> {
        Self::deferred()?.take(core::ptr::from_ref(self).addr())
    }

    /// Does what was kept for the caller's release of the lock.
    pub(super) fn kick_deferred(&self) {
        if let Some(id) = self.take_deferred() {
            kick::<P>(id);
        }
    }

    /// What an unlocker does where `kick` may be set (another lock may share the entry): after the release, so never inside the
    /// section. Does not wait: where the guard is held, its holder does it.
    pub(super) fn wake_one(&self) {
        // A stale look is as good: the announcer of a later `kick` looks at the lock itself.
        while self.request() != NOTHING && self.serve() && self.locked.load(Relaxed) == FREE {}
    }

    /// Whether another unlocker has left its work to the caller meanwhile.
    fn serve(&self) -> bool {
        let Some(queue) = self.queue_or_mark() else {
            return false;
        };
        let called = match self.request() {
            KICK => self.call_first(&queue),
            // free -> handed (I4). Release: goes on with UL's sequence for LA; where it fails, the
            // next unlock tries again.
            HAND_OVER => match self.locked.compare_exchange(FREE, HANDED, Release, Relaxed) {
                Ok(_) => {
                    Step::HandOver.taken::<P>();
                    self.call_chosen(&queue)
                }
                Err(_) => {
                    Step::HandOverLate.taken::<P>();
                    None
                }
            },
            _ => None,
        };
        let again = queue.leave();
        if again {
            Step::ServeAgain.taken::<P>();
        }
        if let Some(id) = called {
            kick::<P>(id);
        }
        again
    }

    /// Calls the first sleeper, for the caller to kick. The next unlock calls the one behind it, even if this one has not come yet, unless the
    /// lock is busy: then several that are awake are in each other's way.
    pub(super) fn call_first(&self, queue: &Queue<'_, P, Y>) -> Option<NodeId> {
        let first = queue.first()?;
        queue.unlink(first);
        let now = P::now();
        let busy = queue.is_busy_since(first, now);
        if busy || queue.first().is_none() {
            queue.set_kick(NOTHING);
        }
        queue.set_awake(busy);
        let node = first.node::<P>();
        node.kicked_at.store(now.as_nanos(), Relaxed);
        // NS: release, pairs with NA.
        node.state.store(CALLED, Release);
        let step = if busy {
            Step::CallBusy
        } else {
            Step::CallFirst
        };
        step.taken::<P>();
        Some(first)
    }

    /// Hands the lock, which the caller owns, to whoever has asked for that, or to the first sleeper. False where there
    /// is neither, or no way to know.
    #[cold]
    pub(super) fn give_away(&self) -> bool {
        // Where its holder does not move, that may be the thread that the caller has interrupted.
        let Some(queue) = self.queue_soon() else {
            Step::GiveBlocked.taken::<P>();
            return false;
        };
        self.give(queue)
    }

    /// The same, with the guard.
    pub(super) fn give(&self, queue: Queue<'_, P, Y>) -> bool {
        let asked = self.request() == HAND_OVER;
        let first = queue.first();
        if !asked && first.is_none() {
            Step::GiveToNobody.taken::<P>();
            return false;
        }
        // held -> handed (I4), before anybody is told. UL: release, pairs with LA.
        self.locked.store(HANDED, Y::RELEASE);
        let called = if asked {
            Step::GiveToAsker.taken::<P>();
            self.call_chosen(&queue)
        } else {
            Step::GiveToFirst.taken::<P>();
            first.inspect(|&first| queue.give(first))
        };
        drop(queue);
        if let Some(id) = called {
            kick::<P>(id);
        }
        true
    }

    /// The lock was handed to the chosen one: ends its request. If it sleeps, the caller has to kick it.
    fn call_chosen(&self, queue: &Queue<'_, P, Y>) -> Option<NodeId> {
        queue.set_kick(NOTHING);
        let chosen = NodeId::from_bits(self.chosen.load(Relaxed))?;
        let state = &chosen.node::<P>().state;
        // One that is awake watches `locked`.
        let sleeps = state.load(Relaxed) == CLAIMING;
        if sleeps {
            // NS: release, pairs with NA.
            state.store(CALLED, Release);
            Step::CallClaim.taken::<P>();
        }
        sleeps.then_some(chosen)
    }
}
