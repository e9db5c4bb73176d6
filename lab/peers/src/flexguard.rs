//! A model of FlexGuard: a spinlock with a queue, whose waiters sleep while a thread that they wait
//! for has lost its CPU.
//!
//! Source: the abstract of "FlexGuard: Fast Mutual Exclusion Independent of Subscription" (Laforet
//! et al., SOSP 2025) and the description of its repository. There a program in the kernel counts
//! critical sections that are preempted. Here [`Platform::preempted`] says whether the owner or the
//! first in the queue is, exactly and at no cost: so this is the bound of what the knowledge is
//! worth. On a platform that does not know, it is a spinlock.
//!
//! ```text
//! nobody is preempted    a waiter joins the queue, whose first polls the word
//! the owner is           the first leaves the queue, and sleeps as a waiter of glibc's mutex does
//! the first is           those behind it sleep at their nodes until they are first
//! one of the two is      a new waiter sleeps without the queue
//! ```
//!
//! Nothing is handed off: whoever finds the word free has the lock. A waiter that has slept at the
//! word does not spin again.
//!
//! The word is that of [`Word`], with its orderings; [`queue`](crate::queue) has the others. No
//! wake-up is lost: a waiter sleeps at its node only after it has changed that from WAITING to
//! PARKED, which its predecessor exchanges.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use overlock_core::facts::{Facts, HasFacts, NeedsNode};
use overlock_core::node::NodeGuard;
use overlock_core::platform::{Atomic, Cpu, FutexPlatform, Kick, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock};

use crate::queue::{NONE, WAITING, name, node};
use crate::word::{FREE, Word};

/// Values of a node's `wait` beside WAITING.
const FIRST: u32 = 1;
const PARKED: u32 = 2;

/// How long a waiter spins between two looks at the CPUs of those that it waits for.
const LOOK_NS: u64 = 2_000;

/// The model of FlexGuard: see `docs/evidence/peers.md`. 16 bytes.
#[derive(Debug)]
pub struct FlexGuard<P: Platform> {
    word: Word<P>,
    /// The owner's CPU + 1. Written by the owner, and left behind.
    owner: P::U32,
    tail: P::U32,
    /// The CPU + 1 of the first in the queue, 0 without one.
    first: P::U32,
}

/// Whether the thread with that CPU + 1 is known to have lost it.
fn has_lost_cpu<P: Platform>(cpu: &P::U32) -> bool {
    match cpu.load(Relaxed) {
        0 => false,
        cpu => P::preempted(Cpu(cpu - 1)),
    }
}

fn own_cpu<P: Platform>() -> u32 {
    // 0 for the unknown one.
    P::cpu().0.wrapping_add(1)
}

fn soon<P: Platform>() -> Spin {
    Spin::Until(P::now().plus_nanos(LOOK_NS))
}

impl<P: FutexPlatform> FlexGuard<P> {
    #[inline]
    fn own(&self) {
        self.owner.store(own_cpu::<P>(), Relaxed);
    }

    fn is_owner_preempted(&self) -> bool {
        self.word.is_locked() && has_lost_cpu::<P>(&self.owner)
    }

    #[cold]
    fn lock_slow(&self) {
        let spins = !self.is_owner_preempted() && !has_lost_cpu::<P>(&self.first);
        if spins
            && let Some(guard) = NodeGuard::<P>::new()
            && self.spin(&guard)
        {
            return;
        }
        while !self.word.contend() {
            self.word.sleep();
        }
        self.own();
    }

    /// Waits in the queue. Returns whether the lock is the caller's; if not, its owner has lost its
    /// CPU.
    fn spin(&self, guard: &NodeGuard<P>) -> bool {
        let me = guard.node();
        me.next.store(NONE, Relaxed);
        me.wait.store(WAITING, Relaxed);
        // T: acquire and release.
        let before = self.tail.swap(name(guard), AcqRel);
        if before != NONE {
            // L: release.
            node::<P>(before).next.store(name(guard), Release);
            self.wait_to_be_first(&me.wait);
        }
        self.first.store(own_cpu::<P>(), Relaxed);
        let acquired = loop {
            // Relaxed: the exchange acquires.
            let is_free = |word: u32| word == FREE;
            if P::wait_until(&self.word.0, Relaxed, soon::<P>(), is_free).is_ok() {
                if self.word.take().is_ok() {
                    break true;
                }
            } else if self.is_owner_preempted() {
                break false;
            }
        };
        if acquired {
            self.own();
        }
        self.leave(guard);
        acquired
    }

    fn wait_to_be_first(&self, wait: &P::U32) {
        let is_first = |wait: u32| wait == FIRST;
        // H: acquire, here and below.
        while P::wait_until(wait, Acquire, soon::<P>(), is_first).is_err() {
            if has_lost_cpu::<P>(&self.first)
                && wait
                    .compare_exchange(WAITING, PARKED, Relaxed, Acquire)
                    .is_ok()
            {
                while wait.load(Acquire) != FIRST {
                    P::halt(wait, PARKED, None);
                }
                return;
            }
        }
    }

