//! A model of the mutex of Go's runtime since 1.24: of all waiters one may spin.
//!
//! Source: the design that golang/go issue 68578 discusses ("runtime: improve scaling of lock2"),
//! and the release notes of Go 1.24. Left out: the profile of contention, and the second flag of
//! sleepers, by which the original needs one byte of the word in an unlock.
//!
//! # Layout
//!
//! ```text
//! word: bit 0        LOCKED
//!       bit 1        SPINNING: a waiter spins
//!       bit 2        STACK: a waker changes the list of sleepers
//!       from bit 16  the latest sleeper
//! node: next         the sleeper before it
//!       wait         WAITING, or WOKEN
//! ```
//!
//! An unlock wakes nobody while a waiter spins: that one will acquire. Otherwise it wakes the
//! latest sleeper, and each sixteenth one the earliest, whatever spins. (The original draws a
//! random number.) The one that was alone in the list spins beside the one with the bit.
//!
//! No wake-up is lost: a sleeper enters the list by an exchange of a word that is LOCKED, so an
//! unlock comes later and sees it. A spinner drops its bit in the same exchange.
//!
//! Orderings, by name:
//!
//! - U: the release of the unlock pairs with L, the acquire of an acquisition.
//! - E: the release by which a sleeper enters the list pairs with the acquire of STACK: its node.
//!   The release of STACK pairs with the next acquire of it: the links that a waker has changed.
//! - W: the release of WOKEN pairs with the acquire load of the sleeper, whose node is its own
//!   again.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use overlock_core::facts::{Facts, HasFacts, NeedsNode};
use overlock_core::node::NodeGuard;
use overlock_core::platform::{Atomic, FutexPlatform, Kick, Pause, Platform};
use overlock_core::raw::{ConstLock, RawLock};

use crate::queue::{NONE, WAITING, name, node};

const LOCKED: u32 = 1;
const SPINNING: u32 = 2;
const STACK: u32 = 4;
/// The lowest bit of the latest sleeper's name, and the bits below.
const NAME: u32 = 16;
const FLAGS: u32 = (1 << NAME) - 1;

const WOKEN: u32 = 1;

/// A spinner looks so often, with so many pauses in between, then yields so often, then sleeps.
const LOOKS: u32 = 4;
const PAUSES: u32 = 30;
const YIELDS: u32 = 1;

/// Each such unlock that has sleepers wakes the earliest.
const FAIR: u32 = 16;

/// The model of Go's mutex: see `docs/evidence/peers.md`. 8 bytes.
#[derive(Debug)]
pub struct Spinbit<P: Platform> {
    word: P::U32,
    /// Counts unlocks that have sleepers, roughly.
    unlocks: P::U32,
}

impl<P: FutexPlatform> Spinbit<P> {
    #[inline]
    fn take(&self) -> bool {
        // L: acquire.
        self.word.fetch_or(LOCKED, Acquire) & LOCKED == 0
    }

    /// Replaces the word. Acquire for L, release for E.
    fn replace(&self, from: u32, to: u32) -> bool {
        self.word
            .compare_exchange(from, to, AcqRel, Relaxed)
            .is_ok()
    }

    #[cold]
    fn lock_slow(&self) {
        let (mut spins, mut was_alone) = (false, false);
        let mut looks = 0;
        loop {
            let seen = self.word.load(Relaxed);
            if seen & LOCKED == 0 {
                let acquired = match spins {
                    true => self.replace(seen, seen & !SPINNING | LOCKED),
                    false => self.take(),
                };
                if acquired {
                    return;
                }
                continue;
            }
            if !spins && seen & SPINNING == 0 {
                spins = self.replace(seen, seen | SPINNING);
                continue;
            }
            if (spins || was_alone) && looks < LOOKS + YIELDS {
                match looks < LOOKS {
                    true => P::pause(Pause::Iterations(PAUSES)),
                    false => P::yield_cpu(),
                }
                looks += 1;
                continue;
            }
            let Some(guard) = NodeGuard::<P>::new() else {
                P::yield_cpu();
                continue;
            };
            let own = if spins { SPINNING } else { 0 };
            if let Some(alone) = self.sleep(&guard, seen, own) {
                (spins, was_alone, looks) = (false, alone, 0);
            }
        }
    }

    /// Enters the list, if the word is still that, clears these flags, and sleeps. Returns whether
    /// the list was empty.
    fn sleep(&self, guard: &NodeGuard<P>, seen: u32, clears: u32) -> Option<bool> {
        let me = guard.node();
        let before = seen >> NAME;
        me.next.store(before, Relaxed);
        me.wait.store(WAITING, Relaxed);
        if !self.replace(seen, seen & FLAGS & !clears | name(guard) << NAME) {
            return None;
        }
        // W: acquire.
        while me.wait.load(Acquire) == WAITING {
            P::halt(&me.wait, WAITING, None);
        }
        Some(before == NONE)
    }

