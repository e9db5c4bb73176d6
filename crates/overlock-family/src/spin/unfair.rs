//! The unfair lock: test and set.
//!
//! The kernel's fallback on a hypervisor that offers no way to halt and kick, and the comparison in
//! the document of the hybrid lock (Long, 2017). The first thread that finds the lock free takes
//! it, so no thread ever waits for a waiter that has lost its CPU. But all waiters contend for one
//! cache line, and nothing keeps one of them from losing every time.
//!
//! # Layout and states
//!
//! One word: 0 free, 1 locked.
//!
//! ```text
//! 0  --lock-->    1    ours
//! 1  --lock-->    1    lost: another one has it, or was faster;
//!                      poll until it is 0, and try again,
//!                      or until the deadline has passed
//! 1  --unlock-->  0
//! ```
//!
//! # Invariants
//!
//! - I1: only an exchange of 0 for 1 takes the lock. There is no order among waiters, and no bound.
//!
//! # Orderings
//!
//! - UU, the release store of 0, pairs with UA, the acquire exchange of 0 for 1.
//!
//! # Fast and slow path
//!
//! The fast path is one exchange, without a load before it. The slow path polls until the word is
//! 0, and exchanges again. An unlock is one store.
//!
//! # Why no wake-up is lost
//!
//! No waiter sleeps, and a waiter that gives up leaves nothing behind.
//!
//! # Where this deviates from the published form
//!
//! A waiter can give up at a deadline. The kernel chooses between this lock and the queued ones
//! once, as it starts; here each is a type.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::facts::{Facts, HasFacts};
use overlock_core::platform::{Atomic, Deadline, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock, RawTimedLock};

/// The longest time for which a waiter with a deadline may miss that the wall clock has been set.
const CLOCK_NS: u64 = 1_000_000;

/// The unfair lock: see the [module's page](self). 4 bytes, like those that it is compared with.
#[derive(Debug)]
pub struct Unfair<P: Platform> {
    word: P::U32,
}

impl<P: Platform> Default for Unfair<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> ConstLock for Unfair<P> {
    const INIT: Self = Self::new();
}

impl<P: Platform> Unfair<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Unfair { word: Atomic::ZERO }
    }

    #[inline]
    fn take(&self) -> bool {
        // 0 -> 1. UA: acquire, pairs with UU.
        self.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        loop {
            // Loads before each exchange: an exchange that fails takes the cache line from the
            // owner all the same. Relaxed: `take` acquires.
            let _ = P::wait_until(&self.word, Relaxed, Spin::Forever, is_free);
            if self.take() {
                return;
            }
        }
    }

    #[cold]
    fn wait_until(&self, deadline: Deadline) -> bool {
        loop {
            // As in `wait`.
            let soon = P::now().plus_nanos(CLOCK_NS);
            let end = Deadline::earlier::<P>(Some(deadline), soon);
            let waited = P::wait_until(&self.word, Relaxed, Spin::Until(end), is_free);
            if waited.is_ok() && self.take() {
                return true;
            }
            if deadline.is_over::<P>() {
                return false;
            }
        }
    }
}

fn is_free(word: u32) -> bool {
    word == 0
}

impl<P: Platform> HasFacts for Unfair<P> {
    const FACTS: Facts = Facts {
        about: "test and set",
        compared: true,
        ..Facts::SPINNING
    };
}

// SAFETY: I1, and only the holder stores 0.
unsafe impl<P: Platform> RawLock for Unfair<P> {
    type Token = ();

    const NAME: &'static str = "unfair";

    #[inline]
    fn lock(&self) {
        if !self.take() {
            self.wait();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        (self.word.load(Relaxed) == 0 && self.take()).then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        overlock_core::check!(self.is_locked(), "unlock of an unfair lock that is free");
        // 1 -> 0. UU: release, pairs with UA.
        self.word.store(0, Release);
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != 0
    }

    /// Always false: a waiter leaves no trace in the lock.
    fn is_contended(&self) -> bool {
        false
    }
}

// SAFETY: as above; a waiter that gives up has changed nothing.
unsafe impl<P: Platform> RawTimedLock for Unfair<P> {
    #[inline]
    fn lock_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        (self.take() || self.wait_until(deadline.into())).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overlock_core::toy::watch::{self, Access, Watch, freed, touches, watch};
    use overlock_core::toy::{Point, Toy, at, left};
    use std::boxed::Box;
    use std::vec;

