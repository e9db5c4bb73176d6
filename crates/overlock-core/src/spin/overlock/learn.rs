//! What a thread has learned about the lock that it last waited for: how much of its time goes into
//! waiting, and how long a wait that ends in an acquisition takes.
//!
//! Kept in the thread's slot, so that learning writes no shared line. A signal handler that waits
//! in between spoils a sample, no more: the values steer how to wait, never whether it is correct.

use core::sync::atomic::Ordering::Relaxed;

use super::rates::Rates;
use crate::platform::{Atomic, ConstPlatform, Instant, Platform, Zero};

/// Contended acquisitions of which one is timed: reading the clock while holding the lock
/// makes everybody wait for it.
pub(super) const SAMPLE: u32 = 8;

/// A sample that spans more than this says nothing about now.
const STALE_NS: u64 = 1_000_000;

/// Parts of a thousand of its time that a thread may wait before it looks whether the lock gets more done with one thread
/// at a time. In a tight loop of two threads each counts 250 to 600, depending on the processor: it also stalls in
/// fast paths that succeed, and no wait is counted there.
const SATURATED: u32 = 150;

/// For how long a thread that has slept has a part in the lock before it may be surplus again.
const EARNED_NS: u64 = 400_000;

/// Turns of a surplus thread before it measures again whether it is one.
const TURNS: u32 = 8;

/// For how long a thread uses the lock before it makes room for others, where CPUs are short: half a tick
/// of most kernels, so that a thread goes by itself, between two sections, before it is preempted in one.
pub(super) const SPELL_NS: u64 = 2_000_000;

/// Bounds of the learned spin limit, and where it starts.
const SHORTEST_NS: u32 = 1_000;
const LONGEST_NS: u32 = 20_000;
const START_NS: u32 = 250;

/// Nobody sleeps, is called and is back within this.
const NAP_NS: u64 = 20_000;

/// Spin for this many times what a successful wait takes.
const PATIENCE: u32 = 8;

/// See the [module's page](self).
#[derive(Debug)]
pub(crate) struct Learned<P: Platform> {
    /// When the latest sample was taken, in nanoseconds.
    sampled: P::U64,
    /// When the thread last came back to the lock after a sleep.
    since: P::U64,
    /// The lock that all this is about.
    lock: P::Usize,
    /// 0 until the thread is surplus for the first time; then counts its turns down to 1, where it measures anew.
    turns: P::U32,
    /// Spells after which the thread will make room for others.
    spells: P::U32,
    /// Contended acquisitions since the start.
    count: P::U32,
    /// Share of the time that goes into waiting, in thousandths.
    share: P::U32,
    /// How long a successful wait takes, in nanoseconds.
    wait: P::U32,
    /// What the lock gets done.
    pub(super) rates: Rates<P>,
}

impl<P: ConstPlatform> Learned<P> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new one, as intended
    pub(crate) const INIT: Self = Learned {
        sampled: Zero::ZERO,
        since: Zero::ZERO,
        lock: Zero::ZERO,
        turns: Zero::ZERO,
        spells: Zero::ZERO,
        count: Zero::ZERO,
        share: Zero::ZERO,
        wait: Zero::ZERO,
        rates: Rates::INIT,
    };
}

impl<P: Platform> Learned<P> {
    pub(crate) fn new() -> Self {
        Learned {
            sampled: P::U64::new(0),
            since: P::U64::new(0),
            lock: P::Usize::new(0),
            turns: P::U32::new(0),
            spells: P::U32::new(0),
            count: P::U32::new(0),
            share: P::U32::new(0),
            wait: P::U32::new(0),
            rates: Rates::new(),
        }
    }

