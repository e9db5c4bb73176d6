//! fork(): the mutex in the child.

use core::sync::atomic::Ordering::Relaxed;

use super::{Mutex, Policy, word};
use crate::platform::{Atomic, Platform};
use crate::raw::RawFork;

// SAFETY: only the two queues, and `owner` with pick-up, name a waiter's node.
unsafe impl<P: Platform, Y: Policy> RawFork for Mutex<P, Y> {
    unsafe fn forget_waiters(&self) {
        let word = self.owner.load(Relaxed);
        self.owner.store(word::without_waiters(word), Relaxed);
        self.sleepers.forget();
        self.spinners.forget();
    }
}
