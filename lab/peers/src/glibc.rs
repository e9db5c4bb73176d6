//! A model of glibc's `pthread_mutex_t` with default attributes: no spinning, a futex.
//!
//! Source: "Futexes Are Tricky" (Drepper, 2011), mutex 2, and the fields of `pthread_mutex_t` in
//! the C library's manual and headers. The default type keeps its owner and a count of users beside
//! the word, which an acquisition and a release write. Left out: the other types and attributes,
//! the check of the type, elision.
//!
//! ```text
//! free      --lock-->    owned        nobody waits
//! *         --wait-->    contended    at once; the waiter sleeps, unless the word was free
//! *         --unlock-->  free         a sleeper is woken where the word was contended
//! ```
//!
//! Orderings and wake-ups are as in [`RustStd`](crate::RustStd). Nothing is handed off, so a waiter
//! can be bypassed without end.

use core::sync::atomic::Ordering::Relaxed;

use overlock_core::facts::{Facts, HasFacts, NeedsNode};
use overlock_core::platform::{Atomic, FutexPlatform, Platform};
use overlock_core::raw::{ConstLock, RawLock};

use crate::word::Word;

/// The model of glibc's mutex: see `docs/evidence/peers.md`. 12 bytes.
#[derive(Debug)]
pub struct Glibc<P: Platform> {
    word: Word<P>,
    /// The owner's slot + 1; 0 without an owner, or for an owner without a slot. Written by the
    /// owner.
    owner: P::U32,
    /// 1 while the lock is owned. Written by the owner.
    users: P::U32,
}

impl<P: FutexPlatform> Glibc<P> {
    #[cold]
    fn lock_slow(&self) {
        // A waiter that finds the word contended sleeps first: others do.
        if self.word.is_contended() {
            self.word.sleep();
        }
        while !self.word.contend() {
            self.word.sleep();
        }
    }

    #[inline]
    fn own(&self) {
        self.owner
            .store(P::slot().map_or(0, |slot| slot as u32 + 1), Relaxed);
        self.users.store(self.users.load(Relaxed) + 1, Relaxed);
    }
}

impl<P: Platform> HasFacts for Glibc<P> {
    const FACTS: Facts = Facts {
        about: "model of glibc's default mutex: a futex without spinning",
        freed_by_last_user: true,
        node: NeedsNode::Never,
        ..Facts::SLEEPING
    };
}

impl<P: FutexPlatform> ConstLock for Glibc<P> {
    const INIT: Self = Glibc {
        word: Word::new(),
        owner: Atomic::ZERO,
        users: Atomic::ZERO,
    };
}

// SAFETY: as for `RustStd`.
unsafe impl<P: FutexPlatform> RawLock for Glibc<P> {
    type Token = ();

    const NAME: &'static str = "model:glibc";

    #[inline]
    fn lock(&self) {
        if self.word.take().is_err() {
            self.lock_slow();
        }
        self.own();
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.word.take().ok().map(|()| self.own())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.owner.store(0, Relaxed);
        self.users.store(self.users.load(Relaxed) - 1, Relaxed);
        self.word.release();
    }

    fn is_locked(&self) -> bool {
        self.word.is_locked()
    }

    fn is_contended(&self) -> bool {
        self.word.is_contended()
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use overlock_core::toy::stage::actor;
    use overlock_core::toy::{Point, Toy, at, halts, kicks, left};

    use super::*;

    fn leak() -> &'static Glibc<Toy> {
        Box::leak(Box::new(Glibc::INIT))
    }

    fn unlock(lock: &Glibc<Toy>) {
        // SAFETY: each test unlocks what it has locked, as the same thread.
        unsafe { lock.unlock(()) }
    }

    #[test]
    fn the_owner_is_named_while_it_owns() {
        let lock = leak();
        lock.lock();
        assert_eq!((lock.owner.load(Relaxed), lock.users.load(Relaxed)), (1, 1));
        assert!(lock.try_lock().is_none());
        unlock(lock);
        assert_eq!((lock.owner.load(Relaxed), lock.users.load(Relaxed)), (0, 0));
        assert_eq!((kicks(), halts()), (0, 0));
    }

    /// Fails if a woken waiter leaves the word owned: the second sleeper is then not woken.
    #[test]
    fn every_sleeper_is_woken() {
        let lock = leak();
        lock.lock();
        let sleepers = [1, 2].map(|thread| {
            let waiter = actor(thread, || {
                lock.lock();
                unlock(lock);
            });
            waiter.sleep();
            waiter
        });
        unlock(lock);
        for sleeper in sleepers {
            assert!(sleeper.is_kicked());
            sleeper.end();
        }
        assert!(!lock.is_locked());
    }

    /// Fails if the halt does not name the value that the waiter has left in the word.
    #[test]
    fn an_unlock_just_before_the_halt_is_not_missed() {
        let lock = leak();
        lock.lock();
        at(Point::Halt, || unlock(lock));
        lock.lock();
        assert_eq!((halts(), left()), (0, 0));
    }
}
