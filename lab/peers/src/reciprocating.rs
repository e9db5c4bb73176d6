//! A model of the reciprocating lock: arrivals form a stack, which is served as a whole.
//!
//! Source: "Reciprocating Locks" (Dice and Kogan, PPoPP 2025; arXiv 2501.02380), the lock of its
//! first listing. Left out: its variants.
//!
//! # Layout
//!
//! The lock is one word: the latest arrival, [`EMPTY`] while nobody has arrived since the owners'
//! segment was taken, [`FREE`] without an owner. A waiter learns the one before it by its exchange
//! of that word, and keeps it to itself:
//!
//! ```text
//! node: wait    WAITING; the owner's: where its segment ends
//! ```
//!
//! # The unlock
//!
//! ```text
//! the segment goes on     the waiter that came before the owner is next
//! it ends, others came    all arrivals become the segment; the latest is next
//! it ends, nobody came    the lock is free
//! ```
//!
//! So a segment is served from its latest to its earliest waiter. Each thread comes once in a
//! segment, and bypasses a waiter twice at most: with its own arrival, and with the next.
//!
//! An owner that found the lock free has its own node as the end: it lies below the first arrivals.
//! A thread without a node takes a free lock by making it EMPTY, which the paper does not have.
//!
//! Orderings, by name:
//!
//! - A: the exchange of the arrivals, acquire and release, pairs with itself and with F and S: a
//!   node is ready before its name can be seen.
//! - F: the release that frees the lock pairs with the acquisition that finds it free.
//! - S: the exchange that takes the arrivals, acquire, pairs with A.
//! - H: the release of the `wait` word pairs with the acquire load of the waiter: what happened
//!   under the lock.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use overlock_core::facts::{Bound, Facts, HasFacts, NeedsNode};
use overlock_core::node::{NodeGuard, take_without_node};
use overlock_core::platform::{Atomic, FutexPlatform, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock};

use crate::queue::{WAITING, name, node};

/// Nobody owns the lock, as in a new one; and no next waiter.
const FREE: u32 = 0;
const NONE: u32 = 0;

/// Owned, without arrivals. No node has this name.
const EMPTY: u32 = 1;

/// The model of the reciprocating lock: see `docs/evidence/peers.md`. 4 bytes.
#[derive(Debug)]
pub struct Reciprocating<P: Platform> {
    arrivals: P::U32,
}

/// An acquisition: the owner's node, the next owner, and where the segment ends.
#[derive(Debug)]
#[must_use = "the lock stays locked until its passage is passed to `unlock`"]
pub struct Passage<P: Platform> {
    /// Nobody uses it after the acquisition. It is kept until the release, since its name may be
    /// the end.
    _guard: Option<NodeGuard<P>>,
    next: u32,
    end: u32,
}

impl<P: FutexPlatform> Reciprocating<P> {
    /// Acquires a free lock without a node.
    fn take(&self) -> Option<Passage<P>> {
        // F: acquire.
        let taken = self
            .arrivals
            .compare_exchange(FREE, EMPTY, Acquire, Relaxed);
        taken.ok().map(|_| Passage {
            _guard: None,
            next: NONE,
            end: EMPTY,
        })
    }

    /// Hands off to a waiter.
    #[inline]
    fn hand_off(next: u32, end: u32) {
        // H: release.
        node::<P>(next).wait.store(end, Release);
    }
}

impl<P: Platform> HasFacts for Reciprocating<P> {
    const FACTS: Facts = Facts {
        about: "model of the reciprocating lock: arrivals are a stack, served as a whole",
        bound: Bound::Finite,
        node: NeedsNode::Always,
        ..Facts::SPINNING
    };
}

impl<P: FutexPlatform> ConstLock for Reciprocating<P> {
    const INIT: Self = Reciprocating {
        arrivals: Atomic::ZERO,
    };
}

// SAFETY: a thread owns the lock after an exchange of the arrivals from FREE, which only one can
// win. Else it owns the lock after the last owner's handoff to it. An owner hands off to one thread
// at most: to the one below it in its segment, or to the latest of the arrivals that it has taken,
// or makes the word FREE.
unsafe impl<P: FutexPlatform> RawLock for Reciprocating<P> {
    type Token = Passage<P>;

