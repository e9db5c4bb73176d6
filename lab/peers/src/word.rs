//! The futex word of a mutex, after Drepper's "Futexes Are Tricky" (2011), mutex 2.
//!
//! Orderings: U, the release exchange of the unlock, pairs with L, the acquire exchanges of the
//! acquisitions.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::platform::{Atomic, FutexPlatform, Kick, Platform};

/// Nobody owns the lock, as in a new word.
pub const FREE: u32 = 0;
/// A thread owns it, and nobody sleeps.
pub const OWNED: u32 = 1;
/// A thread owns it, and others may sleep: its unlock wakes one.
pub const CONTENDED: u32 = 2;

/// A word in one of these three states.
#[derive(Debug)]
pub struct Word<P: Platform>(pub P::U32);

impl<P: FutexPlatform> Word<P> {
    pub const fn new() -> Self {
        Word(Atomic::ZERO)
    }

    /// Acquires where the word is free. Fails with its value.
    #[inline]
    pub fn take(&self) -> Result<(), u32> {
        // free -> owned. L: acquire, pairs with U.
        let exchanged = self.0.compare_exchange(FREE, OWNED, Acquire, Relaxed);
        exchanged.map(|_| ())
    }

    /// Marks the word contended. Returns whether it was free: then the caller owns the lock.
    pub fn contend(&self) -> bool {
        // * -> contended. L: acquire, pairs with U where the word was free.
        self.0.swap(CONTENDED, Acquire) == FREE
    }

    /// Sleeps while the word is contended.
    pub fn sleep(&self) {
        P::halt(&self.0, CONTENDED, None);
    }

    /// Releases, and wakes a sleeper where the word was contended.
    #[inline]
    pub fn release(&self) {
        let word = ptr::from_ref(&self.0);
        // * -> free. U: release, pairs with L. From here on the lock may be freed.
        if self.0.swap(FREE, Release) == CONTENDED {
            P::kick(word, Kick::One);
        }
    }

    pub fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != FREE
    }

    pub fn is_contended(&self) -> bool {
        self.0.load(Relaxed) == CONTENDED
    }
}
