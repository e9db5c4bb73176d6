//! The optimistic spin queue: an MCS queue whose waiters can give up.
//!
//! It pays to spin for a sleeping lock while its owner runs, but not for all waiters at once. The
//! kernel's answer (Low, 2014; Zijlstra) is a queue of spinners. The head of the queue polls the
//! lock, the others each poll a cache line of their own. Each leaves once spinning is not worth
//! while any more. The queue protects no data, and nobody relies on its order.
//! [`mutex`](super::mutex) and the reader-writer semaphore have one inside.
//!
//! # Layout
//!
//! ```text
//!  queue:  +---------------+     node:  +-----------------+------------------------+--------------+
//!          | tail          |            | next            | wait                   | info         |
//!          | last arrival  |            | successor       | predecessor,           | CPU + 1 at   |
//!          +---------------+            |                 | or OURS                | arrival      |
//!                                       +-----------------+------------------------+--------------+
//! ```
//!
//! | field | who writes it, and when |
//! |---|---|
//! | `tail` | a thread that arrives: its own name; the last one, as it leaves or unlocks: the name before it, or 0 |
//! | `next` | the successor: its name when it arrives, 0 when it leaves (A). The owner: 0 at arrival, and when it leaves or unlocks (B). A successor that leaves: the name of its own successor (C) |
//! | `wait` | the owner, before it links. The predecessor that has taken `next`: OURS when it unlocks, its own predecessor's name when it leaves (C) |
//! | `info` | the owner, before it arrives |
//!
//! # States
//!
//! As (tail; nodes from the head to the last); `a->b` means that `a.next` names `b`, `a  b` that it
//! does not yet, or no longer:
//!
//! ```text
//! (0; )          --arrive-->  (a; a)         a is the head at once
//! (b; a..b)      --arrive-->  (c; a..b  c)   c.wait = b, then ...
//! (c; a..b  c)   --link-->    (c; a..b->c)   ... c can be found, and waits
//! (a; a)         --unlock-->  (0; )          nobody waits
//! (c; a->b..c)   --unlock-->  (c; a  b..c)   a.next is taken, then ...
//! (c; a  b..c)   --OURS-->    (c; b..c)      ... b.wait = OURS. When b sees that, it is the head
//!
//! b leaves:
//! (*; a->b->c)   --A-->       (*; a  b->c)   a cannot hand off to b any more
//! (*; a  b->c)   --A-->       (*; a  b->c)   in vain: a has taken its link. b waits for OURS, or for another a (C)
//! (*; a  b->c)   --B-->       (*; a  b  c)   c cannot leave: no node names it
//! (b; a  b)      --B-->       (a; a)         nobody came after b: it has left
//! (*; a  b  c)   --C-->       (*; a->c)      c.wait = a, then a.next = c
//!
//! b leaves, or unlocks:
//! (c; b  c)      --B-->       (c; b  c)      not yet: c has still to link, or is just leaving
//!
//! without a node: it is never in the queue
//! ```
//!
//! # Invariants
//!
//! - Q1: a node is in at most one queue, once: it belongs to the node guard of one waiter, or head.
//! - Q2: only an exchange changes `next` from `n` to 0: in A of `n`, or in B or unlock of the
//!   node's owner. So one of the two gets the link. If the owner got it, it alone writes to
//!   `n.wait`.
//! - Q3: a node whose `next` is 0, and that is not the tail, stays until it has a successor again:
//!   B and unlock wait. So `a` is still there when `b` comes to C. So is `c`: no node names it, and
//!   its A must fail.
//! - Q4: a node guard ends only when no node of the queue names its node: the tail does not, its
//!   predecessor does not (A), and its successor's `wait` does not (C), or is OURS. A successor
//!   that has read `wait` before C tries to exchange `next` of a node that may be elsewhere by now.
//!   It fails: it expects its own name there, and that is in one queue only (Q1).
//! - Q5: only its predecessor's OURS makes a waiter the head. A waiter that finds its predecessor's
//!   `next` changed will get OURS, or another predecessor. It waits for either; with another
//!   predecessor also until the link is there, since C stores `wait` first.
//!
//! # Orderings
//!
//! - OT, the exchanges of the tail, acquire and release, pair with each other. A node is ready
//!   before its name can be seen. A leaver's A comes before all that its predecessor does with the
//!   node later. And the acquisition of an empty queue comes after the unlock that emptied it.
//! - OL, the release stores of a `next` (link, and C), pair with the acquire exchanges in B and
//!   unlock: the waiter's own store of `wait`, and a leaver's, come before OURS.
//! - OW, the release store of OURS, pairs with the acquire loads of `wait`.
//! - C's own store of `wait` is relaxed: it carries only a name, and the node behind that name is
//!   older than the tail's exchange by which the leaver came.
//!
//! # Why no handoff is lost
//!
//! Nobody sleeps for one. An unlocker takes `next`, and A of the successor competes for the same
//! word. If A comes first, the unlocker finds 0 and waits for the next link (Q3). Otherwise A fails
//! and the successor finds OURS, however late that comes (Q5).
//!
//! # Where this deviates from the published form
//!
//! - The kernel disables preemption while a thread is in the queue. Here a thread can lose its CPU
//!   between A and C, or between arriving and linking. Its neighbours then spin for it, and back
//!   off after `POLLS` polls.
//! - Nodes are named by index and immortal, four to a thread ([`node`](overlock_core::node)).
//! - `wait` has the published node's `prev` and `locked` in one word: there is one word to poll,
//!   and no waiter needs `prev` once it is the head.
//! - A waiter leaves if it runs on the CPU of the thread before it, as published. Here nothing else
//!   is known about other threads' CPUs, so callers give a limit in time as well.
//!
//! # Signal handlers
//!
//! A handler may interrupt its thread between A and C. A neighbour that waits for that thread's
//! next step then waits for the handler's return. So a handler must not wait for a thread that uses
//! the same queue.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use overlock_core::links::backoff_sleep;
use overlock_core::node::{Node, NodeGuard, NodeId};
use overlock_core::platform::{Atomic, Cpu, Pause, Platform, Spin};

