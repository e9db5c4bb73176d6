//! Short waits of a thread that waits all the time: sums of the thread's own, which become part of
//! the table with a later wait.
//!
//! To record a wait takes longer than a short wait does. The thread records it after the release,
//! and meanwhile another one takes the lock: then the thread waits once more, and so on. Threads
//! that else would seldom meet do so at each acquisition. So of such waits one is recorded by
//! itself, with the hold that follows and its holder, each [`EACH_NS`]. Of the others nothing is
//! lost but the hold. Their holder is the last one's, which is a sample.
//!
//! The sums of threads that the process ends with are lost, but for the thread that ends it.

use core::cell::Cell;
use core::sync::atomic::{Ordering::SeqCst, compiler_fence};

use crate::flight::{Holder, Waited};
use crate::spot::{NO_ENTRY, Spot};
use crate::{record, single, threads};

/// Longer waits are always recorded: that takes a small part of their time.
const SHORT_NS: u64 = 20_000;

/// A thread records a short wait by itself if the last one was so long ago.
const EACH_NS: u64 = 50_000;

/// Waits of one spot.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    pub at: Spot,
    pub waits: u32,
    pub wait_ns: u64,
    pub longest_ns: u64,
    pub passed: u64,
    pub passed_most: u32,
    /// The end of the last, and its holder.
    pub ended_ns: u64,
    pub holder: Holder,
}

/// The number of spots of which a thread has sums. Threads that wait at two take 1.21 and 1.80 of
/// the time without statistics, and 1.33 and 1.91 with one sum (two runs of `meet`, with a table).
const SUMS: usize = 2;

struct Mine {
    sums: [Cell<Option<Sum>>; SUMS],
    /// The spots that these are of, entries and objects: a look at a sum copies all of it.
    spots: [Cell<(u32, usize)>; SUMS],
    /// Of the process that the sums are of.
    generation: Cell<u32>,
    /// When a short wait was recorded by itself.
    recorded_ns: Cell<u64>,
    /// Whether the thread is at it, and not its signal handler.
    is_busy: Cell<bool>,
}

thread_local! {
    /// It has no destructor and no lazy initialisation, so it exists at any time.
    static MINE: Mine = const {
        Mine {
            sums: [const { Cell::new(None) }; SUMS],
            spots: [const { Cell::new(NO_SPOT) }; SUMS],
            generation: Cell::new(0),
            recorded_ns: Cell::new(0),
            is_busy: Cell::new(false),
        }
    };
}

const NO_SPOT: (u32, usize) = (NO_ENTRY, 0);

impl Mine {
    /// The place of the sum of this spot, or one without a sum.
    fn place(&self, spot: (u32, usize)) -> Option<usize> {
        let position = |of| self.spots.iter().position(|known| known.get() == of);
        position(spot).or_else(|| position(NO_SPOT))
    }

    /// Takes the sum at a place, and gives back what `change` makes of it, unless a signal handler
    /// has interrupted just that. A handler that jumps out of it leaves the thread without sums.
    fn change<T>(
        &self,
        place: usize,
        change: impl FnOnce(Option<Sum>) -> (Option<Sum>, T),
    ) -> Option<T> {
        if self.is_busy.replace(true) {
            return None;
        }
        // A handler of this thread sees all or nothing.
        compiler_fence(SeqCst);
        let generation = threads::generation();
        if self.generation.replace(generation) != generation {
            // Those of a parent are the parent's.
            self.sums.iter().for_each(|sum| sum.set(None));
            self.spots.iter().for_each(|spot| spot.set(NO_SPOT));
        }
        let before = self.sums[place].take();
        let (after, result) = change(before);
        let spot = after.map_or(NO_SPOT, |sum| (sum.at.entry, sum.at.object));
        self.spots[place].set(spot);
        self.sums[place].set(after);
        compiler_fence(SeqCst);
        self.is_busy.set(false);
        Some(result)
    }
}

/// Whether a wait that begins now will be part of the thread's sums, if it is as short as most at
/// its entry.
pub fn expects(at: &Spot, now: u64) -> bool {
    let recorded_ns = MINE.with(|mine| mine.recorded_ns.get());
    // Those that are recorded by themselves tell about the others: of these all is noted.
    now.saturating_sub(recorded_ns) < EACH_NS
        && at
            .entry()
            .is_some_and(|(_, entry)| !single::has_long_waits(entry))
}

