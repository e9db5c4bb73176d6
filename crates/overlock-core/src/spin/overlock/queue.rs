//! The sleepers of a lock: a list of queue nodes under a guard byte, and what is said under that guard.

use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use super::states::Step;
use super::{AWAKE, BUSY_NS, FREE, HAND_OVER, HANDED, NOTHING, Overlock, Policy, TURN_NS};
use crate::node::{Node, NodeId};
use crate::platform::{Atomic, Instant, Platform};

/// Values of a sleeper's `Node::state`.
pub(super) const QUEUED: u32 = 0x6f_0001;
/// Called by an unlocker, or awake and waiting for the hand-over.
pub(super) const CALLED: u32 = 0x6f_0002;
/// Asleep until the lock is handed over.
pub(super) const CLAIMING: u32 = 0x6f_0003;
/// Out of the list, and the lock is handed to it.
pub(super) const GIVEN: u32 = 0x6f_0004;

/// No sleeper stays asleep longer than this, however long the list is.
pub(super) const LONGEST_NS: u64 = 16_000_000;

/// The lock with the guard of its list held. All accesses to the guarded words are Relaxed. Unlockers that have come meanwhile
/// have marked the guard; when it is dropped their work is done, if it still is to do.
pub(super) struct Queue<'a, P: Platform, Y: Policy>(&'a Overlock<P, Y>);

impl<P: Platform, Y: Policy> Overlock<P, Y> {
    /// Takes the guard.
    pub(super) fn queue(&self) -> Queue<'_, P, Y> {
        self.guard.acquire();
        Queue(self)
    }

    /// For an unlocker that would rather not leave its work to others: takes the guard, unless its holder does not move.
    pub(super) fn queue_soon(&self) -> Option<Queue<'_, P, Y>> {
        self.guard.acquire_soon().then(|| Queue(self))
    }

    /// For an unlocker: takes the guard, or leaves the unlocker's work to whoever holds it.
    pub(super) fn queue_or_mark(&self) -> Option<Queue<'_, P, Y>> {
        if self.guard.acquire_or_mark() {
            Some(Queue(self))
        } else {
            Step::Mark.taken::<P>();
            None
        }
    }
}

impl<P: Platform, Y: Policy> Drop for Queue<'_, P, Y> {
    fn drop(&mut self) {
        if !self.0.guard.release() {
            return;
        }
        // Where somebody owns the lock, its unlock does that work.
        if self.0.locked.load(Relaxed) == FREE {
            Step::ServeMark.taken::<P>();
            self.0.wake_one();
        } else {
            Step::LeaveMark.taken::<P>();
        }
    }
}

impl<P: Platform, Y: Policy> Queue<'_, P, Y> {
    /// Drops the guard; whether an unlocker has left its work to the caller.
    pub(super) fn leave(self) -> bool {
        core::mem::ManuallyDrop::new(self).0.guard.release()
    }

    /// The sleeper that is to be woken next.
    pub(super) fn first(&self) -> Option<NodeId> {
        self.0.sleepers.first()
    }

    /// Appends `id`, and says when it shall wake by itself: a slice after the one before it.
    pub(super) fn push_back(&self, id: NodeId, now: Instant) -> Instant {
        let after = match self.0.sleepers.last() {
            Some(last) => now.max(Instant::from_nanos(
                last.node::<P>().kicked_at.load(Relaxed),
            )),
            None => now,
        };
        self.0.sleepers.push_back(id);
        let due = after.plus_nanos(TURN_NS).min(now.plus_nanos(LONGEST_NS));
        self.set_due(id.node(), now, due);
        due
    }

    /// Puts `id` before all others, and says when it shall wake by itself.
    pub(super) fn push_front(&self, id: NodeId, now: Instant) -> Instant {
        self.0.sleepers.push_front(id);
        let due = now.plus_nanos(TURN_NS);
        self.set_due(id.node(), now, due);
        due
    }

    /// `kicked_at` of a queued node holds the time at which its owner wakes by itself; `info` and `lock` say how many acquisitions there had
    /// been when it joined, and when that was.
    fn set_due(&self, node: &Node<P>, now: Instant, due: Instant) {
        node.kicked_at.store(due.as_nanos(), Relaxed);
        node.info.store(self.0.done.load(Relaxed), Relaxed);
        node.lock.store(now.as_nanos() as usize, Relaxed);
        node.state.store(QUEUED, Relaxed);
    }

    /// Whether the lock has been busy since `id` joined.
    pub(super) fn is_busy_since(&self, id: NodeId, now: Instant) -> bool {
        let node = id.node::<P>();
        let done = self
            .0
            .done
            .load(Relaxed)
            .wrapping_sub(node.info.load(Relaxed));
        // Modulo the width; clocks of two CPUs may differ a little.
        let waited = (now.as_nanos() as usize).wrapping_sub(node.lock.load(Relaxed)) as isize;
        u64::from(done) * BUSY_NS >= waited.max(0) as u64
    }

    /// Whether a sleeper has been called to a busy lock and is on its way.
    pub(super) fn someone_is_awake(&self) -> bool {
        self.0.kick.load(Relaxed) & AWAKE != 0
    }

    pub(super) fn set_awake(&self, awake: bool) {
        let awake = if awake { AWAKE } else { 0 };
        self.0.kick.store(self.0.request() | awake, Relaxed);
    }

    /// Takes `id` out, wherever it stands.
    pub(super) fn unlink(&self, id: NodeId) {
        self.0.sleepers.unlink(id);
    }

    /// Says what an unlocker has to do, in the lock and in the kick table.
    pub(super) fn set_kick(&self, kick: u8) {
        let old = self.0.request();
        let awake = self.0.kick.load(Relaxed) & AWAKE;
        self.0.kick.store(kick | awake, Relaxed);
        // OK: SeqCst for the exchange form of unlock, after the store above: an unlocker that sees the count
        // sees what it counts, or a later value. The heavy barrier, or time, orders it for the other form.
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
        let theirs = self.0.request() == HAND_OVER && self.0.chosen.load(Relaxed) != id.bits();
        if !theirs {
            self.set_kick(kick);
        }
        !theirs
    }

    /// Asks the next unlocker to hand the lock over to `id`, which waits in `state`. A claim comes before the request of a thread that is
    /// awake. False where another thread has asked, or has not taken yet what it was handed.
    pub(super) fn ask_for_hand_over(&self, id: NodeId, state: u32) -> bool {
        let other = match self.0.request() {
            HAND_OVER => NodeId::from_bits(self.0.chosen.load(Relaxed)),
            _ => None,
        };
        let yields = |other: NodeId| other.node::<P>().state.load(Relaxed) != CLAIMING;
        let free = other.is_none_or(|other| state == CLAIMING && yields(other))
            && self.0.locked.load(Relaxed) != HANDED;
        if free {
            self.0.chosen.store(id.bits(), Relaxed);
            id.node::<P>().state.store(state, Relaxed);
            if other.is_some_and(|other| other != id) {
                Step::Displace.taken::<P>();
            }
            // OK: the unlocker that sees this hands over.
            self.set_kick(HAND_OVER);
        }
        free
    }

    /// Says that the lock, which has been handed over, is for the sleeper `id`.
    pub(super) fn give(&self, id: NodeId) {
        self.unlink(id);
        self.0.chosen.store(id.bits(), Relaxed);
        if self.first().is_none() {
            self.set_kick(NOTHING);
        }
        let node = id.node::<P>();
        node.kicked_at.store(P::now().as_nanos(), Relaxed);
        // NS: release, pairs with NA: who sees this finds the lock handed over.
        node.state.store(GIVEN, Release);
    }
}
