//! The queued spinlock: first come, first served, in 4 bytes, each waiter on a cache line of its
//! own.
//!
//! The base of the paravirtual queued spinlock (Long, Zijlstra, 2013 to 2015): the native form of
//! [`pv_queued`](super::pv_queued) and [`hybrid`](super::hybrid). It is an MCS queue whose tail is
//! the name of a node instead of a pointer. Only the head of the queue polls the lock. A single
//! waiter needs no queue node: it sets the pending bit and polls the lock itself. A waiter that has
//! lost its CPU blocks all waiters behind it: under overcommit this lock collapses.
//!
//! # Layout
//!
//! ```text
//!  31        18 17   16 15      8 7       0
//! +------------+-------+---------+---------+
//! | slot + 1   | ctx   | pending | locked  |
//! +------------+-------+---------+---------+
//!  `----- tail -------'
//! ```
//!
//! The tail is the [`NodeId`] of the last waiter in the queue, 0 for none; pending and locked are 0
//! or 1.
//!
//! # States
//!
//! (tail, pending, locked); `n` our node, `*` anything:
//!
//! ```text
//!              lock                                  unlock: (*, *, 1) -> (*, *, 0)
//!                |
//!        .-------+-----------------------.
//!        v       v                       v
//!  (0,0,0)   (0,0,1)                   others
//!     |         |                        |
//!     |    (0,1,1)  pending: we poll   (n,*,*)  queued: we poll our node
//!     |         |   the lock             |       until we are the head
//!     |    (0,1,0)  it is free         (*,0,0)  head: the lock is free
//!     |         |                        |
//!     '---->(0,0,1)<---------------------+---->(m,*,1)  others wait behind us:
//!                                                       make the next one the head
//! ```
//!
//! # Invariants
//!
//! - I1: a tail never goes while pending is set. Only the head takes its own tail out, by an
//!   exchange of the whole word that expects pending clear. So a thread that sets pending and
//!   *then* sees no tail knows that there is no head, and that none can get past its pending bit.
//! - I2: only the thread that set pending clears it.
//! - I3: while the queue has a head, and once pending is clear, only the head takes the lock:
//!   newcomers see its tail, and a pending waiter came first or backs off (I1). So one load that
//!   finds the lock free is enough, and a store takes it.
//! - I4: a node is used by one queue at a time: its context is free again only after its successor
//!   was made the head.
//! - I5: waiters in the queue are served in the order of their exchanges of the tail. One pending
//!   waiter may come before the first of them: it came earlier.
//! - I6: a head waits for a link only after it has seen another's tail in the place of its own. A
//!   set pending bit does not mean that its thread will queue: that thread may have no node.
//!
//! # Orderings
//!
//! - QU, the release store of locked = 0, pairs with QA, the acquire load (or exchange) by which
//!   the next owner finds the lock free.
//! - QP, the exchange of the tail, releases the fresh node; the QP that follows it acquires it, so
//!   a predecessor's `next = 0` comes before its successor's `next = n`.
//! - QN, the release store of the predecessor's `next`, pairs with the acquire load of the head
//!   that hands off: our own `wait = 0` comes before its `wait = 1`. (Without it a late
//!   initialisation undoes the handoff, and the waiter hangs: a bug of 2018.)
//! - QH, the release store of `wait = 1`, pairs with the acquire load of the waiter. It carries its
//!   predecessor's `locked = 1`: without it the new head may see the lock free as it was before.
//!
//! # Fast and slow path
//!
//! The fast path is one exchange of (0, 0, 0) for (0, 0, 1). A second thread sets pending and polls
//! the word (`lock_pending`). All others queue (`lock_queued`); without a node they poll until the
//! lock is free (`lock_without_node`). An unlock is one store to the locked byte.
//!
//! # Why no wake-up is lost
//!
//! No waiter sleeps. Each waiter polls a word with one writer, which must write it. The pending
//! waiter and the head poll the locked byte, which the owner clears. The others poll their own
//! node, which their predecessor writes; it waits for their link before it may leave.
//!
//! # Where this deviates from the published form
//!
//! - The kernel disables preemption while a CPU's node is in use. Here a node belongs to a context
//!   of a thread ([`node`](overlock_core::node)), and a waiter may lose its CPU anywhere.
//! - There is one layout for all sizes: a slot has 14 bits, and there are no more slots than that.
//! - The published head that finds pending set next to its own tail takes the lock and waits for
//!   the newcomer to queue. A newcomer without a node never does, and the head hangs with the lock
//!   held. There that takes a fifth nested context; here threads without a slot are enough. Our
//!   head waits until the bit is clear, and checks again.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use overlock_core::facts::{self, Bound, Facts, HasFacts, Slow};
use overlock_core::node::{Node, NodeGuard, NodeId, take_without_node};
use overlock_core::platform::{Atomic, ByteLanes, Lanes, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock};
use overlock_core::stat::{self, Event};

