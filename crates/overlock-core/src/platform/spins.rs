//! When a thread spins before it sleeps: the part of the rule that asks nothing of the system. A
//! platform's [`spin_first`](super::Platform::spin_first) may be made of it.
//!
//! A thread that spins for as long as a wake-up costs pays at most twice what the best choice would
//! have cost (Karlin, Manasse, McGeoch, Owicki, "Competitive randomized algorithms for non-uniform
//! problems", SODA 1990). That holds while its CPU would otherwise be idle, as the platform knows.
//!
//! Times are nanoseconds of any clock, which need not be exact. Nothing here is needed for
//! correctness: all accesses are Relaxed.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU64};

/// The longest spin.
pub const LONGEST_NS: u64 = 50_000;
/// The longest spin on a crowded machine, for a new object: a group commit, whose writers wait for
/// an object of their own each time, gains a fifth.
const NEW_NS: u64 = 20_000;
/// The shortest.
const SHORTEST_NS: u64 = 10_000;
/// At least one wait in so many spins, to see whether it has become worth it; twice as many after
/// each such spin in vain, and so often.
const PROBE: u16 = 32;
const DOUBTS: u8 = 5;
/// So many failures in a row leave no hope.
const HOPELESS: u8 = 6;
/// Of its time a thread spends at most one part in so many in spins in vain.
const VAIN_SHARE: u64 = 20;
/// The most that a thread saves up for such spins.
const SAVINGS_NS: u64 = 20 * LONGEST_NS;
/// The interval between two looks at a thread's priority.
const PRIORITY_NS: u64 = 1_000_000_000;

/// How far a [`Score`] falls for a spin in vain, as a rule: it is quick to rise, and slow to fall.
pub const SLOWLY: u8 = 1;

/// The spin of each waiter of a lock. Most sections are shorter.
pub const SHORT_NS: u64 = 1_500;
/// How far the score of a lock falls for a spin in vain: half as far as it rises.
pub const OF_LOCKS: u8 = 2;

/// How long a spin is worth it where a wake-up has this latency: the waker's system call and the
/// cold caches cost about as much again.
#[inline]
pub fn worth(latency: u64) -> u64 {
    (2 * latency).max(SHORTEST_NS)
}

/// The longest spin, by whether the machine has room for a spinner. On a crowded machine with more
/// than one CPU that is a spin for a new object.
#[inline]
pub fn longest(has_room: bool, is_new: bool, has_others: impl FnOnce() -> bool) -> Option<u64> {
    match has_room {
        true => Some(LONGEST_NS),
        false => (is_new && has_others()).then_some(NEW_NS),
    }
}

/// The experience with waits on an object, and who spins there.
#[derive(Debug, Default)]
pub struct Score {
    /// The time until which a thread spins here. It ends by itself, so that a thread that is killed
    /// or unwound in its spin holds up nobody.
    claimed: AtomicU64,
    /// From 0 to [`Score::MOST`].
    worth: AtomicU8,
    /// Waits until the next try where it is not enough, and how often the tries have failed.
    skips: AtomicU16,
    doubts: AtomicU8,
}

impl Score {
    const MOST: u8 = 16;
    /// The least with which each wait spins.
    const ENOUGH: u8 = 4;

    /// That of an object on which nobody has waited.
    pub const fn new() -> Self {
        Score {
            claimed: AtomicU64::new(0),
            worth: AtomicU8::new(0),
            skips: AtomicU16::new(0),
            doubts: AtomicU8::new(0),
        }
    }

    /// Whether the next wait is to spin: spins were worth it, or it is time to try again. To be
    /// called once a wait.
    #[inline]
    pub fn promises(&self) -> bool {
        if self.worth.load(Relaxed) >= Self::ENOUGH {
            return true;
        }
        let skips = self.skips.load(Relaxed);
        // Not written without need: the waiters of a lock share it.
        if skips > 0 {
            self.skips.store(skips - 1, Relaxed);
        }
        skips == 0
    }

    /// How long a waiter of a lock spins before it sleeps, at `most`: see
    /// [`spin_before_sleep`](super::FutexPlatform::spin_before_sleep).
    #[inline]
    pub fn of_lock(&self, most: u64) -> u64 {
        if self.promises() {
            most
        } else if self.is_hopeless() {
            0
        } else {
            SHORT_NS.min(most)
        }
    }

    /// Whether several tries in a row have failed.
    #[inline]
    pub fn is_hopeless(&self) -> bool {
        self.doubts.load(Relaxed) >= HOPELESS
    }

    /// A spin has ended: the event came, and the score rises by 4; or not, and it falls by `vain`.
    #[inline]
    pub fn learn(&self, ready: bool, vain: u8) {
        let worth = self.worth.load(Relaxed);
        let next = match ready {
            true => (worth + 4).clamp(Self::MOST / 2, Self::MOST),
            false => worth.saturating_sub(vain),
        };
        let doubts = match next >= Self::ENOUGH {
            true => 0,
            false => self.doubts.load(Relaxed).min(DOUBTS),
        };
        self.worth.store(next, Relaxed);
        self.skips.store(PROBE << doubts, Relaxed);
        self.doubts.store(doubts + 1, Relaxed);
    }

    /// The waits that follow need not try.
    #[inline]
    pub fn put_off(&self) {
        self.skips.store(PROBE, Relaxed);
    }

    /// Makes the caller the object's only spinner until then.
    #[inline]
    pub fn claim(&self, now: u64, until: u64) -> bool {
        let claimed = self.claimed.load(Relaxed);
        claimed <= now
            && self
                .claimed
                .compare_exchange(claimed, until, Relaxed, Relaxed)
                .is_ok()
    }

