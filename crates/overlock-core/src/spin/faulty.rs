//! A lock that is broken on purpose: what checks the checkers.
//!
//! Never protect anything with it. Each checker of the family (model checker, torture, sanitizers)
//! has to find what is wrong with each of its flaws; one that does not proves nothing by finding
//! other locks in order. It is behind the cargo feature `faulty`, and in none of the lists of
//! locks. The kernel's locktorture has such a lock too, `lock_faulty`.
//!
//! | flaw | what is wrong | who has to find it |
//! |---|---|---|
//! | [`NoExclusion`] | looks whether the lock is free, then takes it: two can enter | all |
//! | [`LostKick`] | a sleeper that was woken takes the lock as if nobody else slept: the others are not kicked (three threads) | all |
//! | [`Starving`] | last come, first served: the first to wait is passed for as long as others come | those that count how often a waiter is passed |
//! | [`Relaxed`] | excludes, but what was written under it may be seen late | those that know weak memory |
//! | [`Lingering`] | the unlock looks at the lock once more after its kick: it may be another's by then, and freed | address sanitizers, where whoever acquires last frees it |
//! | [`FaultyRw`] | a writer does not look for readers | all |
//!
//! # Layout
//!
//! ```text
//!  31                8 7            0
//! +-------------------+--------------+
//! | waiters           | state        |
//! +-------------------+--------------+
//! ```
//!
//! Waiters are counted by [`Starving`] only.
//!
//! # States
//!
//! What the flaws other than `Starving` are flaws of is the plain lock over a futex, which would be
//! correct:
//!
//! ```text
//! free      --lock-->        held
//! held      --mark-->        sleepers    about to halt; the halt expects this value
//! free      --lock, woken--> sleepers    others may sleep still  (LostKick: held)
//! held      --unlock-->      free
//! sleepers  --unlock-->      free        and a kick
//! ```
//!
//! `Starving` keeps its waiters in a stack, each by its place in it; nobody sleeps:
//!
//! ```text
//! (0, free)     --lock-->    (0, held)
//! (n, *)        --push-->    (n+1, *)        our place is n+1
//! (0, held)     --unlock-->  (0, free)
//! (n+1, held)   --unlock-->  (n+1, offered)  to whoever has place n+1 by then
//! (n+1, offered) --take-->   (n, held)       by the one with place n+1
//! ```

use core::fmt::Debug;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed as Unordered, Release};

use crate::platform::{Atomic, ConstPlatform, Platform, Spin, Zero};
use crate::raw::{ConstLock, CreateError, RawLock, RawRwLock};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody sleeps, or is about to.
const SLEEPERS: u32 = 2;
/// Nobody's, but the waiter's on top of the stack.
const OFFERED: u32 = 3;
/// One more in the stack.
const WAITER: u32 = 1 << 8;

/// What is wrong with a [`Faulty`] lock.
pub trait Flaw: Debug + Send + Sync + 'static {
    /// The name of the lock that has it.
    const NAME: &'static str;

    /// What a waiter leaves in the word when it finds the lock free.
    #[doc(hidden)]
    const WOKEN: u32 = SLEEPERS;

    /// The order of the release.
    #[doc(hidden)]
    const RELEASE: Ordering = Release;

    /// Takes a free lock, and leaves `held` in its word.
    #[doc(hidden)]
    fn take<P: Platform>(word: &P::U32, held: u32) -> bool {
        // Acquire, pairs with the release in `unlock`.
        word.compare_exchange(FREE, held, Acquire, Unordered)
            .is_ok()
    }

    /// Waits for the lock and takes it.
    #[doc(hidden)]
    fn wait<P: Platform>(word: &P::U32) {
        loop {
            match word.load(Unordered) {
                FREE => {
                    if Self::take::<P>(word, Self::WOKEN) {
                        return;
                    }
                }
                SLEEPERS => P::halt(word, SLEEPERS, None),
                // held -> sleepers. Where it fails the next turn sees why.
                held => _ = word.compare_exchange(held, SLEEPERS, Unordered, Unordered),
            }
        }
    }

    /// Releases the lock.
    #[doc(hidden)]
    fn unlock<P: Platform>(word: &P::U32) {
        // held, sleepers -> free. Release (but for the flaw that is about it), pairs with the
        // acquire in `take`.
        if word.swap(FREE, Self::RELEASE) == SLEEPERS {
            P::kick(word);
        }
    }
}

