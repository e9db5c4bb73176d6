//! The MCS lock: a queue in which each waiter polls a cache line of its own.
//!
//! Mellor-Crummey's and Scott's lock of 1991, in the classic form that the fast queue spinlock was
//! measured against. The lock is the tail of a queue of nodes, of which the first is the owner's.
//! An unlock writes to the next node, and to no other waiter's memory. That scales with the number
//! of CPUs, but the order is strict and no waiter sleeps: a waiter that has lost its CPU holds up
//! all waiters behind it.
//!
//! # Layout
//!
//! ```text
//!  lock:  +---------------+---------------+       node:  +-----------------+-----------------+
//!         | tail          | spare_next    |              | next            | wait            |
//!         | last arrival  | link of SPARE |              | successor       | WAITING / OWNER |
//!         +---------------+---------------+              +-----------------+-----------------+
//! ```
//!
//! `tail` is 0 (free), [`SPARE`], or the 16-bit name of a [node](overlock_core::node), where the
//! published lock has a pointer. An owner uses its node from lock to unlock, so a thread that holds
//! four such locks has none left for a fifth.
//!
//! # States
//!
//! As (tail; nodes from the owner's to the last):
//!
//! ```text
//! (0; )             --lock-->           (a; a)            ours at once
//! (b; a..b)         --lock-->           (c; a..b  c)      c has arrived, and ...
//! (c; a..b  c)      --link-->           (c; a..b->c)      ... can be found; it waits ...
//! (c; c..)                                                ... until it is the owner
//! (a; a)            --unlock-->         (0; )             no thread waits
//! (b; a  b)         --unlock-->         (b; a->b)         b had yet to link: a waits for that
//! (c; a->b..c)      --unlock-->         (c; b..c)         b is the owner
//! (0; )             --lock, no node-->  (SPARE; SPARE)    else as any node, but SPARE ...
//! (c; SPARE->b..c)  --unlock-->         (c; SPARE  b..c)  ... clears its link before its handoff
//! ```
//!
//! # Invariants
//!
//! - N1: a node is in at most one queue, once: it belongs to the guard of one acquisition.
//! - N2: a node's guard ends only after no thread can reach the node through the queue. The tail no
//!   longer names it. Its successor, if it has one, has linked: a successor's last access to the
//!   node before its own.
//! - N3: a waiter becomes the owner by its predecessor's handoff alone.
//! - N4: `spare_next` is 0 unless SPARE is in the queue.
//!
//! # Orderings
//!
//! - MT, the exchange of the tail, acquire and release, pairs with itself: a node is ready before
//!   its name can be seen. The release in the unlock's exchange to 0 pairs with the acquire of the
//!   next owner's: what happened under the lock.
//! - MN, the release store of the predecessor's `next`, pairs with the acquire load in `hand_off`:
//!   our own `wait = WAITING` comes before its `wait = OWNER`. (Without it a late initialisation
//!   undoes the handoff, and the waiter hangs: a known bug of such locks on weakly ordered
//!   machines.)
//! - MH, the release store of `wait = OWNER`, pairs with the acquire load of the waiter: what
//!   happened under the lock.
//!
//! # Fast and slow path
//!
//! The fast path is one exchange of the tail that finds 0. The slow path links the node to its
//! predecessor's and polls it. An unlock exchanges the tail for 0, or stores OWNER to the
//! successor's node.
//!
//! # Why no handoff is lost
//!
//! No waiter sleeps. An owner that finds no link exchanges the tail for 0, which succeeds only
//! where no thread has arrived. After a failure the link of an arrival must follow, so the owner
//! waits for it. A thread may be in a signal handler between arrival and link; then the rules of
//! [`hemlock`](super::hemlock) for handlers apply.
//!
//! # Without a node
//!
//! A fifth context, a fifth lock held, or a thread without a slot has no node. It waits until the
//! lock is free, and enters the empty queue with the link in the lock itself, the spare. That is
//! correct, and counted ([`Event::LockNoNode`]), but unfair: such a thread may starve while others
//! keep the queue from running empty.
//!
//! # Where this deviates from the published form
//!
//! - Nodes are named by index, and are immortal: a stale name, as `is_contended` may read, leads to
//!   another thread's node, never to freed memory.
//! - The published owner writes nothing to its own node. Here it writes OWNER to it, so that any
//!   thread can tell from the last node whether its thread waits.
//! - The spare.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use overlock_core::facts::{Bound, Facts, HasFacts, NeedsNode, Slow};
use overlock_core::node::{NodeGuard, NodeId, take_without_node};
use overlock_core::platform::{Atomic, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock};
use overlock_core::stat::{self, Event};

/// The MCS lock: see the [module's page](self). 8 bytes.
#[derive(Debug)]
pub struct Mcs<P: Platform> {
    tail: P::U32,
    spare_next: P::U32,
}

/// An acquisition of an [`Mcs`] lock: the owner's node in the queue.
///
/// Not `Send`: the node belongs to the thread that locked. Forgetting it leaves the lock locked and
/// the node in use for good; the thread's slot then goes to no other thread.
#[derive(Debug)]
#[must_use = "the lock stays locked until its token is passed to `unlock`"]
pub struct McsToken<P: Platform>(
    /// `None`: the lock's spare.
    Option<NodeGuard<P>>,
);

/// The tail's value while the last in the queue has no node. No node has this name.
pub const SPARE: u32 = 1;

const OWNER: u32 = 0;
const WAITING: u32 = 1;

impl<P: Platform> Default for Mcs<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> ConstLock for Mcs<P> {
    const INIT: Self = Self::new();
}