/// Adds a wait that ends now to the thread's sums. Returns false if it is to be recorded by itself.
pub fn takes(at: &Spot, now: u64, waited: &Waited) -> bool {
    if waited.ns >= SHORT_NS || at.entry == NO_ENTRY || !single::may_sum(waited.ns) {
        return false;
    }
    MINE.with(|mine| {
        if now.saturating_sub(mine.recorded_ns.get()) >= EACH_NS {
            mine.recorded_ns.set(now);
            return false;
        }
        let place = mine.place((at.entry, at.object));
        let add = |sum: Option<Sum>| {
            let none = Sum {
                at: *at,
                waits: 0,
                wait_ns: 0,
                longest_ns: 0,
                passed: 0,
                passed_most: 0,
                ended_ns: now,
                holder: waited.holder,
            };
            let mut new = sum.unwrap_or(none);
            // The record of this one makes room for the next.
            if (new.at.entry, new.at.object) != (at.entry, at.object) {
                return (sum, false);
            }
            new.waits = new.waits.saturating_add(1);
            new.wait_ns += waited.ns;
            new.longest_ns = new.longest_ns.max(waited.ns);
            new.passed += u64::from(waited.passed);
            new.passed_most = new.passed_most.max(waited.passed);
            (new.ended_ns, new.holder) = (now, waited.holder);
            (Some(new), true)
        };
        let added = place.and_then(|place| mine.change(place, add));
        added.unwrap_or(false)
    })
}

/// Records the thread's sums.
pub fn flush() {
    for place in 0..SUMS {
        if let Some(sum) = taken(place) {
            record::sum(&sum);
        }
    }
}

fn taken(place: usize) -> Option<Sum> {
    let sum = MINE.with(|mine| mine.change(place, |sum| (None, sum)));
    sum.flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(entry: u32) -> Spot {
        Spot {
            entry,
            object: 8,
            site: 7,
            stack: 0,
        }
    }

    /// Fails where each short wait is recorded by itself: of a thread that waits all the time.
    #[test]
    fn of_short_waits_one_is_recorded_each_while_and_the_others_are_summed() {
        let waited = |ns| Waited::new(ns, Holder::default(), 2);
        let waits = (1..=1000).map(|wait| takes(&spot(3), EACH_NS + wait * 1000, &waited(500)));
        assert_eq!(waits.filter(|&taken| !taken).count(), 20);
        let now = EACH_NS + 1_001_000;
        assert!(!takes(&spot(3), now, &waited(SHORT_NS)));
        // One by itself, those of other spots, and of one too many.
        for (entry, is_taken) in [(4, false), (4, true), (5, false), (4, true)] {
            assert_eq!(takes(&spot(entry), now, &waited(500)), is_taken, "{entry}");
        }
        let sum = taken(0).unwrap();
        assert_eq!(
            (sum.waits, sum.wait_ns, sum.longest_ns),
            (980, 490_000, 500)
        );
        assert_eq!((sum.passed, sum.passed_most), (1960, 2));
    }

    #[test]
    fn a_handler_finds_no_sum_while_the_thread_changes_it() {
        let sum = Sum {
            at: spot(3),
            waits: 5,
            wait_ns: 50,
            longest_ns: 20,
            passed: 0,
            passed_most: 0,
            ended_ns: 0,
            holder: Holder::default(),
        };
        MINE.with(|mine| {
            mine.change(0, |_| (Some(sum), ()));
            let inside = mine.change(0, |sum| {
                let handlers = mine.change(0, |sum| (None, sum.is_some()));
                (sum, handlers)
            });
            assert_eq!(inside, Some(None));
            assert_eq!(taken(0).map(|sum| sum.waits), Some(5));
        });
    }

    #[test]
    fn the_sums_of_a_parent_are_not_the_childs() {
        MINE.with(|mine| {
            mine.generation.set(threads::generation().wrapping_sub(1));
            let sum = Sum {
                at: spot(4),
                waits: 1,
                wait_ns: 1,
                longest_ns: 1,
                passed: 0,
                passed_most: 0,
                ended_ns: 0,
                holder: Holder::default(),
            };
            for place in 0..SUMS {
                mine.sums[place].set(Some(sum));
            }
            for place in 0..SUMS {
                assert!(taken(place).is_none(), "{place}");
            }
        });
    }
}