/// The queued spinlock: see the [module's page](self). 4 bytes.
#[derive(Debug)]
pub struct Queued<P: Platform> {
    word: P::U32,
}

pub(super) const LOCKED: u32 = 1;
pub(super) const LOCKED_BYTE: u32 = 0xff;
pub(super) const PENDING: u32 = 1 << 8;
pub(super) const PENDING_BYTE: u32 = 0xff00;

/// How long a newcomer waits for a pending waiter that is about to take the lock, before it queues:
/// the published bound for x86. Without a bound, a stream of pending waiters could
/// hold it up for ever.
const PENDING_HANDOFF: Spin = Spin::Polls(512);

impl<P: Platform> Default for Queued<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> ConstLock for Queued<P> {
    const INIT: Self = Self::new();
}

impl<P: Platform> Queued<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Queued { word: Atomic::ZERO }
    }

    #[cold]
    fn lock_slow(&self, mut seen: u32) {
        if seen == PENDING {
            // Relaxed: only to choose the way on.
            let taken = |word: u32| word != PENDING;
            seen = P::wait_until(&self.word, Relaxed, PENDING_HANDOFF, taken)
                .unwrap_or_else(|last| last);
        }
        if seen & !LOCKED_BYTE != 0 || !self.lock_pending() {
            self.lock_queued();
        }
    }

    /// Waits as the pending waiter; false where there is another one, or a queue.
    fn lock_pending(&self) -> bool {
        // (*, 0, *) -> (*, 1, *). An operation on one bit, then a load: the first is one
        // instruction, where x86 would need a retry loop to return the whole old word. The load
        // must come second (I1); it does, since both are accesses to one word. Relaxed: pending
        // protects no data.
        if self.word.fetch_or(PENDING, Relaxed) & PENDING != 0 {
            return false; // Not ours to clear (I2).
        }
        if self.word.load(Relaxed) & !(PENDING_BYTE | LOCKED_BYTE) != 0 {
            // (n, 1, *) -> (n, 0, *): there is a queue, and its head may be waiting for this.
            self.word.byte1_store(0, Relaxed);
            return false;
        }
        stat::count::<P>(Event::LockPending);
        // QA: acquire, pairs with QU.
        let _ = P::wait_until(&self.word, Acquire, Spin::Forever, |word: u32| {
            word & LOCKED_BYTE == 0
        });
        // (*, 1, 0) -> (*, 0, 1). A store suffices: pending is ours (I2), and while it is set
        // nobody else takes the lock. Relaxed: QA came before.
        self.word.low_store(LOCKED as u16, Relaxed);
        true
    }

    fn lock_queued(&self) {
        let Some(guard) = guard_node::<P>() else {
            return self.lock_without_node();
        };
        stat::count::<P>(Event::LockSlowpath);
        // Finding the node may have taken a while.
        if self.try_lock().is_some() {
            return;
        }
        let node = guard.node();
        node.wait.store(0, Relaxed);
        if join(&self.word, &guard).is_some() {
            // QH: acquire, pairs with the release of the head before us.
            let _ = P::wait_until(&node.wait, Acquire, Spin::Forever, |wait: u32| wait != 0);
        }
        let alone = tail(guard.id());
        loop {
            // We are the head. QA: acquire, pairs with QU.
            let _ = P::wait_until(&self.word, Acquire, Spin::Forever, |word: u32| {
                word & (PENDING_BYTE | LOCKED_BYTE) == 0
            });
            // (n, 0, 0) -> (0, 0, 1). Relaxed: QA came before.
            match self.word.compare_exchange(alone, LOCKED, Relaxed, Relaxed) {
                Ok(_) => break,
                // A newcomer has just set pending. It sees our tail and takes the bit back; but it
                // queues only if it has a node, so we must not wait for its link (I6).
                Err(now) if now == alone | PENDING => {}
                Err(_) => {
                    // (m, *, 0) -> (m, *, 1), by I3. Relaxed: QA came before.
                    self.word.byte0_store(LOCKED as u8, Relaxed);
                    // QH: release, pairs with the successor's acquire load.
                    successor(node).node::<P>().wait.store(1, Release);
                    break;
                }
            }
        }
        // Here the guard ends, not before (I4).
    }

    #[cold]
    fn lock_without_node(&self) {
        // A lock for which others always wait never appears free to this waiter: it may starve.
        // The counter `lock_no_node` shows it.
        take_without_node::<P, _>(&self.word, |word| word == 0, || self.try_lock());
    }
}