    /// The caller spins no more. A spinner that came later may have claimed it by now; then there
    /// are two for a moment.
    #[inline]
    pub fn unclaim(&self) {
        self.claimed.store(0, Relaxed);
    }

    /// Begins anew, as in a child of fork.
    pub fn forget(&self) {
        self.claimed.store(0, Relaxed);
        self.worth.store(0, Relaxed);
        self.skips.store(0, Relaxed);
        self.doubts.store(0, Relaxed);
    }
}

/// The time that a thread may spend on spins in vain: nothing if it has a real-time priority, since
/// it would keep others from its CPU.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The time of the last account.
    at: u64,
    savings: u64,
    is_realtime: bool,
    /// When to look again whether it is.
    look: u64,
}

impl Budget {
    /// That of a thread that has not spun.
    pub const NEW: Budget = Budget {
        at: 0,
        savings: SAVINGS_NS,
        is_realtime: false,
        look: 0,
    };

    /// Adds the share of the time since the last account. Asks now and then whether the thread has
    /// a real-time priority.
    #[inline]
    #[must_use]
    pub fn at(self, now: u64, is_realtime: impl FnOnce() -> bool) -> Budget {
        let earned = now.saturating_sub(self.at) / VAIN_SHARE;
        let (is_realtime, look) = match now < self.look {
            true => (self.is_realtime, self.look),
            false => (is_realtime(), now.saturating_add(PRIORITY_NS)),
        };
        Budget {
            at: now,
            savings: self.savings.saturating_add(earned).min(SAVINGS_NS),
            is_realtime,
            look,
        }
    }

    /// Whether it has so much time.
    #[inline]
    pub fn pays(self, nanos: u64) -> bool {
        self.savings >= nanos && !self.is_realtime
    }

    /// So much was spent in vain.
    #[inline]
    pub fn spend(&mut self, nanos: u64) {
        self.savings = self.savings.saturating_sub(nanos);
    }

    /// The time from the last account to this one earns nothing: it was a spin.
    #[inline]
    #[must_use]
    pub fn after_spin(self, end: u64) -> Budget {
        Budget { at: end, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worth_rises_quickly_and_falls_slowly() {
        let score = Score::new();
        assert!(score.promises(), "the first wait tries");
        score.learn(false, SLOWLY);
        assert!((0..PROBE).all(|_| !score.promises()));
        assert!(score.promises(), "and then each so many");
        score.learn(true, SLOWLY);
        assert!((0..100).all(|_| score.promises()));
        score.learn(false, SLOWLY);
        assert!(score.promises());
        for _ in 0..10 {
            score.learn(true, SLOWLY);
        }
        for _ in 0..Score::MOST - Score::ENOUGH {
            score.learn(false, SLOWLY);
            assert!(score.promises());
        }
        score.learn(false, SLOWLY);
        assert!(score.worth.load(Relaxed) < Score::ENOUGH);
    }

    #[test]
    fn tries_in_vain_become_rare() {
        let score = Score::new();
        let waits = || (0..).take_while(|_| !score.promises()).count();
        let mut between = std::vec::Vec::new();
        for _ in 0..8 {
            assert!(score.promises(), "a wait that may not spin uses up no try");
            score.learn(false, SLOWLY);
            between.push(waits());
        }
        assert_eq!(between, [32, 64, 128, 256, 512, 1024, 1024, 1024]);
        score.learn(true, SLOWLY);
        for _ in 0..Score::MOST / 2 {
            score.learn(false, SLOWLY);
        }
        assert!(waits() < 1024, "one success, and all begins anew");
    }

    #[test]
    fn hope_ends_with_several_failures_in_a_row() {
        let score = Score::new();
        for _ in 0..HOPELESS {
            assert!(!score.is_hopeless());
            score.learn(false, SLOWLY);
        }
        assert!(score.is_hopeless());
        score.learn(true, SLOWLY);
        assert!(!score.is_hopeless());
    }

    #[test]
    fn an_object_has_one_spinner() {
        let score = Score::new();
        assert!(score.claim(100, 150));
        assert!(!score.claim(120, 170));
        assert!(score.claim(150, 200), "a claim ends by itself");
        score.unclaim();
        assert!(score.claim(160, 210), "or when the spin ends");
    }

    #[test]
    fn a_budget_pays_for_a_share_of_the_time() {
        let mut budget = Budget::NEW.at(1, || false);
        assert!(budget.pays(SAVINGS_NS));
        budget.spend(SAVINGS_NS);
        assert!(!budget.pays(1));
        let earns = 1000 * VAIN_SHARE;
        let later = budget.at(1 + earns, || false);
        assert!(later.pays(1000) && !later.pays(1001));
        let spun = budget.after_spin(1 + earns).at(1 + earns, || false);
        assert!(!spun.pays(1), "a spin earns nothing");
        assert!(
            !later.at(u64::MAX, || false).pays(SAVINGS_NS + 1),
            "savings are bounded"
        );
        let realtime = Budget::NEW.at(1, || true);
        assert!(!realtime.pays(1));
        assert!(!realtime.at(PRIORITY_NS, || false).pays(1), "not yet");
        assert!(realtime.at(PRIORITY_NS + 1, || false).pays(1));
    }

    #[test]
    fn a_spin_is_as_long_as_a_wake_up_costs_within_bounds() {
        assert_eq!([0, 20_000].map(worth), [SHORTEST_NS, 40_000]);
        assert_eq!(longest(true, false, || false), Some(LONGEST_NS));
        assert_eq!(longest(false, false, || true), None, "a crowd");
        assert_eq!(longest(false, true, || true), Some(NEW_NS));
        assert_eq!(longest(false, true, || false), None, "one CPU");
    }
}
