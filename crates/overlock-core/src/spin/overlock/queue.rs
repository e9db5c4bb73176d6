//! The sleepers of a lock: a list of queue nodes under a guard byte.
//!
//! Only threads that are about to sleep, have just woken, or are about to wake another one come here,
//! and each holds the guard for a few dozen instructions.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::{HAND_OVER, HANDED, NOTHING, Overlock, Policy, TURN_NS};
use crate::node::{Node, NodeId};
use crate::platform::{Atomic, Instant, Platform, Spin};

/// Values of a sleeper's `Node::state`.
pub(super) const QUEUED: u32 = 0x6f_0001;
/// Called by an unlocker, or awake and waiting for the hand-over.
pub(super) const CALLED: u32 = 0x6f_0002;
/// Asleep until the lock is handed over.
pub(super) const CLAIMING: u32 = 0x6f_0003;

/// No sleeper stays asleep longer than this, however long the list is.
const LONGEST_NS: u64 = 16_000_000;

/// Looks at the guard before a waiter for it gives its CPU away: the holder has lost its own.
const GUARD_TURNS: u32 = 1000;
const GUARD_SLEEP_NS: u64 = 50_000;

/// The guard of the list, held. All accesses to the list's words are Relaxed: QA and QR order them.
pub(super) struct Queue<'a, P: Platform, Y: Policy>(&'a Overlock<P, Y>);

impl<P: Platform, Y: Policy> Overlock<P, Y> {
    /// Takes the guard.
    pub(super) fn queue(&self) -> Queue<'_, P, Y> {
        loop {
            // QA: acquire, pairs with QR.
            if self.guard.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                return Queue(self);
            }
            let turns = Spin::Turns(GUARD_TURNS);
            if P::wait_until(&self.guard, Relaxed, turns, |held: u8| held == 0).is_err() {
                nap::<P>(GUARD_SLEEP_NS);
            }
        }
    }
}

/// Gives the CPU away for about `nanos` nanoseconds.
pub(super) fn nap<P: Platform>(nanos: u64) {
    let nobody = P::U32::new(0);
    P::halt(&nobody, 0, Some(P::now().plus_nanos(nanos)));
}

impl<P: Platform, Y: Policy> Drop for Queue<'_, P, Y> {
    fn drop(&mut self) {
        // QR: release, pairs with QA.
        self.0.guard.store(0, Release);
    }
}

impl<P: Platform, Y: Policy> Queue<'_, P, Y> {
    /// The sleeper that is to be woken next.
    pub(super) fn first(&self) -> Option<NodeId> {
        NodeId::from_bits(self.0.head.load(Relaxed))
    }

    /// Appends `id`, and says when it shall wake by itself: a slice after the one before it.
    pub(super) fn push_back(&self, id: NodeId, now: Instant) -> Instant {
        let node = id.node::<P>();
        let last = NodeId::from_bits(self.0.tail.load(Relaxed));
        node.next.store(0, Relaxed);
        node.wait
            .store(last.map_or(0, |last| last.bits().into()), Relaxed);
        let after = match last {
            Some(last) => {
                let last = last.node::<P>();
                last.next.store(id.bits().into(), Relaxed);
                now.max(Instant::from_nanos(last.kicked_at.load(Relaxed)))
            }
            None => {
                self.0.head.store(id.bits(), Relaxed);
                now
            }
        };
        self.0.tail.store(id.bits(), Relaxed);
        let due = after.plus_nanos(TURN_NS).min(now.plus_nanos(LONGEST_NS));
        Self::set_due(node, due);
        due
    }

    /// Puts `id` before all others, and says when it shall wake by itself.
    pub(super) fn push_front(&self, id: NodeId, now: Instant) -> Instant {
        let node = id.node::<P>();
        node.wait.store(0, Relaxed);
        match self.first() {
            Some(first) => {
                node.next.store(first.bits().into(), Relaxed);
                first.node::<P>().wait.store(id.bits().into(), Relaxed);
            }
            None => {
                node.next.store(0, Relaxed);
                self.0.tail.store(id.bits(), Relaxed);
            }
        }
        self.0.head.store(id.bits(), Relaxed);
        let due = now.plus_nanos(TURN_NS);
        Self::set_due(node, due);
        due
    }

    /// `kicked_at` of a queued node holds the time at which its owner wakes by itself.
    fn set_due(node: &Node<P>, due: Instant) {
        node.kicked_at.store(due.as_nanos(), Relaxed);
        node.state.store(QUEUED, Relaxed);
    }

    /// Takes `id` out, wherever it stands.
    pub(super) fn unlink(&self, id: NodeId) {
        let node = id.node::<P>();
        let before = NodeId::from_bits(node.wait.load(Relaxed) as u16);
        let after = NodeId::from_bits(node.next.load(Relaxed) as u16);
        let bits = |id: Option<NodeId>| id.map_or(0, NodeId::bits);
        match before {
            Some(before) => before.node::<P>().next.store(bits(after).into(), Relaxed),
            None => self.0.head.store(bits(after), Relaxed),
        }
        match after {
            Some(after) => after.node::<P>().wait.store(bits(before).into(), Relaxed),
            None => self.0.tail.store(bits(before), Relaxed),
        }
    }

    /// Says what an unlocker has to do, in the lock and in the kick table.
    pub(super) fn set_kick(&self, kick: u8) {
        let old = self.0.kick.load(Relaxed);
        self.0.kick.store(kick, Relaxed);
        // OK: SeqCst for the exchange form of unlock, after the store above: an unlocker that sees the count
        // sees what it counts, or a later value. The heavy barrier orders it for the other form.
        match (old, kick) {
            (NOTHING, NOTHING) => {}
            (NOTHING, _) => _ = self.0.kicks().fetch_add(1, SeqCst),
            (_, NOTHING) => _ = self.0.kicks().fetch_sub(1, SeqCst),
            _ => {}
        }
    }

    /// Sets `kick`, unless another thread than the caller, `id`, has asked for the hand-over: then that comes
    /// first. Whether it did.
    pub(super) fn ask_for(&self, kick: u8, id: NodeId) -> bool {
        let theirs =
            self.0.kick.load(Relaxed) == HAND_OVER && self.0.chosen.load(Relaxed) != id.bits();
        if !theirs {
            self.set_kick(kick);
        }
        !theirs
    }

    /// Asks the next unlocker to hand the lock over to `id`, which waits in `state`. False where another
    /// thread has asked, or has not taken yet what it was handed.
    pub(super) fn ask_for_hand_over(&self, id: NodeId, state: u32) -> bool {
        let free = self.0.kick.load(Relaxed) != HAND_OVER && self.0.locked.load(Relaxed) != HANDED;
        if free {
            self.0.chosen.store(id.bits(), Relaxed);
            id.node::<P>().state.store(state, Relaxed);
            // OK: the unlocker that sees this hands over.
            self.set_kick(HAND_OVER);
        }
        free
    }

    /// Whether a sleeper has been called and is on its way to the lock.
    pub(super) fn someone_is_awake(&self) -> bool {
        self.0.awake.load(Relaxed) != 0
    }

    pub(super) fn set_awake(&self, awake: bool) {
        self.0.awake.store(awake.into(), Relaxed);
    }
}
