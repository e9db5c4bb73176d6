//! The part that MCS locks have in common: the tail of a queue of nodes, and what a thread without
//! a node does.
//!
//! Nodes are named as in overlock-core, where the published locks have pointers. A thread without a
//! node waits until the lock is free. It enters the empty queue as [`SPARE`], with its link in the
//! lock. No published lock has this.
//!
//! Orderings, by name:
//!
//! - T: the exchange of the tail, acquire and release, pairs with itself. A node is ready before
//!   its name can be seen, and what happened under the lock before it is free.
//! - L: the release store of a link pairs with the acquire load of the owner that follows it: what
//!   the waiter has written into its node.
//! - H: the release of the `wait` word, by which an owner hands off, pairs with the acquire load of
//!   the waiter: what happened under the lock, and the owners' changes of the queues.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use overlock_core::node::{Node, NodeGuard, NodeId};
use overlock_core::platform::{Atomic, FutexPlatform, Platform, Spin};

/// No node, as in a new queue.
pub const NONE: u32 = 0;

/// The last in the queue has no node. No node has this name.
const SPARE: u32 = 1;

/// Values of a node's `wait`: its thread waits, or owns the lock. A lock may have further ones. No
/// node has the name [`OWNER`].
pub const WAITING: u32 = 0;
pub const OWNER: u32 = 1;

/// The tail of the queue, and the link of the spare.
#[derive(Debug)]
pub struct Queue<P: Platform> {
    tail: P::U32,
    /// [`NONE`] unless the spare is in the queue.
    spare_next: P::U32,
}

/// An acquisition: the owner's node.
#[derive(Debug)]
#[must_use = "the lock stays locked until its token is passed to `unlock`"]
pub struct Token<P: Platform>(pub Option<NodeGuard<P>>);

/// The name of a guard's node.
pub fn name<P: FutexPlatform>(guard: &NodeGuard<P>) -> u32 {
    u32::from(guard.id().bits())
}

/// The node of that name.
///
/// # Panics
///
/// If there is none: a queue names nodes that wait.
pub fn node<P: FutexPlatform>(name: u32) -> &'static Node<P> {
    NodeId::from_bits(name as u16)
        .expect("a queue names nodes")
        .node::<P>()
}

impl<P: FutexPlatform> Queue<P> {
    pub const fn new() -> Self {
        Queue {
            tail: Atomic::ZERO,
            spare_next: Atomic::ZERO,
        }
    }

    /// Acquires. `prepare` readies the node beyond its `wait`, and `wait` ends when that word names
    /// the owner.
    #[inline]
    pub fn lock(
        &self,
        prepare: impl FnOnce(&NodeGuard<P>),
        wait: impl FnOnce(&P::U32),
    ) -> Token<P> {
        let Some(guard) = NodeGuard::<P>::new() else {
            return self.enter_without_node();
        };
        let me = guard.node();
        me.wait.store(WAITING, Relaxed);
        prepare(&guard);
        if self.join(&guard) {
            me.wait.store(OWNER, Relaxed);
        } else {
            wait(&me.wait);
        }
        Token(Some(guard))
    }

    /// Acquires where the queue is empty. `prepare` is as for `lock`.
    #[inline]
    pub fn try_lock(&self, prepare: impl FnOnce(&NodeGuard<P>)) -> Option<Token<P>> {
        let guard = NodeGuard::<P>::new();
        if let Some(guard) = &guard {
            prepare(guard);
            guard.node().wait.store(OWNER, Relaxed);
        }
        self.try_enter(guard)
    }

    /// Joins the queue with a node that is ready but for its link. Returns whether the queue was
    /// empty: then the lock is the caller's.
    #[inline]
    fn join(&self, guard: &NodeGuard<P>) -> bool {
        guard.node().next.store(NONE, Relaxed);
        // T: acquire and release.
        let before = self.tail.swap(name(guard), AcqRel);
        let link = match before {
            NONE => return true,
            SPARE => &self.spare_next,
            before => &node::<P>(before).next,
        };
        // L: release. The predecessor's node is not ours to touch after this.
        link.store(name(guard), Release);
        false
    }

    /// Enters the queue where it is empty. A guard's node is that of an owner.
    #[inline]
    fn try_enter(&self, guard: Option<NodeGuard<P>>) -> Option<Token<P>> {
        if self.tail.load(Relaxed) != NONE {
            return None;
        }
        let name = guard.as_ref().map_or(SPARE, |guard| {
            guard.node().next.store(NONE, Relaxed);
            name(guard)
        });
        self.replace(NONE, name).then_some(Token(guard))
    }

    /// Waits until the queue is empty, and enters it without a node.
    #[cold]
    fn enter_without_node(&self) -> Token<P> {
        loop {
            if let Some(token) = self.try_enter(None) {
                return token;
            }
            // Relaxed: the exchange acquires.
            let _ = P::wait_until(&self.tail, Relaxed, Spin::Forever, |tail: u32| tail == NONE);
        }
    }

    /// Whether that node is the last.
    #[inline]
    pub fn ends_with(&self, name: u32) -> bool {
        self.tail.load(Relaxed) == name
    }

    /// Makes `to` the tail where it is `from`. Returns whether it was.
    #[inline]
    pub fn replace(&self, from: u32, to: u32) -> bool {
        // T: acquire and release.
        self.tail
            .compare_exchange(from, to, AcqRel, Relaxed)
            .is_ok()
    }

    /// The waiter that follows, where one has joined: it waits for its link.
    #[inline]
    pub fn successor(&self, link: &P::U32) -> u32 {
        // L: acquire.
        P::wait_until(link, Acquire, Spin::Forever, |next: u32| next != NONE)
            .unwrap_or_else(|last| last)
    }

    /// Leaves a queue that the spare has entered. Returns the next owner, if there is one.
    #[cold]
    pub fn leave_without_node(&self) -> Option<u32> {
        if self.spare_next.load(Relaxed) == NONE && self.replace(SPARE, NONE) {
            return None;
        }
        let next = self.successor(&self.spare_next);
        // Before the handoff: after it the spare may be in use again.
        self.spare_next.store(NONE, Relaxed);
        Some(next)
    }

    /// Whether a thread owns the lock.
    pub fn is_locked(&self) -> bool {
        self.tail.load(Relaxed) != NONE
    }

    /// Whether the last in the queue has a node, and waits.
    pub fn has_waiters(&self) -> bool {
        match self.tail.load(Relaxed) {
            NONE | SPARE => false,
            last => node::<P>(last).wait.load(Relaxed) != OWNER,
        }
    }
}
