//! fork(): the mutex in the child.

use core::sync::atomic::Ordering::Relaxed;

use super::{KernelMutex, Policy, word};
use overlock_core::platform::{Atomic, Platform};
use overlock_core::raw::RawFork;

// SAFETY: only the two queues, and `owner` with pick-up, name a waiter's node.
unsafe impl<P: Platform, Y: Policy> RawFork for KernelMutex<P, Y> {
    unsafe fn forget_waiters(&self) {
        let word = self.owner.load(Relaxed);
        self.owner.store(word::without_waiters(word), Relaxed);
        self.sleepers.forget();
        self.spinners.forget();
    }
}
