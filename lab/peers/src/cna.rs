//! A model of the compact NUMA-aware lock, CNA: an MCS lock that prefers waiters of its owner's
//! socket.
//!
//! Source: "Compact NUMA-aware Locks" (Dice and Kogan, EuroSys 2019; arXiv 1810.05600), user-space
//! variant. Left out: the paper's optional shuffle reduction, and the kernel's variant with the
//! queued spinlock's pending bit.
//!
//! # Layout
//!
//! The lock is the tail of the main queue. The secondary queue has waiters of other sockets. Its
//! first node is known by name to the owner alone, and passed on with the lock:
//!
//! ```text
//! node: next    the successor in its queue
//!       wait    WAITING; the owner's: OWNER, or the name of the first in the secondary queue
//!       info    the socket of the waiter, and its random number
//!       state   of the first in the secondary queue: the name of the last
//! ```
//!
//! # The unlock
//!
//! ```text
//! a waiter of our socket    those before it move to the end of the secondary queue; it is next
//! none, or seldom           the secondary queue moves before the main one; its first is next, or
//!                           the first of the main queue where the secondary one is empty
//! nobody else waits         the secondary queue becomes the main one; its first is next
//! nobody waits              the lock is free
//! ```
//!
//! "Seldom" is once in 65,535 acquisitions of a thread; the paper has one in 65,536, as we remember
//! it. So a waiter of another socket can be bypassed for long, and only chance ends that.
//!
//! [`queue`](crate::queue) has the orderings.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::facts::{Facts, HasFacts, NeedsNode};
use overlock_core::node::NodeGuard;
use overlock_core::platform::{Atomic, FutexPlatform, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock};

use crate::queue::{NONE, OWNER, Queue, Token, WAITING, name, node};
use crate::random::{self, low};

/// The secondary queue is served where a thread's random number is this one.
const SELDOM: u16 = 1;

/// The model of CNA: see `docs/evidence/peers.md`. 8 bytes.
#[derive(Debug)]
pub struct Cna<P: Platform> {
    queue: Queue<P>,
}

impl<P: FutexPlatform> Cna<P> {
    /// Hands off, or frees the lock.
    #[inline]
    fn leave(&self, guard: &NodeGuard<P>) {
        let me = guard.node();
        // The first of the secondary queue, or OWNER.
        let first = me.wait.load(Relaxed);
        if me.next.load(Relaxed) == NONE {
            if first == OWNER {
                if self.queue.replace(name(guard), NONE) {
                    return;
                }
            } else if self
                .queue
                .replace(name(guard), node::<P>(first).state.load(Relaxed))
            {
                hand_off::<P>(first, OWNER);
                return;
            }
        }
        let next = self.queue.successor(&me.next);
        let stays = random::drawn::<P>(&me.info) != SELDOM;
        match stays.then(|| local::<P>(next, first)).flatten() {
            Some((next, first)) => hand_off::<P>(next, first),
            None if first == OWNER => hand_off::<P>(next, OWNER),
            None => {
                let last = node::<P>(first).state.load(Relaxed);
                node::<P>(last).next.store(next, Relaxed);
                hand_off::<P>(first, OWNER);
            }
        }
    }
}

/// Writes the waiter's socket and its random number into its node.
#[inline]
fn prepare<P: FutexPlatform>(guard: &NodeGuard<P>) {
    random::draw::<P>(&guard.node().info, name(guard), P::socket());
}

/// The first waiter of the caller's socket in the main queue, which begins with `next`. Moves those
/// before it to the secondary queue, which begins with `first`; returns its first node too.
fn local<P: FutexPlatform>(next: u32, first: u32) -> Option<(u32, u32)> {
    let socket = low(P::socket());
    let mut last_remote = NONE;
    let mut seen = next;
    while low(node::<P>(seen).info.load(Relaxed)) != socket {
        last_remote = seen;
        // L: acquire. A waiter that has not linked yet is not found.
        seen = node::<P>(seen).next.load(Acquire);
        if seen == NONE {
            return None;
        }
    }
    if last_remote == NONE {
        return Some((next, first));
    }
    node::<P>(last_remote).next.store(NONE, Relaxed);
    let first = if first == OWNER {
        next
    } else {
        let last = node::<P>(first).state.load(Relaxed);
        node::<P>(last).next.store(next, Relaxed);
        first
    };
    node::<P>(first).state.store(last_remote, Relaxed);
    Some((seen, first))
}

/// Makes a waiter the owner, with the first of the secondary queue or OWNER.
#[inline]
fn hand_off<P: FutexPlatform>(next: u32, first: u32) {
    // H: release, pairs with the load in `lock`.
    node::<P>(next).wait.store(first, Release);
}

impl<P: Platform> HasFacts for Cna<P> {
    const FACTS: Facts = Facts {
        about: "model of CNA: a queue that prefers its owner's socket",
        node: NeedsNode::Always,
        ..Facts::SPINNING
    };
}

impl<P: FutexPlatform> ConstLock for Cna<P> {
    const INIT: Self = Cna {
        queue: Queue::new(),
    };
}

// SAFETY: a thread owns the lock after it has entered an empty queue, by an exchange of the tail
// that only one can win. Else it owns the lock after the last owner's handoff to it. An owner hands
// off to one thread at most.
unsafe impl<P: FutexPlatform> RawLock for Cna<P> {
    type Token = Token<P>;

    const NAME: &'static str = "model:cna";

    #[inline]
    fn lock(&self) -> Token<P> {
        self.queue.lock(prepare, |wait| {
            // H: acquire.
            let _ = P::wait_until(wait, Acquire, Spin::Forever, |wait: u32| wait != WAITING);
        })
    }

    #[inline]
    fn try_lock(&self) -> Option<Token<P>> {
        self.queue.try_lock(prepare)
    }

    #[inline]
    unsafe fn unlock(&self, token: Token<P>) {
        match &token.0 {
            Some(guard) => self.leave(guard),
            None => {
                if let Some(next) = self.queue.leave_without_node() {
                    hand_off::<P>(next, OWNER);
                }
            }
        }
        // The node is free from here on: nobody knows it any more.
    }

    fn is_locked(&self) -> bool {
        self.queue.is_locked()
    }

    fn is_contended(&self) -> bool {
        self.queue.has_waiters()
    }
}

#[cfg(test)]
mod tests;