impl<P: Platform> Mcs<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Mcs {
            tail: Atomic::ZERO,
            spare_next: Atomic::ZERO,
        }
    }

    /// Links behind `before` and waits to become the owner.
    #[cold]
    fn wait(&self, before: u32, guard: &NodeGuard<P>) {
        stat::count::<P>(Event::LockSlowpath);
        let link = match node_named(before) {
            Some(id) => &id.node::<P>().next,
            None => &self.spare_next,
        };
        // (c; a..b  c) -> (c; a..b->c). MN: release, pairs with the load in `hand_off`. After
        // this, b is not ours to touch (N2).
        link.store(name(guard), Release);
        // MH: acquire, pairs with the handoff.
        let _ = P::wait_until(&guard.node().wait, Acquire, Spin::Forever, |wait: u32| {
            wait == OWNER
        });
    }

    #[cold]
    fn lock_with_spare(&self) -> McsToken<P> {
        take_without_node::<P, _>(&self.tail, |tail| tail == 0, || self.enter_empty(None))
    }

    /// Enters the queue where it is empty.
    #[inline]
    fn enter_empty(&self, guard: Option<NodeGuard<P>>) -> Option<McsToken<P>> {
        let name = match &guard {
            Some(guard) => {
                guard.node().next.store(0, Relaxed);
                guard.node().wait.store(OWNER, Relaxed);
                name(guard)
            }
            None => SPARE, // ready (N4)
        };
        // (0; ) -> (a; a). MT: acquire and release.
        if self
            .tail
            .compare_exchange(0, name, AcqRel, Relaxed)
            .is_err()
        {
            return None;
        }
        Some(McsToken(guard))
    }

    /// Empties the queue, if the owner's `name` is still its tail. Returns whether it was.
    #[inline(always)]
    fn empty(&self, name: u32) -> bool {
        // (a; a) -> (0; ). Release, pairs with MT of the next owner.
        self.tail
            .compare_exchange(name, 0, Release, Relaxed)
            .is_ok()
    }

    /// Makes the waiter behind the owner's `link` the owner.
    ///
    /// Does not panic: a wait without a limit returns `Ok`, and a link that is not 0 is a name that
    /// `wait` has stored. SPARE enters an empty queue only, and is never linked.
    #[cold]
    fn hand_off(&self, link: &P::U32) {
        // MN: acquire, pairs with the successor's link, which must come: the tail has moved on.
        let next = P::wait_until(link, Acquire, Spin::Forever, |next: u32| next != 0)
            .ok()
            .and_then(node_named)
            .expect("the link of an MCS queue names a node");
        if core::ptr::eq(link, &self.spare_next) {
            // N4. Before the handoff: after it the lock may be freed, and SPARE in use again.
            self.spare_next.store(0, Relaxed);
        }
        // (c; a->b..c) -> (c; b..c). MH: release, pairs with the successor's load.
        next.node::<P>().wait.store(OWNER, Release);
    }
}

fn name<P: Platform>(guard: &NodeGuard<P>) -> u32 {
    u32::from(guard.id().bits())
}

/// The node that a tail or a link names; `None` for 0 and for [`SPARE`].
fn node_named(name: u32) -> Option<NodeId> {
    NodeId::from_bits(name as u16)
}

impl<P: Platform> HasFacts for Mcs<P> {
    const FACTS: Facts = Facts {
        about: "classic queue, each waiter on its own line",
        bound: Bound::Order,
        node: NeedsNode::Always,
        slow: Slow::Queued,
        ..Facts::SPINNING
    };
}

// SAFETY: a thread owns the lock after it entered an empty queue, by an exchange of the tail that
// only one can win, or after the last owner's handoff to it (N3). That happens once for each node
// in the queue, in its predecessor's unlock.
unsafe impl<P: Platform> RawLock for Mcs<P> {
    type Token = McsToken<P>;

    const NAME: &'static str = "mcs";

    #[inline]
    fn lock(&self) -> McsToken<P> {
        let Some(guard) = NodeGuard::<P>::new() else {
            return self.lock_with_spare();
        };
        let node = guard.node();
        node.next.store(0, Relaxed);
        node.wait.store(WAITING, Relaxed);
        // (b; a..b) -> (c; a..b  c), or (0; ) -> (c; c). MT: acquire and release.
        match self.tail.swap(name(&guard), AcqRel) {
            0 => {
                node.wait.store(OWNER, Relaxed);
            }
            before => self.wait(before, &guard),
        }
        McsToken(Some(guard))
    }

    #[inline]
    fn try_lock(&self) -> Option<McsToken<P>> {
        if self.tail.load(Relaxed) != 0 {
            return None;
        }
        self.enter_empty(NodeGuard::new())
    }

    #[inline]
    unsafe fn unlock(&self, token: McsToken<P>) {
        let (name, link) = match &token.0 {
            Some(guard) => (name(guard), &guard.node().next),
            None => (SPARE, &self.spare_next),
        };
        // Relaxed: `hand_off` loads it again, and acquires.
        if link.load(Relaxed) != 0 || !self.empty(name) {
            self.hand_off(link);
        }
        // Here the token's guard ends, not before (N2). It touches the node's slot, not the lock.
    }

    fn is_locked(&self) -> bool {
        self.tail.load(Relaxed) != 0
    }

    /// Whether the last in the queue waits. Misses threads that wait without a node.
    fn is_contended(&self) -> bool {
        node_named(self.tail.load(Relaxed))
            .is_some_and(|last| last.node::<P>().wait.load(Relaxed) == WAITING)
    }
}

#[cfg(test)]
mod tests;
