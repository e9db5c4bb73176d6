//! A model of the Malthusian lock MCSCR: an MCS lock that keeps surplus waiters out of circulation.
//!
//! Source: "Malthusian Locks" (Dice, EuroSys 2017; arXiv 1511.06035), the variant MCSCR-STP. Its
//! waiters spin and then park.
//!
//! # Layout
//!
//! The lock is the tail of the queue, and the two ends of the passive set. The set is a list of
//! nodes, the latest first, which the owner alone reads and changes:
//!
//! ```text
//! node: next    the successor in the queue; NONE in the passive set
//!       state   in the passive set, the next older
//!       info    random numbers; in the passive set, the next younger
//!       wait    OWNER, WAITING or PARKED
//! ```
//!
//! # The unlock
//!
//! ```text
//! seldom                         the eldest of the passive set is next, before the queue
//! two or more wait               the first of them joins the passive set; the second is next
//! one waits                      it is next
//! nobody waits, set not empty    the youngest of the passive set is next
//! nobody waits                   the lock is free
//! ```
//!
//! "Seldom" is once in 1,000 unlocks or so, as we remember the paper. Between two of them the same
//! few threads take turns, so the bound on waiting is a matter of chance.
//!
//! [`queue`](crate::queue) has the orderings. No wake-up is lost: a waiter parks only after it has
//! changed its word from WAITING to PARKED, and the handoff exchanges that word. A set that is not
//! empty implies an owner: only an unlock that finds it empty frees the lock.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::facts::{Facts, HasFacts, NeedsNode};
use overlock_core::node::NodeGuard;
use overlock_core::platform::{Atomic, FutexPlatform, Kick, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock};

use crate::queue::{NONE, OWNER, Queue, Token, WAITING, name, node};
use crate::random::{self, low, set_low};

/// Has parked, beside the values of every queue.
const PARKED: u32 = 2;

/// A waiter spins for so long before it parks: 20,000 cycles of 3.6 GHz, as we remember the
/// paper.
const SPIN_NS: u64 = 5_500;

/// The eldest of the passive set is served once in so many unlocks.
const SELDOM: u16 = 1_000;

/// The model of MCSCR: see `docs/evidence/peers.md`. 16 bytes.
#[derive(Debug)]
pub struct Malthusian<P: Platform> {
    queue: Queue<P>,
    /// The ends of the passive set. Owned by the owner.
    youngest: P::U32,
    eldest: P::U32,
}

impl<P: FutexPlatform> Malthusian<P> {
    /// Waits for a handoff.
    #[cold]
    fn wait(wait: &P::U32) {
        let end = P::now().plus_nanos(SPIN_NS);
        let is_owner = |wait: u32| wait == OWNER;
        // H: acquire, here and below.
        if P::wait_until(wait, Acquire, Spin::Until(end), is_owner).is_ok()
            || wait
                .compare_exchange(WAITING, PARKED, Relaxed, Acquire)
                .is_err()
        {
            return;
        }
        while wait.load(Acquire) != OWNER {
            P::halt(wait, PARKED, None);
        }
    }

    /// Hands off, or frees the lock.
    #[inline]
    fn leave(&self, guard: &NodeGuard<P>) {
        let link = &guard.node().next;
        // A look at the tail first: the exchange would take its line in vain.
        if link.load(Relaxed) == NONE && self.queue.ends_with(name(guard)) {
            // NONE if the passive set is empty: then the lock is free.
            let passive = self.youngest.load(Relaxed);
            if self.queue.replace(name(guard), passive) {
                if passive != NONE {
                    self.take_youngest();
                    hand_off::<P>(passive);
                }
                return;
            }
        }
        let next = self.queue.successor(link);
        if random::drawn::<P>(&guard.node().info).is_multiple_of(SELDOM)
            && let Some(eldest) = self.take_eldest()
        {
            node::<P>(eldest).next.store(next, Relaxed);
            return hand_off::<P>(eldest);
        }
        // L: acquire. A second waiter that has not linked yet is not found.
        match node::<P>(next).next.load(Acquire) {
            NONE => hand_off::<P>(next),
            second => {
                self.push(next);
                hand_off::<P>(second);
            }
        }
    }

    /// Puts a node into the passive set, as the youngest. Its link in the queue ends: it may become
    /// the tail.
    fn push(&self, new: u32) {
        let second = self.youngest.load(Relaxed);
        let node_of_new = node::<P>(new);
        node_of_new.next.store(NONE, Relaxed);
        node_of_new.state.store(second, Relaxed);
        set_low::<P>(&node_of_new.info, NONE);
        match second {
            NONE => self.eldest.store(new, Relaxed),
            second => set_low::<P>(&node::<P>(second).info, new),
        }
        self.youngest.store(new, Relaxed);
    }

    /// Takes the youngest out of a passive set that is not empty.
    fn take_youngest(&self) {
        let second = node::<P>(self.youngest.load(Relaxed)).state.load(Relaxed);
        match second {
            NONE => self.eldest.store(NONE, Relaxed),
            second => set_low::<P>(&node::<P>(second).info, NONE),
        }
        self.youngest.store(second, Relaxed);
    }

    /// Takes the eldest out of the passive set.
    fn take_eldest(&self) -> Option<u32> {
        let taken = self.eldest.load(Relaxed);
        if taken == NONE {
            return None;
        }
        let second = low(node::<P>(taken).info.load(Relaxed));
        match second {
            NONE => self.youngest.store(NONE, Relaxed),
            second => node::<P>(second).state.store(NONE, Relaxed),
        }
        self.eldest.store(second, Relaxed);
        Some(taken)
    }
}

/// Writes the waiter's random number into its node.
#[inline]
fn prepare<P: FutexPlatform>(guard: &NodeGuard<P>) {
    random::draw::<P>(&guard.node().info, name(guard), NONE);
}

/// Makes a waiter the owner.
#[inline]
fn hand_off<P: FutexPlatform>(next: u32) {
    let wait = &node::<P>(next).wait;
    // H: release, pairs with the loads in `wait`.
    if wait.swap(OWNER, Release) == PARKED {
        P::kick(wait, Kick::One);
    }
}

impl<P: Platform> HasFacts for Malthusian<P> {
    const FACTS: Facts = Facts {
        about: "model of MCSCR-STP: a queue that sets surplus waiters aside",
        freed_by_last_user: true,
        node: NeedsNode::Always,
        ..Facts::SLEEPING
    };
}

impl<P: FutexPlatform> ConstLock for Malthusian<P> {
    const INIT: Self = Malthusian {
        queue: Queue::new(),
        youngest: Atomic::ZERO,
        eldest: Atomic::ZERO,
    };
}

// SAFETY: a thread owns the lock after it has entered an empty queue, by an exchange of the tail
// that only one can win. Else it owns the lock after the last owner's handoff to it. An owner hands
// off to one thread at most.
unsafe impl<P: FutexPlatform> RawLock for Malthusian<P> {
    type Token = Token<P>;

    const NAME: &'static str = "model:malthusian";

    #[inline]
    fn lock(&self) -> Token<P> {
        self.queue.lock(prepare, Self::wait)
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
                    hand_off::<P>(next);
                }
            }
        }
        // The node is free from here on: nobody knows it any more.
    }

    fn is_locked(&self) -> bool {
        self.queue.is_locked()
    }

    fn is_contended(&self) -> bool {
        self.queue.has_waiters() || self.youngest.load(Relaxed) != NONE
    }
}

#[cfg(test)]
mod tests;
