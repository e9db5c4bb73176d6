//! How a process stops relying on `membarrier`, in two steps.
//!
//! One side of such a pair runs often and leaves its fence out; the other runs rarely and has the
//! kernel put it in. Where the kernel is not to be asked any more, the first side has to have its
//! fence again *before* the second may stop asking: a barrier lies between the two.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Whether a pair of sides relies on `membarrier`.
#[repr(C)]
pub(super) struct Asymmetric {
    /// The side that runs often has its fence. Comes first: a restartable sequence reads it.
    symmetric: AtomicBool,
    /// So has everybody who ran without: nobody needs a barrier any more.
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

    /// From now on one of them has none. At load, before there is a second thread that uses locks.
    pub(super) fn begin(&self) {
        self.over.store(false, Relaxed);
        self.symmetric.store(false, Relaxed);
    }

    /// Whether the side that runs often leaves its fence out. Relaxed: whoever still reads yes is
    /// met by the barrier in `end`.
    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        !self.symmetric.load(Relaxed)
    }

    /// Whether the other side has to ask for a barrier.
    pub(super) fn needs_barrier(&self) -> bool {
        // Acquire: pairs with the release in `end`; the last barrier came before.
        !self.over.load(Acquire)
    }

    /// Both sides have their fences again. `barrier` lets nobody go on without who has begun so.
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

    /// Another thread that comes while the last barrier is under way must not rely on it.
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