/// Looks whether the lock is free, then takes it: two can enter.
#[derive(Debug)]
pub struct NoExclusion;

impl Flaw for NoExclusion {
    const NAME: &'static str = "faulty_no_exclusion";

    fn take<P: Platform>(word: &P::U32, held: u32) -> bool {
        // As a wait of one look, so that a script can come between it and the store.
        let free = P::wait_until(word, Acquire, Spin::Polls(1), |seen| seen == FREE);
        if free.is_ok() {
            word.store(held, Unordered);
        }
        free.is_ok()
    }
}

/// A sleeper that was woken takes the lock as if nobody else slept, so its unlock kicks nobody.
/// Takes an owner and two sleepers; under load the next kick hides it.
#[derive(Debug)]
pub struct LostKick;

impl Flaw for LostKick {
    const NAME: &'static str = "faulty_lost_kick";
    const WOKEN: u32 = HELD;
}

/// Excludes, but the release orders nothing: the next owner may miss what was written under the
/// lock. x86 cannot show it.
#[derive(Debug)]
pub struct Relaxed;

impl Flaw for Relaxed {
    const NAME: &'static str = "faulty_relaxed";
    const RELEASE: Ordering = Unordered;
}

/// Its unlock looks at the lock once more after the release and the kick. The next owner may have
/// freed it by then.
#[derive(Debug)]
pub struct Lingering;

impl Flaw for Lingering {
    const NAME: &'static str = "faulty_lingering";

    fn unlock<P: Platform>(word: &P::U32) {
        // held, sleepers -> free. Release, pairs with the acquire in `take`.
        if word.swap(FREE, Release) == SLEEPERS {
            P::kick(word);
            // The flaw: who was kicked has had the lock, maybe. What it leads to, another kick,
            // harms nobody.
            if word.load(Unordered) == SLEEPERS {
                P::kick(word);
            }
        }
    }
}

/// Last come, first served: the first to wait is passed for as long as others come.
#[derive(Debug)]
pub struct Starving;

impl Flaw for Starving {
    const NAME: &'static str = "faulty_starving";

    fn wait<P: Platform>(word: &P::U32) {
        let place = loop {
            let seen = word.load(Unordered);
            if seen == FREE {
                if Self::take::<P>(word, HELD) {
                    return;
                }
            } else if word
                // (n, *) -> (n+1, *).
                .compare_exchange(seen, seen + WAITER, Unordered, Unordered)
                .is_ok()
            {
                break seen / WAITER + 1;
            }
        };
        let offer = (place * WAITER) | OFFERED;
        let taken = ((place - 1) * WAITER) | HELD;
        // (n+1, offered) -> (n, held). Acquire, pairs with the release in `unlock`.
        let _ = P::wait_until(word, Unordered, Spin::Forever, |seen| {
            seen == offer
                && word
                    .compare_exchange(offer, taken, Acquire, Unordered)
                    .is_ok()
        });
    }

    fn unlock<P: Platform>(word: &P::U32) {
        loop {
            let seen = word.load(Unordered);
            let next = if seen < WAITER { FREE } else { seen | OFFERED };
            // (0, held) -> (0, free), (n, held) -> (n, offered). Release, pairs with the acquires
            // in `take` and `wait`.
            if word
                .compare_exchange(seen, next, Release, Unordered)
                .is_ok()
            {
                return;
            }
        }
    }
}

/// A lock that is broken on purpose: see the [module's page](self).
#[derive(Debug)]
pub struct Faulty<P: Platform, F: Flaw> {
    word: P::U32,
    flaw: PhantomData<F>,
}

impl<P: ConstPlatform, F: Flaw> Faulty<P, F> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Faulty {
            word: Zero::ZERO,
            flaw: PhantomData,
        }
    }
}

