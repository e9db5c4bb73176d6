//! A model of ShflLock: a test-and-set lock in front of an MCS queue, which its waiters put in
//! order.
//!
//! Source: "Scalable and Practical Locking with Shuffling" (Kashyap, Calciu, Cheng, Min and Kim,
//! SOSP 2019), the NUMA-aware spinlock. Left out: the blocking lock, the reader-writer lock.
//!
//! # Layout
//!
//! ```text
//! lock: locked       1: a thread owns the lock
//!       no_stealing  1: a thread without a place in the queue does not take it
//!       tail         the last of the queue
//! node: next         the successor in the queue
//!       wait         READY: first of the queue; SHUFFLER: has the role
//!       state        the number in its group; 0: in none
//!       info         the socket
//! ```
//!
//! # The queue
//!
//! The first of the queue waits for the lock, takes it, makes the next one first, and is out of the
//! queue while it owns. The unlock is a store.
//!
//! # Shuffling
//!
//! One waiter at most has the role of the shuffler. It moves waiters of its own socket to its
//! group, which is behind it, and gives the role to the last of the group. One that finds none
//! looks again after a while. A first waiter that is in no group takes the role.
//!
//! - S1: the group is the front of the queue, and the shuffler is its last, or has become first.
//!   So a first waiter in no group knows that nobody has the role.
//! - S2: the shuffler changes links from its own on, and none that is [`NONE`]: the last waiter's
//!   is its successor's to write. Nobody leaves the queue from behind the shuffler.
//! - S3: a group has 1,024 waiters at most, so the other sockets' are bypassed for so long.
//!
//! # Orderings
//!
//! - U, the release of `locked`, pairs with L, the acquire exchange that takes it.
//! - T: the exchange of the tail, acquire and release: a node is ready before its name can be seen.
//! - N: the release store of a link pairs with the acquire load of those who follow it.
//! - R: the release of READY and SHUFFLER pairs with the waiter's acquire: links and groups.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use overlock_core::facts::{Facts, HasFacts, NeedsNode};
use overlock_core::node::NodeGuard;
use overlock_core::platform::{Atomic, FutexPlatform, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock};

use crate::queue::{NONE, name, node};

/// Bits of a node's `wait`.
const READY: u32 = 1;
const SHUFFLER: u32 = 2;

/// The most waiters of a group.
const GROUP: u32 = 1_024;

/// Polls of a shuffler that has found nobody, before it looks again. In the paper, none.
const REST: u32 = 16;

/// The model of ShflLock: see `docs/evidence/peers.md`. 8 bytes.
#[derive(Debug)]
pub struct ShflLock<P: Platform> {
    tail: P::U32,
    locked: P::U8,
    no_stealing: P::U8,
}

impl<P: FutexPlatform> ShflLock<P> {
    #[inline]
    fn take(&self) -> bool {
        // L: acquire.
        self.locked.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self) {
        match NodeGuard::<P>::new() {
            Some(guard) => self.queue(&guard),
            // Past the queue, whatever `no_stealing` says.
            None => {
                while !self.take() {
                    let _ = self.wait_until_free(Spin::Forever);
                }
            }
        }
    }

    /// Acquires through the queue.
    fn queue(&self, guard: &NodeGuard<P>) {
        let me = guard.node();
        me.next.store(NONE, Relaxed);
        me.wait.store(0, Relaxed);
        me.state.store(0, Relaxed);
        me.info.store(P::socket(), Relaxed);
        // T: acquire and release.
        let before = self.tail.swap(name(guard), AcqRel);
        let mut shuffles = false;
        if before == NONE {
            self.no_stealing.store(1, Relaxed);
        } else {
            // N: release.
            node::<P>(before).next.store(name(guard), Release);
            shuffles = wait_to_be_first(guard);
        }
        // S1.
        shuffles |= me.state.load(Relaxed) == 0;
        loop {
            if shuffles {
                shuffles = shuffle(guard, || self.locked.load(Relaxed) == 0);
            }
            if self.wait_until_free(patience(shuffles)) && self.take() {
                return self.leave(guard);
            }
        }
    }

    fn wait_until_free(&self, limit: Spin) -> bool {
        // Relaxed: the exchange acquires.
        P::wait_until(&self.locked, Relaxed, limit, |locked: u8| locked == 0).is_ok()
    }