/// Takes a node to wait in, and counts how deep it is nested.
pub(super) fn guard_node<P: Platform>() -> Option<NodeGuard<P>> {
    let guard = NodeGuard::new();
    match guard.as_ref().map(|guard| guard.id().context()) {
        Some(0) | None => {}
        Some(1) => stat::count::<P>(Event::LockUseNode2),
        Some(2) => stat::count::<P>(Event::LockUseNode3),
        Some(_) => stat::count::<P>(Event::LockUseNode4),
    }
    guard
}

/// Joins the queue with a node that is ready but for its `next`; returns its predecessor.
pub(super) fn join<P: Platform>(word: &P::U32, guard: &NodeGuard<P>) -> Option<NodeId> {
    guard.node().next.store(0, Relaxed);
    // QP: (p, *, *) -> (n, *, *). Release: our node is ready; acquire: so is p's. Pairs with
    // itself.
    let before = NodeId::from_bits(word.high_swap(guard.id().bits(), AcqRel))?;
    // QN: release, pairs with the acquire load in `successor`.
    before
        .node::<P>()
        .next
        .store(u32::from(guard.id().bits()), Release);
    Some(before)
}

/// The waiter behind `node`, which is not the tail: it has joined, and its link must follow.
///
/// Does not panic: a wait without a limit returns `Ok`, and a link that is not 0 is a name that
/// `join` has stored.
pub(super) fn successor<P: Platform>(node: &Node<P>) -> NodeId {
    // QN: acquire, pairs with the release in `join`.
    P::wait_until(&node.next, Acquire, Spin::Forever, |next: u32| next != 0)
        .ok()
        .and_then(|next| NodeId::from_bits(next as u16))
        .expect("a queue's link names a node")
}

/// The word of a free lock whose only waiter is `id`.
pub(super) fn tail(id: NodeId) -> u32 {
    u32::from(id.bits()) << 16
}

impl<P: Platform> HasFacts for Queued<P> {
    const FACTS: Facts = Facts {
        about: "queue in 4 bytes, with a pending bit",
        bound: Bound::Order,
        node: facts::NeedsNode::SecondWaiter,
        slow: Slow::QueuedOrPending,
        ..Facts::SPINNING
    };
}

// SAFETY: locked goes from 0 to 1 in four places. The fast path and `try_lock` exchange a word of
// 0. The pending waiter and the head store it after they saw it clear. Between load and store no
// other thread can set it: none gets past a set pending bit (I1, I2), nor past the head (I3).
unsafe impl<P: Platform> RawLock for Queued<P> {
    type Token = ();

    const NAME: &'static str = "queued";

    #[inline]
    fn lock(&self) {
        // (0, 0, 0) -> (0, 0, 1). QA: acquire, pairs with QU.
        if let Err(seen) = self.word.compare_exchange(0, LOCKED, Acquire, Relaxed) {
            self.lock_slow(seen);
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        if self.word.load(Relaxed) != 0 {
            return None;
        }
        // (0, 0, 0) -> (0, 0, 1). QA: acquire, pairs with QU.
        self.word
            .compare_exchange(0, LOCKED, Acquire, Relaxed)
            .ok()
            .map(drop)
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        overlock_core::check!(self.is_locked(), "unlock of a queued lock that is free");
        // QU: (*, *, 1) -> (*, *, 0). Release, pairs with QA.
        self.word.byte0_store(0, Release);
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & LOCKED_BYTE != 0
    }

    fn is_contended(&self) -> bool {
        self.word.load(Relaxed) & !LOCKED_BYTE != 0
    }
}

#[cfg(test)]
mod tests;
