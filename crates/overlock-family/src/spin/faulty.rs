//! Fault injection: locks that are broken on purpose, as tests of the checkers.
//!
//! Never protect anything with them. Each checker of the family (model checker, torture,
//! sanitizers) has to find the fault of each of these locks. A checker that does not proves nothing
//! when it finds no fault in other locks. They are behind the cargo feature `faulty`, and in none
//! of the lists of locks. The kernel's locktorture has such a lock too, `lock_busted`.
//!
//! | flaw | fault | checkers that have to find it |
//! |---|---|---|
//! | [`NoExclusion`] | loads the word, then takes the lock by a store: two can enter | all |
//! | [`LostKick`] | a woken sleeper takes the lock as if no other thread slept: the others are not kicked (three threads) | all |
//! | [`Starving`] | last come, first served: the first waiter is bypassed for as long as others come | those that count how often a waiter is bypassed |
//! | [`Relaxed`] | excludes, but data written under it may be seen late | those that know weak memory |
//! | [`Lingering`] | the unlock loads the word once more after its kick: the lock may have another owner by then, and be freed | address sanitizers, where the last owner frees it |
//! | [`FaultyRw`] | a writer does not check for readers | all |
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
//! All flaws but `Starving` are flaws of the plain lock over a futex, which is correct without
//! them:
//!
//! ```text
//! free      --lock-->        held
//! held      --mark-->        sleepers    about to halt; the halt expects this value
//! free      --lock, woken--> sleepers    others may still sleep  (LostKick: held)
//! held      --unlock-->      free
//! sleepers  --unlock-->      free        and a kick
//! ```
//!
//! `Starving` keeps its waiters in a stack, each by its place in it; no waiter sleeps:
//!
//! ```text
//! (0, free)     --lock-->    (0, held)
//! (n, *)        --push-->    (n+1, *)        our place is n+1
//! (0, held)     --unlock-->  (0, free)
//! (n+1, held)   --unlock-->  (n+1, offered)  to the waiter with place n+1 at that time
//! (n+1, offered) --take-->   (n, held)       by that waiter
//! ```

use core::fmt::Debug;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed as Unordered, Release};

use overlock_core::platform::{Atomic, Kick, Platform, Spin};
use overlock_core::raw::{ConstLock, RawLock, RawRwLock};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and a waiter sleeps, or is about to.
const SLEEPERS: u32 = 2;
/// Released, for the waiter on top of the stack.
const OFFERED: u32 = 3;
/// One more in the stack.
const WAITER: u32 = 1 << 8;

/// The fault of a [`Faulty`] lock.
pub trait Flaw: Debug + Send + Sync + 'static {
    /// The name of the lock that has it.
    const NAME: &'static str;

    /// The word that a waiter leaves when it finds the lock free.
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
                SLEEPERS => _ = P::halt(word, SLEEPERS, None),
                // held -> sleepers. After a failure the next iteration loads the new value.
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
            P::kick(word, Kick::One);
        }
    }
}

/// Loads the word, then takes a free lock by a store: two can enter.
#[derive(Debug)]
pub struct NoExclusion;

impl Flaw for NoExclusion {
    const NAME: &'static str = "faulty_no_exclusion";

    fn take<P: Platform>(word: &P::U32, held: u32) -> bool {
        // As a wait of one poll, so that a script can run between it and the store.
        let free = P::wait_until(word, Acquire, Spin::Polls(1), |seen| seen == FREE);
        if free.is_ok() {
            word.store(held, Unordered);
        }
        free.is_ok()
    }
}

/// A woken sleeper takes the lock as if no other thread slept, so its unlock kicks none. Shows with
/// an owner and two sleepers; under load the next kick hides it.
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

/// Its unlock loads the word once more after the release and the kick. The next owner may have
/// freed the lock by then.
#[derive(Debug)]
pub struct Lingering;

impl Flaw for Lingering {
    const NAME: &'static str = "faulty_lingering";

