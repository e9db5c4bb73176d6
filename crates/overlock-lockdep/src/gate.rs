//! The lock of the validator's own tables.
//!
//! It needs no queue node, no allocation and no thread-local memory, and is taken only for
//! something new. Its word names the process of its holder. In a child of fork the holder may not
//! exist, so a thread that finds the number of another process takes the lock over. Entries that
//! the holder was writing are unpublished and lost, no more.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use overlock_core::platform::backoff_sleep;
use overlock_core::{Platform, Spin};

use overlock_linux::Linux;

/// Polls before a waiter sleeps.
const POLLS: u32 = 200;

/// Length of that sleep: nobody wakes the waiter, so that leaving is one store.
const BACKOFF_SLEEP_NS: u64 = 1_000_000;

pub(super) struct Gate(AtomicU32);

/// Proof that the caller has exclusive access to the protected tables.
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

    /// As [`enter`](Self::enter), but gives up if the gate stays taken for `limit`.
    pub(super) fn enter_within(&self, limit: Duration) -> Option<Inside<'_>> {
        let me = process();
        let mut end = None;
        loop {
            let spin = Spin::Polls(POLLS);
            let seen = Linux::wait_until(&self.0, Relaxed, spin, |seen: u32| seen != me);
            if let Ok(seen) = seen {
                // Acquire: pairs with the release of the previous holder.
                if self.0.compare_exchange(seen, me, Acquire, Relaxed).is_ok() {
                    return Some(Inside(self));
                }
                continue; // another thread was faster
            }
            let now = Linux::now();
            if now >= *end.get_or_insert_with(|| now.plus(limit)) {
                return None;
            }
            backoff_sleep::<Linux>(BACKOFF_SLEEP_NS);
        }
    }

    /// For the child of a fork, in which no thread can be inside.
    pub(super) fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire of the next holder.
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
