//! fork(): the lock in the child.

use core::sync::atomic::Ordering::Relaxed;

use super::policy::Policy;
use super::{HANDOFF, READERS, RwSem, WAITERS, WOKEN, WRITER};
use overlock_core::platform::{Atomic, Platform};
use overlock_core::raw::RawForkRwLock;

/// Returns `count` without waiters.
fn without_waiters(count: u32) -> u32 {
    let count = count & !(WAITERS | HANDOFF | WOKEN);
    if count & WRITER == 0 {
        count
    } else {
        // I1: with a writer inside, readers have come in vain.
        count & !READERS
    }
}

// SAFETY: only the list and the spin queue name a node.
unsafe impl<P: Platform, Y: Policy> RawForkRwLock for RwSem<P, Y> {
    unsafe fn forget_waiters(&self, written: bool) {
        let count = self.count.load(Relaxed);
        overlock_core::check!(
            !written || count & WRITER != 0,
            "a lock that the caller does not hold for writing"
        );
        self.count.store(without_waiters(count), Relaxed);
        self.waiters.forget();
        self.osq.forget();
    }
}