    fn leak() -> &'static Unfair<Toy> {
        Box::leak(Box::new(Unfair::new()))
    }

    #[test]
    fn one_holder_and_no_trace_of_waiters() {
        let lock = leak();
        lock.lock();
        assert!(lock.is_locked() && !lock.is_contended());
        assert!(lock.try_lock().is_none());
        at(Point::Wait, || {
            assert!(!lock.is_contended());
            // SAFETY: held from above.
            unsafe { lock.unlock(()) };
        });
        lock.lock();
        // SAFETY: just locked.
        unsafe { lock.unlock(()) };
        assert!(!lock.is_locked() && lock.try_lock().is_some());
        assert_eq!(left(), 0);
    }

    /// The lock is free and taken again between two polls, then free for good.
    #[test]
    fn a_waiter_misses_a_lock_that_is_free_between_two_polls() {
        let lock = leak();
        lock.lock();
        at(Point::Wait, || {
            // SAFETY: held from above.
            unsafe { lock.unlock(()) };
            assert!(lock.try_lock().is_some());
        });
        // SAFETY: held from the step above.
        at(Point::Wait, || unsafe { lock.unlock(()) });
        lock.lock();
        assert!(lock.is_locked());
        assert_eq!(left(), 0);
    }

    /// A waiter that sees the lock free must still win the exchange. Fails where `wait` or
    /// `wait_until` returns after the load (without its `self.take()`).
    #[test]
    fn a_waiter_that_loses_the_exchange_waits_again() {
        for deadline in [None, Some(Toy::now().plus_nanos(1000))] {
            let lock = leak();
            lock.lock();
            // SAFETY: held from above.
            at(Point::Wait, || unsafe { lock.unlock(()) });
            // Between the waiter's load and its exchange.
            at(Point::Seen, || assert!(lock.try_lock().is_some()));
            // SAFETY: held from the step above.
            at(Point::Wait, || unsafe { lock.unlock(()) });
            match deadline {
                None => lock.lock(),
                Some(deadline) => assert!(lock.lock_until(deadline).is_some()),
            }
            assert!(lock.is_locked());
            assert_eq!(left(), 0);
        }
    }

    /// Fails where `lock_until` waits without a limit (the toy then says "stuck"), or gives up
    /// early.
    #[test]
    fn a_waiter_gives_up_at_its_deadline_and_not_before() {
        let lock = leak();
        lock.lock();
        let deadline = Toy::now().plus_nanos(1000);
        assert!(lock.lock_until(deadline).is_none());
        assert!(Toy::now() > deadline);
        // SAFETY: held from above.
        at(Point::Wait, || unsafe { lock.unlock(()) });
        assert!(lock.lock_until(Toy::now().plus_nanos(1000)).is_some());
        // Past its deadline too, a lock that is free is taken.
        // SAFETY: just locked.
        unsafe { lock.unlock(()) };
        assert!(lock.lock_until(deadline).is_some());
        assert_eq!(left(), 0);
    }

    /// The store of 0 is all that there is to a release: the next owner may free the lock after it.
    #[test]
    fn nothing_of_the_lock_is_touched_after_its_release() {
        let lock = Unfair::<Watch>::new();
        lock.lock();
        watch(&lock);
        watch::after(Access::Store, freed);
        // SAFETY: just locked.
        unsafe { lock.unlock(()) };
        assert_eq!((watch::left(), touches()), (0, vec![]));
    }

    #[test]
    #[cfg(any(debug_assertions, feature = "checked"))]
    #[should_panic(expected = "unlock of an unfair lock that is free")]
    fn a_second_unlock_is_reported() {
        let lock = leak();
        // SAFETY: it is not held: the misuse under test, which only stores 0 to a free lock.
        unsafe { lock.unlock(()) };
    }
}