    /// The owner leaves the queue, whose first it was.
    fn leave(&self, guard: &NodeGuard<P>) {
        let link = &guard.node().next;
        if link.load(Relaxed) == NONE {
            // T: acquire and release.
            let exchanged = self
                .tail
                .compare_exchange(name(guard), NONE, AcqRel, Relaxed);
            if exchanged.is_ok() {
                // A first waiter may have come since: then others pass it once more.
                self.no_stealing.store(0, Relaxed);
                return;
            }
        }
        // N: acquire.
        let next = P::wait_until(link, Acquire, Spin::Forever, |next: u32| next != NONE)
            .unwrap_or_else(|last| last);
        // R: release.
        node::<P>(next).wait.fetch_or(READY, Release);
    }
}

/// For how long a waiter waits at a time.
fn patience(shuffles: bool) -> Spin {
    if shuffles {
        Spin::Polls(REST)
    } else {
        Spin::Forever
    }
}

/// Waits for READY. Returns whether the waiter has the role then.
fn wait_to_be_first<P: FutexPlatform>(guard: &NodeGuard<P>) -> bool {
    let wait = &guard.node().wait;
    let mut awaited = READY | SHUFFLER;
    let mut shuffles = false;
    loop {
        let done = |wait: u32| wait & awaited != 0;
        // R: acquire.
        let seen =
            P::wait_until(wait, Acquire, patience(shuffles), done).unwrap_or_else(|last| last);
        if seen & awaited & SHUFFLER != 0 {
            // The role comes once.
            awaited = READY;
            shuffles = true;
        }
        if seen & READY != 0 {
            return shuffles;
        }
        if shuffles {
            shuffles = shuffle(guard, || wait.load(Relaxed) & READY != 0);
        }
    }
}

/// The work of the shuffler, until the end of the queue or until it is `over`, for one waiter at
/// least. Returns whether the caller keeps the role.
fn shuffle<P: FutexPlatform>(guard: &NodeGuard<P>, over: impl Fn() -> bool) -> bool {
    let me = name(guard);
    let socket = guard.node().info.load(Relaxed);
    let mut number = guard.node().state.load(Relaxed);
    // The last of the group, and the one whose link is followed.
    let (mut last, mut before) = (me, me);
    while number < GROUP {
        // N: acquire, twice.
        let seen = node::<P>(before).next.load(Acquire);
        if seen == NONE {
            break;
        }
        let candidate = node::<P>(seen);
        let next = candidate.next.load(Acquire);
        // S2: the last waiter stays where it is.
        if next == NONE {
            break;
        }
        let is_local = candidate.info.load(Relaxed) == socket;
        if is_local {
            number += 1;
            candidate.state.store(number, Relaxed);
        }
        if is_local && before != last {
            // Out of its place, and behind the last of the group.
            node::<P>(before).next.store(next, Relaxed);
            let behind = node::<P>(last).next.load(Relaxed);
            candidate.next.store(behind, Relaxed);
            node::<P>(last).next.store(seen, Relaxed);
        } else {
            before = seen;
        }
        if is_local {
            last = seen;
        }
        if over() {
            break;
        }
    }
    if last == me {
        return number < GROUP;
    }
    // S3: a full group has no shuffler.
    if number < GROUP {
        // R: release.
        node::<P>(last).wait.fetch_or(SHUFFLER, Release);
    }
    false
}

impl<P: Platform> HasFacts for ShflLock<P> {
    const FACTS: Facts = Facts {
        about: "model of ShflLock: waiters of one socket are shuffled together",
        node: NeedsNode::Waiter,
        ..Facts::SPINNING
    };
}

impl<P: FutexPlatform> ConstLock for ShflLock<P> {
    const INIT: Self = ShflLock {
        tail: Atomic::ZERO,
        locked: Atomic::ZERO,
        no_stealing: Atomic::ZERO,
    };
}

// SAFETY: a thread owns the lock after an exchange of `locked` from 0 to 1, which only one can win.
// Only the owner's unlock makes it 0.
unsafe impl<P: FutexPlatform> RawLock for ShflLock<P> {
    type Token = ();

    const NAME: &'static str = "model:shfllock";

    #[inline]
    fn lock(&self) {
        if self.try_lock().is_none() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        (self.no_stealing.load(Relaxed) == 0 && self.take()).then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // U: release. From here on the lock may be freed.
        self.locked.store(0, Release);
    }

    fn is_locked(&self) -> bool {
        self.locked.load(Relaxed) != 0
    }

    fn is_contended(&self) -> bool {
        self.tail.load(Relaxed) != NONE
    }
}

#[cfg(test)]
mod tests;