    fn unlock<P: Platform>(word: &P::U32) {
        // held, sleepers -> free. Release, pairs with the acquire in `take`.
        if word.swap(FREE, Release) == SLEEPERS {
            P::kick(word, Kick::One);
            // The flaw: the kicked thread may have owned and freed the lock. The second kick
            // itself is harmless.
            if word.load(Unordered) == SLEEPERS {
                P::kick(word, Kick::One);
            }
        }
    }
}

/// Last come, first served: the first waiter is bypassed for as long as others come.
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
        loop {
            let _ = P::wait_until(word, Unordered, Spin::Forever, |seen| seen == offer);
            // (n+1, offered) -> (n, held). Acquire, pairs with the release in `unlock`.
            if word
                .compare_exchange(offer, taken, Acquire, Unordered)
                .is_ok()
            {
                return;
            }
        }
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

impl<P: Platform, F: Flaw> Faulty<P, F> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        Faulty {
            word: Atomic::ZERO,
            flaw: PhantomData,
        }
    }
}

impl<P: Platform, F: Flaw> Default for Faulty<P, F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, F: Flaw> ConstLock for Faulty<P, F> {
    const INIT: Self = Self::new();
}

// SAFETY: there is none with `NoExclusion` and `Relaxed`: they break the promise so that checkers
// can find it broken. Only builds for tests have the feature.
unsafe impl<P: Platform, F: Flaw> RawLock for Faulty<P, F> {
    type Token = ();

    const NAME: &'static str = F::NAME;

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

/// A reader-writer lock whose writers exclude each other and make readers wait, but do not check
/// for readers that hold it. No waiter sleeps. `writer` is bit 0 of the word, the count of readers
/// lies above it.
#[derive(Debug)]
pub struct FaultyRw<P: Platform> {
    word: P::U32,
}

impl<P: Platform> Default for FaultyRw<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> ConstLock for FaultyRw<P> {
    const INIT: Self = Self::new();
}

impl<P: Platform> FaultyRw<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        FaultyRw { word: Atomic::ZERO }
    }

    /// Adds `more`, a reader or a writer, unless `seen` shows a writer.
    fn enter(&self, seen: u32, more: u32) -> bool {
        // (r, 0) -> (r+1, 0), or (r, 1) for any r: the flaw. Acquire, pairs with the releases
        // below.
        can_enter(seen)
            && self
                .word
                .compare_exchange(seen, seen + more, Acquire, Unordered)
                .is_ok()
    }

    fn wait(&self, more: u32) {
        loop {
            let seen = P::wait_until(&self.word, Unordered, Spin::Forever, can_enter);
            if seen.is_ok_and(|seen| self.enter(seen, more)) {
                return;
            }
        }
    }
}

/// Whether a reader or writer may enter: no writer holds the lock. That it ignores readers is the
/// flaw.
fn can_enter(word: u32) -> bool {
    word & WRITER == 0
}

// SAFETY: there is none: a writer enters while readers hold the lock, so that checkers can find
// that it does. Only builds for tests have the feature.
unsafe impl<P: Platform> RawRwLock for FaultyRw<P> {
    type Read = ();
    type Write = ();

    const NAME: &'static str = "faulty_rw";

    fn read(&self) {
        self.wait(READER);
    }

    fn try_read(&self) -> Option<()> {
        self.enter(self.word.load(Unordered), READER).then_some(())
    }

    unsafe fn unlock_read(&self, (): ()) {
        // (r, w) -> (r-1, w). Release, pairs with the acquire in `enter`.
        self.word.fetch_sub(READER, Release);
    }

    fn write(&self) {
        self.wait(WRITER);
    }

    fn try_write(&self) -> Option<()> {
        self.enter(self.word.load(Unordered), WRITER).then_some(())
    }

    unsafe fn unlock_write(&self, (): ()) {
        // (r, 1) -> (r, 0). Release, pairs with the acquire in `enter`.
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
