//! What a lock gets done: with several threads at it, and with one at a time.
//!
//! Each acquisition that must wait for the lock's cache line makes the lock slower, and where sections are short one thread alone
//! gets more done than two; where they are long, or much lies between them, two get more done. How long waits
//! are does not tell the two cases apart. So the lock counts what is done with it, and now and then a thread compares: what was done
//! in its own turns, while it was alone, with what is done while it meets others.

use core::sync::atomic::Ordering::Relaxed;

use super::states::Step;
use crate::platform::{Atomic, ConstPlatform, Instant, Platform, Zero};

/// How long a thread must not have met others in its turn for that to say something.
const SHORTEST_NS: u64 = 100_000;

/// Where samples are farther apart than this, the thread was alone for a part of the time, or elsewhere.
const LONGEST_NS: u64 = 64_000;

/// What is known of being alone holds for this long, then the thread tries it anew.
const FRESH_NS: u64 = 200_000_000;

/// After a turn without result the next one is tried after this.
const RETRY_NS: u64 = 20_000_000;

/// See the [module's page](self). Rates are counted in 1.05 ms (2^20 ns), all threads together.
#[derive(Debug)]
pub(in crate::spin::overlock) struct Rates<P: Platform> {
    /// When the window began that is being measured.
    since: P::U64,
    /// Until when `alone` holds.
    fresh: P::U64,
    /// The lock's count at `since`.
    done: P::U32,
    /// The window is in a turn of the thread's own.
    in_turn: P::U32,
    /// The rate in turns, as far as it is known.
    alone: P::U32,
    /// The rate with others.
    together: P::U32,
}

impl<P: ConstPlatform> Rates<P> {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new one, as intended
    pub(super) const INIT: Self = Rates {
        since: Zero::ZERO,
        fresh: Zero::ZERO,
        done: Zero::ZERO,
        in_turn: Zero::ZERO,
        alone: Zero::ZERO,
        together: Zero::ZERO,
    };
}

/// Adds a measurement to what was measured before.
fn learn<A: Atomic<u32>>(rate: &A, new: u64) {
    let old = u64::from(rate.load(Relaxed));
    let next = if old == 0 {
        new
    } else {
        old - old / 4 + new / 4
    };
    rate.store(next.clamp(1, u32::MAX.into()) as u32, Relaxed);
}

impl<P: Platform> Rates<P> {
    pub(super) fn new() -> Self {
        Rates {
            since: P::U64::new(0),
            fresh: P::U64::new(0),
            done: P::U32::new(0),
            in_turn: P::U32::new(0),
            alone: P::U32::new(0),
            together: P::U32::new(0),
        }
    }

    /// The thread has come to another lock.
    pub(super) fn forget(&self) {
        self.since.store(0, Relaxed);
        self.fresh.store(0, Relaxed);
        self.in_turn.store(0, Relaxed);
        self.alone.store(0, Relaxed);
        self.together.store(0, Relaxed);
    }

    /// The window that ends now: how long it was, and the rate in it. A new one begins.
    fn window(&self, now: Instant, done: u32) -> (u64, u64) {
        let span = now.nanos_since(Instant::from_nanos(self.since.load(Relaxed)));
        let more = done.wrapping_sub(self.done.load(Relaxed));
        self.since.store(now.as_nanos(), Relaxed);
        self.done.store(done, Relaxed);
        (span, (u64::from(more) << 20) / span.max(1))
    }

    /// The thread's turn begins.
    pub(super) fn begin_turn(&self, now: Instant, done: u32) {
        self.window(now, done);
        self.in_turn.store(1, Relaxed);
        let retry = now.plus_nanos(RETRY_NS).as_nanos();
        if self.fresh.load(Relaxed) < retry {
            self.fresh.store(retry, Relaxed);
        }
    }

    pub(super) fn in_turn(&self) -> bool {
        self.in_turn.load(Relaxed) != 0
    }

