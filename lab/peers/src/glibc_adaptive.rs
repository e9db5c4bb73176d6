//! A model of glibc's `pthread_mutex_t` of the type `PTHREAD_MUTEX_ADAPTIVE_NP`: a spin whose
//! length follows the last ones, then the default mutex.
//!
//! Source: that of [`Glibc`]; the C library's manual on the tunable
//! `glibc.pthread.mutex_spin_count`, 100 by default; and the field `__spins` of its headers. Left
//! out: the random exponential back-off of later versions.
//!
//! A waiter makes `min(100, 2 * average + 10)` attempts, and then waits as in [`Glibc`]. The
//! average moves by an eighth of the difference towards the number of attempts that it took.

use core::sync::atomic::Ordering::Relaxed;

use overlock_core::facts::{Facts, HasFacts};
use overlock_core::platform::{Atomic, FutexPlatform, Pause, Platform};
use overlock_core::raw::{ConstLock, RawLock};

use crate::Glibc;

/// The most attempts before a waiter sleeps.
const MOST: i32 = 100;

/// The model of glibc's adaptive mutex: see `docs/evidence/peers.md`. 16 bytes.
#[derive(Debug)]
pub struct GlibcAdaptive<P: Platform> {
    mutex: Glibc<P>,
    /// The average of attempts. Written by the owner.
    spins: P::U32,
}

impl<P: FutexPlatform> GlibcAdaptive<P> {
    #[cold]
    fn lock_slow(&self) {
        let average = self.spins.load(Relaxed) as i32;
        let most = MOST.min(2 * average + 10);
        let mut attempts = 0;
        loop {
            attempts += 1;
            if attempts > most {
                self.mutex.lock();
                break;
            }
            P::pause(Pause::Iterations(1));
            if !self.mutex.is_locked() && self.mutex.try_lock().is_some() {
                break;
            }
        }
        let average = average + (attempts - average) / 8;
        self.spins.store(average as u32, Relaxed);
    }
}

impl<P: Platform> HasFacts for GlibcAdaptive<P> {
    const FACTS: Facts = Facts {
        about: "model of glibc's adaptive mutex: up to 100 attempts, then a futex",
        ..Glibc::<P>::FACTS
    };
}

impl<P: FutexPlatform> ConstLock for GlibcAdaptive<P> {
    const INIT: Self = GlibcAdaptive {
        mutex: Glibc::INIT,
        spins: Atomic::ZERO,
    };
}

// SAFETY: it is the mutex inside.
unsafe impl<P: FutexPlatform> RawLock for GlibcAdaptive<P> {
    type Token = ();

    const NAME: &'static str = "model:glibc-adaptive";

    #[inline]
    fn lock(&self) {
        if self.mutex.try_lock().is_none() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.mutex.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // SAFETY: the caller's contract.
        unsafe { self.mutex.unlock(()) }
    }

    fn is_locked(&self) -> bool {
        self.mutex.is_locked()
    }

    fn is_contended(&self) -> bool {
        self.mutex.is_contended()
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use overlock_core::toy::{Point, Toy, at, halts, left};

    use super::*;

    fn leak() -> &'static GlibcAdaptive<Toy> {
        Box::leak(Box::new(GlibcAdaptive::INIT))
    }

    fn unlock(lock: &GlibcAdaptive<Toy>) {
        // SAFETY: each test unlocks what it has locked, as the same thread.
        unsafe { lock.unlock(()) }
    }

    /// Fails if the average does not follow, upwards or downwards.
    #[test]
    fn the_average_follows_the_attempts() {
        let lock = leak();
        let average = || lock.spins.load(Relaxed);
        lock.lock();
        at(Point::Halt, || unlock(lock));
        lock.lock();
        // Ten attempts, and one more for the wait.
        assert_eq!((average(), halts(), left()), (1, 0, 0));
        lock.spins.store(80, Relaxed);
        unlock(lock);
        lock.lock();
        assert_eq!(average(), 80);
        unlock(lock);
        lock.lock_slow();
        assert_eq!(average(), 80 - 79 / 8);
    }

    /// Fails without the limit: then the waiter makes 170 attempts.
    #[test]
    fn the_attempts_are_limited() {
        let lock = leak();
        lock.spins.store(80, Relaxed);
        lock.lock();
        at(Point::Halt, || unlock(lock));
        lock.lock();
        assert_eq!(lock.spins.load(Relaxed), 80 + (101 - 80) / 8);
    }
}