/// The optimistic spin queue: see the [module's page](self). 2 bytes.
#[derive(Debug)]
pub struct Osq<P: Platform> {
    tail: P::U16,
}

/// The head of an [`Osq`]; the next in line becomes the head when this is dropped.
///
/// Forgetting it leaves the queue locked, and its node in use, for good: all later threads give up.
#[derive(Debug)]
#[must_use = "the queue moves on as soon as its head is dropped"]
pub struct Head<'a, P: Platform> {
    queue: &'a Osq<P>,
    guard: NodeGuard<P>,
}

/// `wait` of the head. No node has this name.
const OURS: u32 = 1;

/// Polls of a word that a neighbour is about to change, before the neighbour is taken to have lost
/// its CPU.
const POLLS: u32 = 1000;

impl<P: Platform> Default for Osq<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> Osq<P> {
    /// Returns an empty queue.
    pub const fn new() -> Self {
        Osq { tail: Atomic::ZERO }
    }

    /// Waits to become the head of the queue. Returns `None` where `limit` is used up first, `stop`
    /// holds, the thread before the caller has lost its CPU, or the caller has no queue node left.
    ///
    /// Each poll evaluates `stop`. The queue may still be handed off to the caller before it has
    /// left: so `Some` comes even where `stop` holds or `limit` is used up.
    #[inline]
    pub fn lock(&self, limit: Spin, stop: impl Fn() -> bool) -> Option<Head<'_, P>> {
        let guard = NodeGuard::new()?;
        if self.join(&guard) || self.wait(&guard, limit, stop) {
            Some(Head { queue: self, guard })
        } else {
            None
        }
    }

    /// After fork() in the child: forgets the waiters, which exist only in the parent.
    pub(crate) fn forget(&self) {
        self.tail.store(0, Relaxed);
    }

    /// Whether the queue has a head. A snapshot.
    pub fn is_locked(&self) -> bool {
        self.tail.load(Relaxed) != 0
    }

    /// Arrives. Returns true where the queue was empty, and the caller is the head.
    fn join(&self, guard: &NodeGuard<P>) -> bool {
        match self.arrive(guard) {
            Some(before) => {
                Self::link(guard, before);
                false
            }
            None => true,
        }
    }

    /// Becomes the tail. Returns the predecessor.
    fn arrive(&self, guard: &NodeGuard<P>) -> Option<NodeId> {
        let node = guard.node();
        node.next.store(0, Relaxed);
        // Unknown is u32::MAX, so 0.
        node.info.store(P::cpu().0.wrapping_add(1), Relaxed);
        // (b; ..b) -> (c; ..b  c), or (0; ) -> (c; c). OT: release: our node is ready; acquire: so
        // is b's.
        NodeId::from_bits(self.tail.swap(guard.id().bits(), AcqRel))
    }

    fn link(guard: &NodeGuard<P>, before: NodeId) {
        guard.node().wait.store(before.bits().into(), Relaxed);
        // (c; ..b  c) -> (c; ..b->c). OL: release, pairs with the exchange in `take_next`.
        let next = &before.node::<P>().next;
        next.store(guard.id().bits().into(), Release);
    }

    /// Waits for the handoff, or leaves. Returns whether the caller is the head.
    fn wait(&self, guard: &NodeGuard<P>, limit: Spin, stop: impl Fn() -> bool) -> bool {
        let wait = &guard.node().wait;
        // OW: acquire, pairs with the release in `drop`.
        let polled = P::wait_until(wait, Acquire, limit, |seen: u32| {
            seen == OURS || stop() || lost_its_cpu::<P>(seen)
        });
        let ours = polled == Ok(OURS);
        ours || self.leave(guard)
    }

    /// Leaves the queue. Returns true where the caller is the head after all.
    #[cold]
    fn leave(&self, guard: &NodeGuard<P>) -> bool {
        let id = guard.id();
        let Some(before) = Self::leave_predecessor(id) else {
            return true;
        };
        if let Some(after) = self.detach(id, before.bits()) {
            Self::relink(before, after);
        }
        false
    }

    /// Repeats A until it succeeds, and returns the predecessor. `None` where the predecessor was
    /// quicker and has handed off to `id`.
    fn leave_predecessor(id: NodeId) -> Option<NodeId> {
        // A, at each poll. OW: acquire, pairs with the release in `drop`.
        let wait = &id.node::<P>().wait;
        name(try_until::<P>(wait, |seen| {
            seen == OURS || Self::unlink(id, seen)
        }))
    }

    /// A: takes `id` from the predecessor that `wait` names. Fails where that one is about to hand
    /// off or to leave.
    fn unlink(id: NodeId, wait: u32) -> bool {
        // (*; a->b..) -> (*; a  b..). Relaxed: OT or OL of what follows publishes it.
        name(wait).is_some_and(|before| {
            let next = &before.node::<P>().next;
            next.compare_exchange(id.bits().into(), 0, Relaxed, Relaxed)
                .is_ok()
        })
    }

    /// B: makes `before` (0: nobody) the tail, where that is `id`; otherwise takes `id`'s successor
    /// from it. Waits where neither is possible: the successor has not linked yet, or is just
    /// leaving.
    fn detach(&self, id: NodeId, before: u16) -> Option<NodeId> {
        let mut after = None;
        try_until::<P>(&id.node::<P>().next, |_| {
            if self.retreat(id, before) {
                return true;
            }
            after = Self::take_next(id);
            after.is_some()
        });
        after
    }

    fn is_last(&self, id: NodeId) -> bool {
        self.tail.load(Relaxed) == id.bits()
    }

    fn retreat(&self, id: NodeId, before: u16) -> bool {
        // The load leaves the tail's line alone while others use it.
        self.is_last(id)
            // (b; a  b) -> (a; a), or (a; a) -> (0; ). OT: release, of A, or of the work as the
            // head; acquire, of A of the threads that stood behind.
            && self
                .tail
                .compare_exchange(id.bits(), before, AcqRel, Relaxed)
                .is_ok()
    }

    /// Takes the successor from `id`. `None` where the successor was quicker with its A.
    fn take_next(id: NodeId) -> Option<NodeId> {
        // (*; ..b->c..) -> (*; ..b  c..). An exchange: if the name stayed, c's A would succeed on a
        // node that is about to leave (Q4). OL: acquire, pairs with `link`, and with C of threads
        // that stood between.
        let next = &id.node::<P>().next;
        if next.load(Relaxed) == 0 {
            None
        } else {
            name(next.swap(0, Acquire))
        }
    }

    /// C: makes `before` and `after` neighbours. Both wait for this (Q3).
    fn relink(before: NodeId, after: NodeId) {
        // This comes first: once `before` finds its successor it may write OURS here.
        after.node::<P>().wait.store(before.bits().into(), Relaxed);
        // (*; a  b  c) -> (*; a->c). OL: release, pairs with the exchange in `take_next`.
        before.node::<P>().next.store(after.bits().into(), Release);
    }
}

