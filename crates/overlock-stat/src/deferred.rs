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

struct Mine {
    sum: Cell<Option<Sum>>,
    /// Of the process that the sum is of.
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
            sum: Cell::new(None),
            generation: Cell::new(0),
            recorded_ns: Cell::new(0),
            is_busy: Cell::new(false),
        }
    };
}

impl Mine {
    /// Takes the sum, and gives back what `change` makes of it, unless a signal handler has
    /// interrupted just that. A handler that jumps out of it leaves the thread without sums.
    fn change<T>(&self, change: impl FnOnce(Option<Sum>) -> (Option<Sum>, T)) -> Option<T> {
        if self.is_busy.replace(true) {
            return None;
        }
        // A handler of this thread sees all or nothing.
        compiler_fence(SeqCst);
        let generation = threads::generation();
        let before = self.sum.take();
        // That of a parent is the parent's.
        let before = before.filter(|_| self.generation.get() == generation);
        let (after, result) = change(before);
        self.generation.set(generation);
        self.sum.set(after);
        compiler_fence(SeqCst);
        self.is_busy.set(false);
        Some(result)
    }
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
        let added = mine.change(|sum| {
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
        });
        added.unwrap_or(false)
    })
}

/// Records the thread's sums.
pub fn flush() {
    let sum = MINE.with(|mine| mine.change(|sum| (None, sum)));
    if let Some(sum) = sum.flatten() {
        record::sum(&sum);
    }
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
        assert!(!takes(&spot(4), now, &waited(500)));
        let sum = MINE.with(|mine| mine.change(|sum| (None, sum)));
        let sum = sum.flatten().unwrap();
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
            mine.change(|_| (Some(sum), ()));
            let inside = mine.change(|sum| {
                let handlers = mine.change(|sum| (None, sum.is_some()));
                (sum, handlers)
            });
            assert_eq!(inside, Some(None));
            let waits = mine.change(|sum| (None, sum.map(|sum| sum.waits)));
            assert_eq!(waits, Some(Some(5)));
        });
    }

    #[test]
    fn the_sum_of_a_parent_is_not_the_childs() {
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
            mine.sum.set(Some(sum));
            assert_eq!(mine.change(|sum| (None, sum.is_some())), Some(false));
        });
    }
}