impl<P: ConstPlatform, F: Flaw> Default for Faulty<P, F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: ConstPlatform, F: Flaw> ConstLock for Faulty<P, F> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new lock, as intended
    const INIT: Self = Self::new();
}

// SAFETY: there is none with `NoExclusion` and `Relaxed`: they break the promise so that checkers
// can find it broken. Only builds for tests have the feature.
unsafe impl<P: Platform, F: Flaw> RawLock for Faulty<P, F> {
    type Token = ();

    const NAME: &'static str = F::NAME;

    fn create() -> Result<Self, CreateError> {
        Ok(Faulty {
            word: P::U32::new(FREE),
            flaw: PhantomData,
        })
    }

    fn lock(&self) {
        if !F::take::<P>(&self.word, HELD) {
            F::wait::<P>(&self.word);
        }
    }

    fn try_lock(&self) -> Option<()> {
        F::take::<P>(&self.word, HELD).then_some(())
    }

    unsafe fn unlock(&self, (): ()) {
        F::unlock::<P>(&self.word);
    }

    fn is_locked(&self) -> bool {
        self.word.load(Unordered) != FREE
    }

    fn is_contended(&self) -> bool {
        self.word.load(Unordered) > HELD
    }
}

const WRITER: u32 = 1;
const READER: u32 = 1 << 1;

/// A reader-writer lock whose writers exclude each other and make readers wait, but do not look for
/// readers that are there. Nobody sleeps. `writer` is bit 0 of the word, the count of readers lies
/// above it.
#[derive(Debug)]
pub struct FaultyRw<P: Platform> {
    word: P::U32,
}

impl<P: ConstPlatform> FaultyRw<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        FaultyRw { word: Zero::ZERO }
    }
}

impl<P: ConstPlatform> Default for FaultyRw<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: ConstPlatform> ConstLock for FaultyRw<P> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new lock, as intended
    const INIT: Self = Self::new();
}

impl<P: Platform> FaultyRw<P> {
    /// Sets what a newcomer adds to the word, unless a writer is there by `seen`.
    fn come(&self, seen: u32, more: u32) -> bool {
        // (r, 0) -> (r+1, 0), or (r, 1) whatever r is: the flaw. Acquire, pairs with the releases
        // below.
        seen & WRITER == 0
            && self
                .word
                .compare_exchange(seen, seen + more, Acquire, Unordered)
                .is_ok()
    }

    fn wait(&self, more: u32) {
        let _ = P::wait_until(&self.word, Unordered, Spin::Forever, |seen| {
            self.come(seen, more)
        });
    }
}

// SAFETY: there is none: a writer gets in beside readers, so that checkers can find that it does.
// Only builds for tests have the feature.
unsafe impl<P: Platform> RawRwLock for FaultyRw<P> {
    type Read = ();
    type Write = ();

    const NAME: &'static str = "faulty_rw";

    fn create() -> Result<Self, CreateError> {
        Ok(FaultyRw {
            word: P::U32::new(0),
        })
    }

    fn read(&self) {
        self.wait(READER);
    }

    fn try_read(&self) -> Option<()> {
        self.come(self.word.load(Unordered), READER).then_some(())
    }

    unsafe fn unlock_read(&self, (): ()) {
        // (r, w) -> (r-1, w). Release, pairs with the acquire in `come`.
        self.word.fetch_sub(READER, Release);
    }

    fn write(&self) {
        self.wait(WRITER);
    }

    fn try_write(&self) -> Option<()> {
        self.come(self.word.load(Unordered), WRITER).then_some(())
    }

    unsafe fn unlock_write(&self, (): ()) {
        // (r, 1) -> (r, 0). Release, pairs with the acquire in `come`.
        self.word.fetch_sub(WRITER, Release);
    }

    fn is_locked(&self) -> bool {
        self.word.load(Unordered) != 0
    }

    fn is_write_locked(&self) -> bool {
        self.word.load(Unordered) & WRITER != 0
    }

    /// Always false: a waiter leaves no trace in the lock.
    fn is_contended(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