    #[cold]
    fn wake(&self) {
        let unlocks = self.unlocks.load(Relaxed).wrapping_add(1);
        self.unlocks.store(unlocks, Relaxed);
        let is_fair = unlocks.is_multiple_of(FAIR);
        let mut seen = self.word.load(Relaxed);
        loop {
            // Another waker is at it, or the spinner is the next owner.
            if seen >> NAME == NONE || seen & STACK != 0 || seen & SPINNING != 0 && !is_fair {
                return;
            }
            if self.replace(seen, seen | STACK) {
                seen |= STACK;
                break;
            }
            seen = self.word.load(Relaxed);
        }
        let woken = match is_fair.then(|| take_earliest::<P>(seen >> NAME)).flatten() {
            Some(earliest) => {
                // E: release.
                self.word.fetch_and(!STACK, Release);
                earliest
            }
            None => self.take_latest(),
        };
        let wait = &node::<P>(woken).wait;
        // W: release.
        wait.store(WOKEN, Release);
        P::kick(wait, Kick::One);
    }

    /// Takes the latest sleeper out of a list that is not empty, and gives up STACK.
    fn take_latest(&self) -> u32 {
        loop {
            // E: acquire.
            let seen = self.word.load(Acquire);
            let latest = seen >> NAME;
            let before = node::<P>(latest).next.load(Relaxed);
            if self.replace(seen, seen & FLAGS & !STACK | before << NAME) {
                return latest;
            }
        }
    }
}

/// Takes the earliest sleeper out of the list that begins with `latest`, if that is another one.
fn take_earliest<P: FutexPlatform>(latest: u32) -> Option<u32> {
    let mut after = latest;
    let mut seen = node::<P>(after).next.load(Relaxed);
    if seen == NONE {
        return None;
    }
    loop {
        match node::<P>(seen).next.load(Relaxed) {
            NONE => break,
            before => (after, seen) = (seen, before),
        }
    }
    node::<P>(after).next.store(NONE, Relaxed);
    Some(seen)
}

impl<P: Platform> HasFacts for Spinbit<P> {
    const FACTS: Facts = Facts {
        about: "model of the mutex of Go's runtime: one waiter spins, the others sleep",
        node: NeedsNode::Waiter,
        ..Facts::SLEEPING
    };
}

impl<P: FutexPlatform> ConstLock for Spinbit<P> {
    const INIT: Self = Spinbit {
        word: Atomic::ZERO,
        unlocks: Atomic::ZERO,
    };
}

// SAFETY: a thread owns the lock after it has set LOCKED where that was clear, which only one can.
// Only the owner's unlock clears it.
unsafe impl<P: FutexPlatform> RawLock for Spinbit<P> {
    type Token = ();

    const NAME: &'static str = "model:spinbit";

    #[inline]
    fn lock(&self) {
        if !self.take() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.take().then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // U: release.
        let before = self.word.fetch_and(!LOCKED, Release);
        if before >> NAME != NONE {
            self.wake();
        }
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & LOCKED != 0
    }

    fn is_contended(&self) -> bool {
        self.word.load(Relaxed) & !LOCKED != 0
    }
}

#[cfg(test)]
mod tests {
    use overlock_core::toy::stage::Actor;
    use overlock_core::toy::{Toy, halts, kicks};

    use super::*;
    use crate::course::Course;

    fn start(course: &Course<Spinbit<Toy>>, number: usize) -> Actor {
        let waiter = course.thread(number, |_| {});
        waiter.sleep();
        waiter
    }

    #[test]
    fn alone_it_is_free_again() {
        let course = Course::<Spinbit<Toy>>::new();
        course.lock.lock();
        assert!(course.lock.is_locked() && !course.lock.is_contended());
        assert!(course.lock.try_lock().is_none());
        course.unlock(());
        assert_eq!((kicks(), halts()), (0, 0));
        assert_eq!(course.owners(), []);
    }

    /// Fails if a sleeper is lost, or the list is served from its other end.
    #[test]
    fn the_latest_sleeper_is_woken_first() {
        let course = Course::<Spinbit<Toy>>::new();
        course.lock.lock();
        let [one, two, three] = [1, 2, 3].map(|number| start(&course, number));
        course.unlock(());
        assert!(three.is_kicked() && !two.is_kicked() && !one.is_kicked());
        for waiter in [three, two, one] {
            waiter.end();
        }
        assert_eq!(course.owners(), [3, 2, 1]);
    }

    /// Fails if the choice is left out, or the list loses the others.
    #[test]
    fn seldom_the_earliest_is_woken() {
        let course = Course::<Spinbit<Toy>>::new();
        course.lock.lock();
        let [one, two, three] = [1, 2, 3].map(|number| start(&course, number));
        course.lock.unlocks.store(FAIR - 1, Relaxed);
        course.unlock(());
        for waiter in [one, three, two] {
            waiter.end();
        }
        assert_eq!(course.owners(), [1, 3, 2]);
    }

    /// Fails if an unlock wakes a sleeper beside a waiter that spins.
    #[test]
    fn a_spinner_is_enough() {
        let course = Course::<Spinbit<Toy>>::new();
        course.lock.lock();
        let one = start(&course, 1);
        course.lock.word.fetch_or(SPINNING, Relaxed);
        course.unlock(());
        assert!(!one.is_kicked());
        course.lock.lock();
        course.lock.word.fetch_and(!SPINNING, Relaxed);
        course.unlock(());
        one.end();
        assert_eq!(course.owners(), [1]);
    }
}
