//! A model of `std::sync::Mutex` on Linux: one word, 100 polls, then a futex.
//!
//! Source: the documentation of Rust's `std` on its futex locks, and "Futexes Are Tricky" (Drepper,
//! 2011) for the word of three states. Left out: poisoning.
//!
//! ```text
//! free      --lock-->    owned        nobody waits
//! owned     --wait-->    contended    after 100 polls; the waiter sleeps
//! free      --wait-->    contended    a waiter acquires: others may sleep still
//! *         --unlock-->  free         a sleeper is woken where the word was contended
//! ```
//!
//! A waiter stops polling as soon as the word is free or contended: with others asleep, polling
//! only delays the sleep. A woken waiter polls again. Nothing is handed off, so a waiter can be
//! bypassed without end.
//!
//! No wake-up is lost: a waiter sleeps only on a word that it has seen contended, and the unlock
//! that ends that state wakes one. A woken waiter marks the word contended again, as others may
//! sleep.

use core::sync::atomic::Ordering::Relaxed;

use overlock_core::facts::{Facts, HasFacts};
use overlock_core::platform::{FutexPlatform, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock};

use crate::word::{CONTENDED, FREE, OWNED, Word};

/// Polls before a waiter sleeps.
const POLLS: u32 = 100;

/// The model of std's mutex: see `docs/evidence/peers.md`. 4 bytes.
#[derive(Debug)]
pub struct RustStd<P: Platform> {
    word: Word<P>,
}

impl<P: FutexPlatform> RustStd<P> {
    /// Polls until the word is not `OWNED`, for a while. Returns its last value.
    fn poll(&self) -> u32 {
        let polls = Spin::Polls(POLLS);
        P::wait_until(&self.word.0, Relaxed, polls, |word: u32| word != OWNED)
            .unwrap_or_else(|last| last)
    }

    #[cold]
    fn lock_slow(&self) {
        let mut seen = self.poll();
        if seen == FREE {
            match self.word.take() {
                Ok(()) => return,
                Err(now) => seen = now,
            }
        }
        while seen == CONTENDED || !self.word.contend() {
            self.word.sleep();
            seen = self.poll();
        }
    }
}

impl<P: Platform> HasFacts for RustStd<P> {
    const FACTS: Facts = Facts {
        about: "model of std::sync::Mutex: 100 polls, then a futex",
        freed_by_last_user: true,
        node: overlock_core::facts::NeedsNode::Never,
        ..Facts::SLEEPING
    };
}

impl<P: FutexPlatform> ConstLock for RustStd<P> {
    const INIT: Self = RustStd { word: Word::new() };
}

// SAFETY: a thread owns the lock after an exchange of the word from free to another value, which
// only one can win. Only the owner's unlock makes it free.
unsafe impl<P: FutexPlatform> RawLock for RustStd<P> {
    type Token = ();

    const NAME: &'static str = "model:std";

    #[inline]
    fn lock(&self) {
        if self.try_lock().is_none() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.word.take().ok()
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
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

    fn leak() -> &'static RustStd<Toy> {
        Box::leak(Box::new(RustStd::INIT))
    }

    fn unlock(lock: &RustStd<Toy>) {
        // SAFETY: each test unlocks what it has locked, as the same thread.
        unsafe { lock.unlock(()) }
    }

    #[test]
    fn a_lock_that_nobody_wants_wakes_nobody() {
        let lock = leak();
        lock.lock();
        assert!(lock.is_locked() && !lock.is_contended() && lock.try_lock().is_none());
        unlock(lock);
        assert!(!lock.is_locked());
        assert_eq!((kicks(), halts()), (0, 0));
    }

    /// Fails if the waiter marks the word as owned instead: the unlock then wakes nobody.
    #[test]
    fn a_sleeper_is_woken_and_marks_the_word_for_the_next() {
        let lock = leak();
        lock.lock();
        let sleepers = [1, 2].map(|thread| {
            let waiter = actor(thread, || {
                lock.lock();
                assert!(lock.is_contended());
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

    /// Fails if the waiter polls on while the word is contended.
    #[test]
    fn a_waiter_does_not_poll_where_others_sleep() {
        let lock = leak();
        lock.word.0.store(CONTENDED, Relaxed);
        at(Point::Halt, || unlock(lock));
        at(Point::Wait, || panic!("it polls"));
        lock.lock();
        assert_eq!(left(), 1);
    }
}
