//! What an unlocker does for the sleepers.

use core::sync::atomic::Ordering::{Relaxed, Release};

use super::queue::{CALLED, CLAIMING, Queue};
use super::{FREE, HAND_OVER, HANDED, KICK, NOTHING, Overlock, Policy};
use crate::node::NodeId;
use crate::platform::{Atomic, Platform};
use crate::stat::{self, Event, Latency};

impl<P: Platform, Y: Policy> Overlock<P, Y> {
    /// What an unlocker does where `kick` may be set (another lock may share the entry): after the release, so never inside the section.
    #[cold]
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
                self.kick_node(first);
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
            self.kick_node(first);
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
            self.kick_node(chosen);
        }
    }

    fn kick_node(&self, id: NodeId) {
        let kicks = &id.node::<P>().kicks;
        // Release, pairs with the acquire in `halt_while`.
        kicks.fetch_add(1, Release);
        stat::count::<P>(Event::PvKickUnlock);
        stat::timed::<P, ()>(Latency::PvLatencyKick, || P::kick(kicks));
    }
}
