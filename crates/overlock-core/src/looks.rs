//! What a look at a lock's word has cost lately: how far apart the CPUs are that use it.
//!
//! A cache line gets from one CPU to another in a few ten nanoseconds where the two share a last-level cache, and in several times that where they do not
//! ([what was measured](../../../docs/locks/overlock_rw_posix.md#measured)). Where sections are short that decides whether two CPUs get more done with a
//! lock than one, and so how long a waiter had better stay away from it. A look, timed, tells: it costs next to nothing where nobody has written the word in
//! the meantime.
//!
//! These are hints: locks whose addresses fall on the same entry share it, updates may get lost, and nothing is ordered by them. So
//! they are not of the platform's atomics, and checkers, which have no costs, do without.

use core::sync::atomic::{AtomicU16, Ordering::Relaxed};

use crate::platform::{Instant, Platform, spread};

const ENTRIES: usize = 256;

/// Looks count for so much at most: how much longer one took at whose time the thread lost its CPU says nothing.
const MOST_NS: u64 = 512;

/// How many looks the average is of, and one in how many is timed: a reading of the clock costs as much as a look at a word that is near.
const LOOKS: u64 = 8;

/// What a look costs, on average of the last eight or so that were timed.
#[derive(Debug, Default)]
pub struct Look {
    /// That many times the average.
    sum: AtomicU16,
}

impl Look {
    /// In nanoseconds, 512 at most; 0 at first.
    pub fn nanos(&self) -> u64 {
        // Relaxed, here and below: a hint, and one that gets lost is no loss.
        u64::from(self.sum.load(Relaxed)) / LOOKS
    }

    /// One has taken `nanos`; what is above 512 does not count.
    pub fn record(&self, nanos: u64) {
        let before = u64::from(self.sum.load(Relaxed));
        let sum = before - before / LOOKS + nanos.min(MOST_NS);
        if sum != before {
            self.sum.store(sum as u16, Relaxed);
        }
    }

    /// Looks and takes the time of it, one time in eight; else does nothing. `now` is a reading of the clock that was taken right before.
    pub fn sample<P: Platform>(&self, now: Instant, look: impl FnOnce()) {
        // By chance. Not the clock's lowest bits: there are clocks whose readings are multiples of 8 or of 1,000.
        if u64::from(spread(now.as_nanos() as usize)) % LOOKS != 0 {
            return;
        }
        look();
        let end = P::now();
        // Clocks differ in that by more than looks do.
        let clock = P::now().nanos_since(end);
        self.record(end.nanos_since(now).saturating_sub(clock));
    }
}

/// The entries: all zero at first. 512 bytes, which share their cache lines with nothing else.
#[derive(Debug)]
#[repr(align(128))]
pub struct Looks([Look; ENTRIES]);

impl Looks {
    /// Nothing is known.
    pub const fn new() -> Self {
        Looks(
            [const {
                Look {
                    sum: AtomicU16::new(0),
                }
            }; ENTRIES],
        )
    }

    /// The entry of a lock by its [spread](crate::Platform::spread) address.
    pub fn at(&self, spread: u32) -> &Look {
        &self.0[spread as usize % ENTRIES]
    }
}

impl Default for Looks {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;

    #[test]
    fn it_follows_what_looks_cost() {
        let looks = Looks::new();
        let look = looks.at(7);
        assert_eq!(look.nanos(), 0);
        // From below, from above: there is no width between the two.
        for cost in [300, 40, 99, 512, 0, 1] {
            (0..80).for_each(|_| look.record(cost));
            assert_eq!(look.nanos(), cost);
        }
        assert_eq!(
            (looks.at(8).nanos(), looks.at(7 + 256).nanos()),
            (0, look.nanos())
        );
    }

    #[test]
    fn one_that_took_for_ever_does_not_count_for_more_than_others() {
        let look = Look::default();
        look.record(u64::MAX);
        assert_eq!(look.nanos(), MOST_NS / 8);
        (0..100).for_each(|_| look.record(1 << 20));
        assert_eq!(look.nanos(), MOST_NS);
    }

    /// Fails where the reading of the clock counts, or what was before the look.
    #[test]
    fn what_the_clock_costs_does_not_count() {
        let look = Look::default();
        let mut looks = 0;
        for _ in 0..1000 {
            look.sample::<Toy>(Toy::now(), || {
                looks += 1;
                Toy::delay(99);
            });
        }
        // A look in this world: 99, and `delay` reads the clock.
        assert_eq!(look.nanos(), 100);
        assert!((90..160).contains(&looks), "{looks}");
    }

    /// Fails where one looks at the lowest bits.
    #[test]
    fn one_in_eight_is_timed_whatever_the_clock_is() {
        for tick in [1, 8, 40, 1000, 1 << 20] {
            let look = Look::default();
            let mut looks = 0;
            for turn in 1..8000 {
                look.sample::<Toy>(Instant::from_nanos(turn * tick), || looks += 1);
            }
            assert!((800..1200).contains(&looks), "{tick}: {looks}");
        }
    }
}