    /// What the calling thread knows of `lock`: forgets what it knew of another one.
    pub(super) fn about(lock: usize) -> Option<&'static Self> {
        let known = &P::slots()[P::slot()?].learned;
        if known.lock.load(Relaxed) != lock {
            known.lock.store(lock, Relaxed);
            known.wait.store(START_NS, Relaxed);
            known.turns.store(0, Relaxed);
            known.spells.store(0, Relaxed);
            known.rates.forget();
            // A thread that goes from lock to lock, and has to wait at each, is surplus at none.
            known.restart(P::now());
        }
        Some(known)
    }

    /// Whether waiting takes so much of the thread's time that the others keep the lock busy without it.
    pub(super) fn is_saturated(&self) -> bool {
        let turn = self
            .sampled
            .load(Relaxed)
            .saturating_sub(self.since.load(Relaxed));
        self.share.load(Relaxed) > SATURATED
            && turn >= EARNED_NS
            && self
                .rates
                .prefer_turns(Instant::from_nanos(self.sampled.load(Relaxed)))
    }

    /// Whether the thread takes turns with others: it need not measure again whether it is surplus.
    pub(super) fn knows_turns(&self) -> bool {
        self.turns.load(Relaxed) > 1
    }

    /// Whether it has ever taken turns with others at this lock.
    pub(super) fn has_had_turns(&self) -> bool {
        self.turns.load(Relaxed) > 0
    }

    /// The thread's turn begins.
    pub(super) fn begin_turn(&self, now: Instant, done: u32) {
        self.restart(now);
        self.rates.begin_turn(now, done);
    }

    /// The thread meets another one in its turn.
    #[cold]
    pub(super) fn end_turn(&self, now: Instant, done: u32) {
        self.rates.end_turn(now, done);
        if !self.rates.prefer_turns(now) && self.knows_turns() {
            self.turns.store(1, Relaxed);
        }
    }

    /// The thread leaves the lock to the others.
    pub(super) fn leaves(&self) {
        let turns = self.turns.load(Relaxed);
        self.turns
            .store(if turns > 1 { turns - 1 } else { TURNS }, Relaxed);
    }

    /// The thread got the lock long after it was called: CPUs are short.
    pub(super) fn came_late(&self) {
        self.spells.store(TURNS, Relaxed);
    }

    /// Where CPUs are short: whether the thread has used the lock for long enough to make room for others.
    pub(super) fn spell_is_over(&self) -> bool {
        let spell = self
            .sampled
            .load(Relaxed)
            .saturating_sub(self.since.load(Relaxed));
        self.spells.load(Relaxed) > 0 && spell >= SPELL_NS
    }

    /// The thread makes room; whether others have done so, and wait for their turn.
    pub(super) fn makes_room(&self, others: bool) {
        let spells = self.spells.load(Relaxed);
        self.spells.store(
            if others {
                TURNS
            } else {
                spells.saturating_sub(1)
            },
            Relaxed,
        );
    }

    /// For how long spinning is worth it.
    pub(super) fn spin_ns(&self) -> u64 {
        let limit = self.wait.load(Relaxed).saturating_mul(PATIENCE);
        u64::from(limit.clamp(SHORTEST_NS, LONGEST_NS))
    }

    /// Counts a contended acquisition that begins; whether it is one to time.
    pub(super) fn counts_a_sample(&self) -> bool {
        let count = self.count.load(Relaxed).wrapping_add(1);
        self.count.store(count, Relaxed);
        count.is_multiple_of(SAMPLE)
    }

    /// The thread has just acquired the lock, awake, after a wait since `entered`, which stands for `waits` waits; `done` counts
    /// what has been done with the lock.
    #[cold]
    pub(super) fn sample(&self, entered: Instant, now: Instant, waits: u32, done: u32) {
        let span = now.nanos_since(Instant::from_nanos(self.sampled.load(Relaxed)));
        self.rates.together(now, done);
        self.sampled.store(now.as_nanos(), Relaxed);
        let waited = now.nanos_since(entered).min(u64::from(LONGEST_NS)) as u32;
        let wait = self.wait.load(Relaxed);
        self.wait.store(wait - wait / 4 + waited / 4, Relaxed);
        if span < STALE_NS {
            let part = u64::from(waited) * u64::from(waits) * 1000 / span.max(1);
            let share = self.share.load(Relaxed);
            self.share
                .store(share - share / 4 + part.min(1000) as u32 / 4, Relaxed);
        } else {
            self.share.store(0, Relaxed);
        }
    }

    /// The thread has gone to the sleepers since spinning was not worth it, and comes back as the owner.
    pub(super) fn slept(&self, entered: Instant, now: Instant, done: u32) {
        if now.nanos_since(entered) < NAP_NS {
            // It was called before it slept: a long wait, but one that spinning would have ended too.
            self.sample(entered, now, 1, done);
        } else {
            self.wait.store(self.wait.load(Relaxed) / 2, Relaxed);
            self.restart(now);
        }
    }

    #[cfg(test)]
    pub(super) fn saturate(&self) {
        self.share.store(1000, Relaxed);
        self.since.store(0, Relaxed);
        self.sampled.store(EARNED_NS, Relaxed);
    }

    /// The thread comes back to the lock after a sleep: the past says nothing about it now.
    pub(super) fn restart(&self, now: Instant) {
        self.sampled.store(now.as_nanos(), Relaxed);
        self.since.store(now.as_nanos(), Relaxed);
        self.count.store(0, Relaxed);
        self.share.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;

    fn after(acquisitions: u32, wait: u64, between: u64) -> &'static Learned<Toy> {
        let start = 1_000_000_000;
        let learned = Learned::<Toy>::about(1).unwrap();
        learned.restart(Instant::from_nanos(start - EARNED_NS));
        for i in 1..=u64::from(acquisitions) {
            let end = start + i * SAMPLE as u64 * (wait + between);
            learned.sample(
                Instant::from_nanos(end - wait),
                Instant::from_nanos(end),
                SAMPLE,
                0,
            );
        }
        learned
    }

    #[test]
    fn a_thread_that_waits_for_half_of_its_time_is_saturated_and_one_in_ten_is_not() {
        assert!(after(10, 100, 100).is_saturated());
        assert!(!after(10, 100, 900).is_saturated());
        assert!(
            !after(1, 100, 100).is_saturated(),
            "one sample is not enough"
        );
        let learned = after(10, 100, 100);
        learned.since.store(learned.sampled.load(Relaxed), Relaxed);
        assert!(!learned.is_saturated(), "it has just come");
    }

    #[test]
    fn another_lock_and_a_sleep_start_anew() {
        assert!(after(10, 100, 100).is_saturated());
        let other = Learned::<Toy>::about(2).unwrap();
        assert!(!other.is_saturated());
        let learned = after(10, 100, 100);
        learned.restart(Instant::from_nanos(0));
        assert!(!learned.is_saturated());
    }

    /// `NAP_NS` in `slept`: else a thread whose waits are a little longer than it spins goes to the sleepers each time.
    #[test]
    fn a_sleeper_that_was_called_at_once_spins_for_longer_next_time() {
        let learned = after(40, 100, 1_000);
        let before = learned.spin_ns();
        for _ in 0..10 {
            learned.slept(Instant::from_nanos(0), Instant::from_nanos(2_000), 0);
        }
        assert!(learned.spin_ns() > before.max(10_000));
    }

    /// `end_turn`: where being alone is no better, the thread measures instead of taking turns.
    #[test]
    fn a_thread_that_got_no_more_done_alone_stops_taking_turns() {
        let learned = after(10, 100, 100);
        for (done, stays) in [(0, false), (1 << 20, true)] {
            learned.leaves();
            assert!(learned.knows_turns());
            for sample in 0..10 {
                let now = Instant::from_nanos(sample * 1_000);
                learned.rates.together(now, sample as u32);
            }
            learned.rates.begin_turn(Instant::from_nanos(0), 0);
            learned.end_turn(Instant::from_nanos(200_000), done);
            assert_eq!(learned.knows_turns(), stays);
        }
    }

    #[test]
    fn the_spin_limit_follows_what_waits_take_and_stays_in_bounds() {
        assert_eq!(after(40, 100_000, 0).spin_ns(), u64::from(LONGEST_NS));
        assert_eq!(after(40, 1, 100).spin_ns(), u64::from(SHORTEST_NS));
        let learned = after(40, 1_000, 1_000);
        assert!(
            (6_000..=8_000).contains(&learned.spin_ns()),
            "{}",
            learned.spin_ns()
        );
        for _ in 0..10 {
            learned.slept(Instant::from_nanos(0), Instant::from_nanos(NAP_NS), 0);
        }
        assert_eq!(learned.spin_ns(), u64::from(SHORTEST_NS));
    }
}
