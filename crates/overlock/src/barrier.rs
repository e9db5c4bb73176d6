//! Threads that wait for each other: see [`Barrier`].

use std::fmt;

use crate::System;
use crate::base as raw;

/// Holds threads back until so many of them have arrived, again and again. 20 bytes.
///
/// Every thread sees afterwards what each of the others did before it arrived.
///
/// ```
/// use overlock::Barrier;
///
/// static PHASE: Barrier = Barrier::new(3);
///
/// let leaders = std::thread::scope(|scope| {
///     let threads = [(); 3].map(|()| scope.spawn(|| PHASE.wait().is_leader()));
///     threads.map(|thread| thread.join().unwrap())
/// });
/// assert_eq!(leaders.iter().filter(|leader| **leader).count(), 1);
/// ```
///
/// Not for threads of [two copies](crate#two-copies-in-a-process) of this crate.
pub struct Barrier {
    raw: raw::Barrier<System>,
}

/// Whether a thread was the last to arrive at a [`Barrier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// True for one thread of each round, the last.
    #[inline]
    pub const fn is_leader(&self) -> bool {
        self.0
    }
}

impl Barrier {
    /// Returns a barrier for so many threads. For 0 or 1 nobody waits.
    #[inline]
    pub const fn new(threads: usize) -> Self {
        // Linux has at most 2^22 threads, so a barrier for more than this is never complete.
        const MOST: usize = u32::MAX as usize;
        let threads = if threads < MOST { threads } else { MOST };
        Barrier {
            raw: raw::Barrier::new(threads as u32),
        }
    }

    /// Waits until as many threads have arrived as the barrier is for.
    #[inline]
    pub fn wait(&self) -> BarrierWaitResult {
        BarrierWaitResult(self.raw.wait())
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}