    /// The first in the queue leaves it.
    fn leave(&self, guard: &NodeGuard<P>) {
        self.first.store(0, Relaxed);
        let link = &guard.node().next;
        if link.load(Relaxed) == NONE {
            // T: acquire and release.
            let left = self
                .tail
                .compare_exchange(name(guard), NONE, AcqRel, Relaxed);
            if left.is_ok() {
                return;
            }
        }
        // L: acquire.
        let next = P::wait_until(link, Acquire, Spin::Forever, |next: u32| next != NONE)
            .unwrap_or_else(|last| last);
        let wait = &node::<P>(next).wait;
        // H: release.
        if wait.swap(FIRST, Release) == PARKED {
            P::kick(wait, Kick::One);
        }
    }
}

impl<P: Platform> HasFacts for FlexGuard<P> {
    const FACTS: Facts = Facts {
        about: "model of FlexGuard: a queue that spins, and sleeps while the owner is preempted",
        node: NeedsNode::Waiter,
        ..Facts::SLEEPING
    };
}

impl<P: FutexPlatform> ConstLock for FlexGuard<P> {
    const INIT: Self = FlexGuard {
        word: Word::new(),
        owner: Atomic::ZERO,
        tail: Atomic::ZERO,
        first: Atomic::ZERO,
    };
}

// SAFETY: a thread owns the lock after an exchange of the word from free to another value, which
// only one can win. Only the owner's unlock makes it free.
unsafe impl<P: FutexPlatform> RawLock for FlexGuard<P> {
    type Token = ();

    const NAME: &'static str = "model:flexguard";

    #[inline]
    fn lock(&self) {
        if self.try_lock().is_none() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.word.take().ok().map(|()| self.own())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.word.release();
    }

    fn is_locked(&self) -> bool {
        self.word.is_locked()
    }

    fn is_contended(&self) -> bool {
        self.word.is_contended() || self.tail.load(Relaxed) != NONE
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use overlock_core::toy::stage::{Actor, actor};
    use overlock_core::toy::{Point, Toy, at, halts, kicks, on_cpu};

    use super::*;

    // On the toy a thread has lost its CPU if the caller runs there. The test's own is 0.

    fn leak() -> &'static FlexGuard<Toy> {
        Box::leak(Box::new(FlexGuard::INIT))
    }

    fn unlock(lock: &FlexGuard<Toy>) {
        // SAFETY: each test unlocks what it has locked, as the same thread.
        unsafe { lock.unlock(()) }
    }

    fn start(lock: &'static FlexGuard<Toy>, number: usize, first: fn()) -> Actor {
        actor(number, move || {
            first();
            lock.lock();
            unlock(lock);
        })
    }

    #[test]
    fn alone_it_is_free_again() {
        let lock = leak();
        lock.lock();
        assert!(lock.is_locked() && !lock.is_contended() && lock.try_lock().is_none());
        unlock(lock);
        assert!(!lock.is_locked());
    }

    #[test]
    fn waiters_spin_while_the_owner_runs() {
        let lock = leak();
        lock.lock();
        let waiters = [1, 2].map(|number| {
            let waiter = start(lock, number, || {});
            waiter.to(Point::Wait);
            waiter
        });
        assert!(lock.is_contended());
        unlock(lock);
        waiters.into_iter().for_each(Actor::end);
        assert!(!lock.is_locked() && !lock.is_contended());
        assert_eq!((kicks(), halts()), (0, 0));
    }

    /// Fails if the waiter spins on, or the unlock does not wake it.
    #[test]
    fn a_waiter_sleeps_while_the_owner_is_preempted() {
        let lock = leak();
        lock.lock();
        let late = start(lock, 1, || at(Point::Wait, || on_cpu(0)));
        late.sleep();
        let new = start(lock, 2, || on_cpu(0));
        new.sleep();
        unlock(lock);
        for waiter in [late, new] {
            assert!(waiter.is_kicked());
            waiter.end();
        }
        assert!(!lock.is_locked() && !lock.is_contended());
    }

    /// Fails if it is not woken once it is the first.
    #[test]
    fn a_waiter_sleeps_while_the_first_is_preempted() {
        let lock = leak();
        lock.lock();
        let first = start(lock, 1, || {});
        first.to(Point::Wait);
        let second = start(lock, 2, || at(Point::Wait, || on_cpu(1)));
        second.sleep();
        unlock(lock);
        first.end();
        assert!(second.is_kicked());
        second.end();
        assert!(!lock.is_locked() && !lock.is_contended());
    }
}