    /// The thread meets another one in its turn. Which does not count if the one that had the turn before is just leaving.
    #[cold]
    pub(super) fn end_turn(&self, now: Instant, done: u32) {
        let (span, rate) = self.window(now, done);
        if span >= SHORTEST_NS {
            self.in_turn.store(0, Relaxed);
            Step::TurnEnds.taken::<P>();
            learn(&self.alone, rate);
            self.fresh
                .store(now.plus_nanos(FRESH_NS).as_nanos(), Relaxed);
        }
    }

    /// The thread has met others, and does so now and then. Says how long it has been since the last time.
    pub(super) fn together(&self, now: Instant, done: u32) -> u64 {
        let (span, rate) = self.window(now, done);
        if span < LONGEST_NS && !self.in_turn() {
            learn(&self.together, rate);
        }
        span
    }

    /// Whether the lock gets more done with one thread at a time, as far as is known; true also where it is time to find
    /// out.
    pub(super) fn prefer_turns(&self, now: Instant) -> bool {
        let together = self.together.load(Relaxed);
        now.as_nanos() >= self.fresh.load(Relaxed)
            || self.alone.load(Relaxed) > together.saturating_add(together / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;

    const START: u64 = 1_000_000_000;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(START + micros * 1000)
    }

    /// Rates after samples of 10 us, and a turn of 200 us, with so many acquisitions a microsecond.
    fn rates(together: u32, alone: u32) -> Rates<Toy> {
        let rates = Rates::new();
        for sample in 1..=10 {
            rates.together(at(sample * 10), sample as u32 * 10 * together);
        }
        rates.begin_turn(at(200), 0);
        rates.end_turn(at(400), 200 * alone);
        assert!(!rates.in_turn());
        rates
    }

    #[test]
    fn turns_are_preferred_where_more_gets_done_in_them() {
        assert!(rates(30, 120).prefer_turns(at(500)));
        assert!(!rates(30, 20).prefer_turns(at(500)));
        assert!(!rates(30, 35).prefer_turns(at(500)), "not worth it");
    }

    #[test]
    fn what_is_not_known_is_tried_and_what_was_known_long_ago_is_tried_anew() {
        assert!(Rates::<Toy>::new().prefer_turns(at(0)));
        let rates = rates(30, 20);
        assert!(!rates.prefer_turns(at(199_000)));
        assert!(rates.prefer_turns(at(201_000)));
        rates.forget();
        assert!(rates.prefer_turns(at(500)));
    }

    /// `SHORTEST_NS`: the one that had the turn before is just leaving.
    #[test]
    fn a_turn_counts_from_the_last_disturbance_at_its_beginning() {
        let rates = Rates::<Toy>::new();
        for sample in 1..=10 {
            rates.together(at(sample * 10), sample as u32 * 300);
        }
        rates.begin_turn(at(200), 0);
        rates.end_turn(at(210), 1);
        assert!(rates.in_turn());
        rates.end_turn(at(410), 20_001);
        assert!(!rates.in_turn());
        assert!(rates.prefer_turns(at(500)));
    }

    /// `RETRY_NS`: others that take no turns disturb it all the time.
    #[test]
    fn a_turn_without_result_is_not_repeated_at_once() {
        let rates = Rates::<Toy>::new();
        rates.begin_turn(at(0), 0);
        for meeting in 1..=50 {
            rates.end_turn(at(meeting * 10), 0);
        }
        assert!(!rates.prefer_turns(at(500)));
        assert!(rates.prefer_turns(at(21_000)));
    }

    /// `LONGEST_NS`: in a long window the thread may have been alone, or elsewhere.
    #[test]
    fn samples_far_apart_say_nothing_about_being_together() {
        let rates = rates(30, 120);
        rates.together(at(500), 24_000);
        rates.together(at(1_500), 24_000 + 120_000);
        assert!(rates.prefer_turns(at(1_500)));
    }
}