impl<P: Platform> Drop for Head<'_, P> {
    fn drop(&mut self) {
        if let Some(after) = self.queue.detach(self.guard.id(), 0) {
            // (c; a  b..c) -> (c; b..c). OW: release, pairs with the acquire loads of `wait`.
            after.node::<P>().wait.store(OURS, Release);
        }
    }
}

/// Returns the node that `next` or `wait` names; `None` for OURS.
fn name(bits: u32) -> Option<NodeId> {
    NodeId::from_bits(bits as u16)
}

/// Whether the waiter that `wait` names is known not to run.
fn lost_its_cpu<P: Platform>(wait: u32) -> bool {
    name(wait).is_some_and(|before| {
        let node: &Node<P> = before.node();
        // Relaxed: a hint, stale where the thread has moved.
        P::preempted(Cpu(node.info.load(Relaxed).wrapping_sub(1)))
    })
}

/// Repeats `attempt` with the value of `word` until it succeeds: a neighbour is a few instructions
/// away from making that possible, unless it has lost its CPU. Returns the last value.
///
/// There is no condition to wait for: whether an exchange may succeed depends on two words, and
/// loads of both may be stale in turn.
fn try_until<P: Platform>(word: &P::U32, mut attempt: impl FnMut(u32) -> bool) -> u32 {
    loop {
        for _ in 0..POLLS {
            let seen = word.load(Acquire);
            if attempt(seen) {
                return seen;
            }
            P::pause(Pause::Iterations(1));
        }
        backoff_sleep::<P>();
    }
}

#[cfg(test)]
mod tests;
