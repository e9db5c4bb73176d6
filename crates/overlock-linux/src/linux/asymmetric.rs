//! How a process stops relying on `membarrier`, in two steps.
//!
//! One side of such a pair runs often and leaves its fence out; the other runs rarely and has the
//! kernel put it in. Before the second side may stop calling the kernel, the first side must have
//! its fence *again*: a barrier lies between the two.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Whether a pair of sides relies on `membarrier`.
pub(super) struct Asymmetric {
    /// The frequent side has its fence.
    symmetric: AtomicBool,
    /// No thread without the fence is left: nobody needs a barrier any more.
    over: AtomicBool,
}

impl Asymmetric {
    /// Both sides have their fences.
    pub(super) const fn new() -> Self {
        Asymmetric {
            symmetric: AtomicBool::new(true),
            over: AtomicBool::new(true),
        }
    }

    /// Lets the frequent side leave its fence out. At load, before a second thread uses locks.
    pub(super) fn begin(&self) {
        self.over.store(false, Relaxed);
        self.symmetric.store(false, Relaxed);
    }

    /// Whether the frequent side leaves its fence out. Relaxed: the barrier in `end` reaches a
    /// thread that still reads yes.
    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        !self.symmetric.load(Relaxed)
    }

    /// Whether the other side has to call a barrier.
    pub(super) fn needs_barrier(&self) -> bool {
        // Acquire: pairs with the release in `end`; the last barrier came before.
        !self.over.load(Acquire)
    }

    /// Restores the fences of both sides. `barrier` reaches each thread that has begun without.
    pub(super) fn end(&self, barrier: impl FnOnce()) {
        self.symmetric.store(true, Relaxed);
        if self.needs_barrier() {
            barrier();
            // Release: pairs with the acquire in `needs_barrier`.
            self.over.store(true, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that arrives while the last barrier is under way must not rely on it.
    #[test]
    fn barriers_are_needed_until_the_last_one_is_through() {
        let pair = Asymmetric::new();
        assert!(!pair.is_on() && !pair.needs_barrier());
        pair.begin();
        assert!(pair.is_on() && pair.needs_barrier());
        let mut barriers = 0;
        pair.end(|| {
            assert!(!pair.is_on() && pair.needs_barrier());
            barriers += 1;
        });
        assert!(!pair.is_on() && !pair.needs_barrier());
        pair.end(|| barriers += 1);
        assert_eq!(barriers, 1);
    }
}
