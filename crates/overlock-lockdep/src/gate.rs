//! The lock of the validator's own tables.
//!
//! It needs no queue node, no allocation and no thread-local memory, and is taken only where
//! something new was seen. Its word names the process of its holder: in a child of fork the holder
//! may not exist, and whoever finds the number of another process there takes the lock over. What a
//! holder was writing then is unpublished and lost, no more.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use overlock_core::{Platform, Spin};

use overlock_linux::Linux;

/// Looks before a waiter sleeps.
const TURNS: u32 = 200;

/// How long it sleeps: nobody wakes it, so that leaving is one store.
const BACKOFF_SLEEP_NS: u64 = 1_000_000;

pub(super) struct Gate(AtomicU32);

/// Says that the caller is alone with what the gate protects.
pub(super) struct Inside<'a>(&'a Gate);

impl Gate {
    pub(super) const fn new() -> Gate {
        Gate(AtomicU32::new(0))
    }

    pub(super) fn enter(&self) -> Inside<'_> {
        loop {
            if let Some(inside) = self.enter_within(Duration::from_secs(3600)) {
                return inside;
            }
        }
    }

    /// Gives up where somebody else stays inside for `limit`.
    pub(super) fn enter_within(&self, limit: Duration) -> Option<Inside<'_>> {
        let me = process();
        let mut end = None;
        loop {
            let turns = Spin::Polls(TURNS);
            let seen = Linux::wait_until(&self.0, Relaxed, turns, |seen: u32| seen != me);
            if let Ok(seen) = seen {
                // Acquire: pairs with the release of the one that was inside before.
                if self.0.compare_exchange(seen, me, Acquire, Relaxed).is_ok() {
                    return Some(Inside(self));
                }
                continue; // somebody was faster
            }
            let now = Linux::now();
            if now >= *end.get_or_insert_with(|| now.plus(limit)) {
                return None;
            }
            Linux::backoff_sleep(BACKOFF_SLEEP_NS);
        }
    }

    /// For the child of a fork, in which nobody can be inside.
    pub(super) fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire of the next that enters.
        self.0.0.store(0, Release);
    }
}

fn process() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::getpid() as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_a_forebears_hold_does_not_count() {
        let gate = Gate::new();
        let inside = gate.enter();
        assert!(gate.enter_within(Duration::from_millis(5)).is_none());
        drop(inside);
        assert!(gate.enter_within(Duration::ZERO).is_some());
        // As fork copies it, with its holder in the parent.
        gate.0.store(process() + 1, Relaxed);
        assert!(gate.enter_within(Duration::ZERO).is_some());
    }
}
