//! System calls beyond `futex`: asked for until the process [says](super::Linux::use_futex_alone)
//! that it does without, by nobody after that.
//!
//! A filter may end who asks. So whoever asks counts itself first, and who says it waits for those:
//! none of them is between its look at the word below and its call when the filter comes.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::Platform;

use super::Linux;

/// In a gate: nobody asks any more. Below it, how many threads ask.
const ALONE: u32 = 1 << 31;

struct Gate(AtomicU32);

static GATE: Gate = Gate(AtomicU32::new(0));

/// How long, and between which looks, those that ask are waited for. Each is done as soon as it has
/// a CPU; one that a handler of a signal has interrupted, in which the process restricts itself, is
/// not before that returns.
const PATIENCE_NS: u64 = 1_000_000_000;
const BACKOFF_SLEEP_NS: u64 = 50_000;

impl Gate {
    fn ask<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        if !self.is_open() {
            return None;
        }
        // Acquire: pairs with the release in `end`. What was given up before is seen by who is
        // refused.
        let granted = self.0.fetch_add(1, Acquire) & ALONE == 0;
        let answer = granted.then(call);
        // Release: pairs with the look in `end`.
        self.0.fetch_sub(1, Release);
        answer
    }

    fn is_open(&self) -> bool {
        // Acquire: as in `ask`.
        self.0.load(Acquire) & ALONE == 0
    }

    fn end(&self) {
        // Release: pairs with `ask`.
        self.0.fetch_or(ALONE, Release);
        let until = Linux::now().plus_nanos(PATIENCE_NS);
        // Acquire: pairs with the end of `ask`.
        while self.0.load(Acquire) != ALONE && Linux::now() < until {
            Linux::backoff_sleep(BACKOFF_SLEEP_NS);
        }
    }
}

/// Makes system calls, unless there are to be none.
pub fn ask<T>(call: impl FnOnce() -> T) -> Option<T> {
    GATE.ask(call)
}

/// Whether there may be more than `futex`. A snapshot.
pub fn are_granted() -> bool {
    GATE.is_open()
}

/// There are no more, and when this returns nobody is at one.
pub(super) fn end() {
    GATE.end();
}

/// In a child of fork: those that asked are not there.
pub(super) fn forget_others() {
    GATE.0.fetch_and(ALONE, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where `ask` does not count, and where it does not look again once it has.
    #[test]
    fn who_asks_is_waited_for_and_who_comes_later_is_refused() {
        let gate = Gate(AtomicU32::new(0));
        let (inside, over) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let answer = gate.ask(|| {
                    inside.store(1, Release);
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    over.store(1, Relaxed);
                    7
                });
                assert_eq!(answer, Some(7));
            });
            while inside.load(Acquire) == 0 {
                std::thread::yield_now();
            }
            gate.end();
            assert_eq!(over.load(Relaxed), 1);
        });
        assert_eq!(gate.ask(|| ()), None);
    }
}