    const NAME: &'static str = "model:reciprocating";

    #[inline]
    fn lock(&self) -> Passage<P> {
        let Some(guard) = NodeGuard::<P>::new() else {
            return take_without_node::<P, _>(&self.arrivals, |word| word == FREE, || self.take());
        };
        let me = &guard.node().wait;
        me.store(WAITING, Relaxed);
        // A: acquire and release.
        let before = self.arrivals.swap(name(&guard), AcqRel);
        let (next, end) = if before == FREE {
            // For `is_contended`: it does not wait.
            me.store(EMPTY, Relaxed);
            (NONE, name(&guard))
        } else {
            // H: acquire.
            let end = P::wait_until(me, Acquire, Spin::Forever, |wait: u32| wait != WAITING)
                .unwrap_or_else(|last| last);
            match before {
                EMPTY => (NONE, EMPTY),
                before if before == end => (NONE, EMPTY),
                before => (before, end),
            }
        };
        Passage {
            _guard: Some(guard),
            next,
            end,
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<Passage<P>> {
        self.take()
    }

    #[inline]
    unsafe fn unlock(&self, passage: Passage<P>) {
        let Passage { next, end, .. } = passage;
        if next != NONE {
            return Self::hand_off(next, end);
        }
        // F: release.
        let freed = self.arrivals.compare_exchange(end, FREE, Release, Relaxed);
        if freed.is_err() {
            // S: acquire.
            let latest = self.arrivals.swap(EMPTY, Acquire);
            Self::hand_off(latest, end);
        }
        // The node is free from here on: others know its name as an end only.
    }

    fn is_locked(&self) -> bool {
        self.arrivals.load(Relaxed) != FREE
    }

    /// The waiters of the present segment are known to its owner alone.
    fn is_contended(&self) -> bool {
        match self.arrivals.load(Relaxed) {
            FREE | EMPTY => false,
            latest => node::<P>(latest).wait.load(Relaxed) == WAITING,
        }
    }
}

#[cfg(test)]
mod tests {
    use overlock_core::toy::stage::Actor;
    use overlock_core::toy::{Point, Toy, as_thread};

    use super::*;
    use crate::course::Course;

    fn start(course: &Course<Reciprocating<Toy>>, number: usize) -> Actor {
        let waiter = course.thread(number, |_| {});
        waiter.to(Point::Wait);
        waiter
    }

    #[test]
    fn alone_it_is_free_again() {
        let course = Course::<Reciprocating<Toy>>::new();
        let passage = course.lock.lock();
        assert!(course.lock.is_locked() && !course.lock.is_contended());
        assert!(course.lock.try_lock().is_none());
        course.unlock(passage);
        course.unlock(course.lock.try_lock().unwrap());
        assert_eq!(course.owners(), []);
    }

    /// Fails if the order is that of the arrivals, or if a segment is not served to its end before
    /// later arrivals are.
    #[test]
    fn a_segment_is_served_from_its_latest_and_then_the_next() {
        let course = Course::<Reciprocating<Toy>>::new();
        let passage = course.lock.lock();
        let [one, two, three] = [1, 2, 3].map(|number| start(&course, number));
        assert!(course.lock.is_contended());
        course.unlock(passage);
        let [four, five] = [4, 5].map(|number| start(&course, number));
        for waiter in [three, two, one, five, four] {
            waiter.end();
        }
        assert_eq!(course.owners(), [3, 2, 1, 5, 4]);
    }

    /// Fails if the waiter that lies on the owner's node takes that for the next.
    #[test]
    fn the_first_owner_is_not_served_twice() {
        let course = Course::<Reciprocating<Toy>>::new();
        let passage = course.lock.lock();
        let one = start(&course, 1);
        course.unlock(passage);
        one.end();
        assert_eq!(course.owners(), [1]);
    }

    #[test]
    fn a_thread_without_a_node_hands_off() {
        let course = Course::<Reciprocating<Toy>>::new();
        let passage = as_thread(99, || course.lock.lock());
        assert!(passage._guard.is_none());
        let waiter = start(&course, 1);
        course.unlock(passage);
        waiter.end();
        assert_eq!(course.owners(), [1]);
    }
}
