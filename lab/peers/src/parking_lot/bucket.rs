//! The queue of parked threads with its guard: in parking_lot, a bucket of the table.
//!
//! The guard is a futex word, as in [`RustStd`](crate::RustStd), whose waiters spin in the
//! [`Rounds`] of the crate's own. The crate's guard is a word lock, which has a queue in place of
//! the futex.

use core::sync::atomic::Ordering::Relaxed;

use overlock_core::node::NodeId;
use overlock_core::platform::{Atomic, FutexPlatform, Pause, Platform};

use crate::word::{FREE, OWNED, Word};

/// Rounds of spinning before a thread sleeps: the first ones pause, the others yield.
const ROUNDS: u32 = 10;
const PAUSES: u32 = 3;

/// The time between two handoffs is random, up to this.
const FAIR_NS: u32 = 1_000_000;

/// The state of a node whose waiter is about to join, or in the queue.
pub const WAITS: u32 = 1;

/// The rounds that a waiter has spun.
#[derive(Debug, Default)]
pub struct Rounds(u32);

impl Rounds {
    /// Spins for one more round. Returns false, at once, after the last.
    pub fn spin<P: FutexPlatform>(&mut self) -> bool {
        if self.0 == ROUNDS {
            return false;
        }
        self.0 += 1;
        if self.0 <= PAUSES {
            P::pause(Pause::Iterations(1 << self.0));
        } else {
            P::yield_cpu();
        }
        true
    }
}

/// A line of its own, as in the table.
#[derive(Debug)]
#[repr(align(64))]
pub struct Bucket<P: Platform> {
    guard: Word<P>,
    head: P::U32,
    tail: P::U32,
    /// The time of the next handoff, in nanoseconds, as far as they fit.
    pub fair_at: P::Usize,
    seed: P::U32,
}

impl<P: FutexPlatform> Bucket<P> {
    pub fn new() -> Self {
        Bucket {
            guard: Word::new(),
            head: Atomic::ZERO,
            tail: Atomic::ZERO,
            fair_at: Atomic::ZERO,
            seed: P::U32::new(1),
        }
    }

    /// Runs `work` under the guard.
    pub fn guarded<R>(&self, work: impl FnOnce() -> R) -> R {
        if self.guard.take().is_err() {
            self.wait();
        }
        let result = work();
        self.guard.release();
        result
    }

    /// Waits for the guard, and takes it.
    #[cold]
    fn wait(&self) {
        let mut rounds = Rounds::default();
        let mut has_slept = false;
        loop {
            match self.guard.0.load(Relaxed) {
                FREE if !has_slept => {
                    if self.guard.take().is_ok() {
                        return;
                    }
                }
                OWNED if rounds.spin::<P>() => {}
                _ => {
                    // Others may sleep too, so that the word is never just owned after a sleep.
                    if self.guard.contend() {
                        return;
                    }
                    self.guard.sleep();
                    has_slept = true;
                    rounds = Rounds::default();
                }
            }
        }
    }

    /// Under the guard: the node joins the queue.
    pub fn push(&self, id: NodeId) {
        let node = id.node::<P>();
        node.next.store(0, Relaxed);
        node.state.store(WAITS, Relaxed);
        match NodeId::from_bits(self.tail.load(Relaxed) as u16) {
            Some(last) => last.node::<P>().next.store(id.bits().into(), Relaxed),
            None => self.head.store(id.bits().into(), Relaxed),
        }
        self.tail.store(id.bits().into(), Relaxed);
    }

    /// Under the guard: takes the first out. Returns whether others are left, too.
    pub fn pop(&self) -> Option<(NodeId, bool)> {
        let first = NodeId::from_bits(self.head.load(Relaxed) as u16)?;
        let next = first.node::<P>().next.load(Relaxed);
        self.head.store(next, Relaxed);
        if next == 0 {
            self.tail.store(0, Relaxed);
        }
        Some((first, next != 0))
    }

    /// Under the guard: whether the time of a handoff has come. Then chooses the next time.
    pub fn is_fair(&self) -> bool {
        let now = P::now().as_nanos() as usize;
        let late = now.wrapping_sub(self.fair_at.load(Relaxed));
        if late == 0 || late > isize::MAX as usize {
            return false;
        }
        // Xorshift (Marsaglia, 2003).
        let mut seed = self.seed.load(Relaxed);
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        self.seed.store(seed, Relaxed);
        let next = now.wrapping_add((seed % FAIR_NS) as usize);
        self.fair_at.store(next, Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use overlock_core::toy::stage::actor;
    use overlock_core::toy::{Toy, halts};

    use super::*;

    /// Fails if a waiter that has slept leaves the word owned: the second sleeper is then not
    /// woken.
    #[test]
    fn every_sleeper_gets_the_guard() {
        let bucket: &'static Bucket<Toy> = Box::leak(Box::new(Bucket::new()));
        let sleepers = bucket.guarded(|| {
            [1, 2].map(|thread| {
                let sleeper = actor(thread, || bucket.guarded(|| ()));
                sleeper.sleep();
                sleeper
            })
        });
        for sleeper in sleepers {
            assert!(sleeper.is_kicked());
            sleeper.end();
        }
        assert!(!bucket.guard.is_locked());
        bucket.guarded(|| ());
        assert_eq!(halts(), 0);
    }
}
