//! What a look at a lock's word has cost lately: how far apart the CPUs are that use it.
//!
//! Between two CPUs of one core or one last-level cache a cache line takes some 30 ns, between others 150 and more. Where sections are short that decides
//! whether two CPUs get more done with a lock than one, and so how long a waiter had better stay away from it. A look, timed, tells. It also tells
//! whether anybody has written the word in the meantime: it costs next to nothing otherwise.
//!
//! These are hints: locks whose addresses fall on the same entry share it, updates may get lost, and nothing is ordered by them. So
//! they are not of the platform's atomics, and checkers, which have no costs, do without.

use core::sync::atomic::{AtomicU16, Ordering::Relaxed};

const ENTRIES: usize = 256;

/// Looks count for so much at most: one at whose time the thread lost its CPU says nothing.
const MOST_NS: u64 = 512;

/// What a look costs, on average of the last eight or so.
#[derive(Debug, Default)]
pub struct Look(AtomicU16);

impl Look {
    /// In nanoseconds; 0 at first.
    pub fn nanos(&self) -> u64 {
        self.0.load(Relaxed).into()
    }

    /// One has taken `nanos`.
    pub fn record(&self, nanos: u64) {
        let before = self.0.load(Relaxed);
        let new = nanos.min(MOST_NS) as u16;
        self.0.store(before - before / 8 + new / 8, Relaxed);
    }
}

/// The entries: all zero at first.
#[derive(Debug)]
pub struct Looks([Look; ENTRIES]);

impl Looks {
    /// Nothing is known.
    pub const fn new() -> Self {
        Looks([const { Look(AtomicU16::new(0)) }; ENTRIES])
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

    #[test]
    fn it_follows_what_looks_cost() {
        let looks = Looks::new();
        let look = looks.at(7);
        assert_eq!(look.nanos(), 0);
        (0..30).for_each(|_| look.record(300));
        assert!((270..=300).contains(&look.nanos()));
        (0..30).for_each(|_| look.record(40));
        assert!((40..70).contains(&look.nanos()));
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
        assert!((MOST_NS - 8..=MOST_NS).contains(&look.nanos()));
    }
}
