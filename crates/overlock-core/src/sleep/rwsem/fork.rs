//! In a child of fork.

use core::sync::atomic::Ordering::Relaxed;

use super::policy::Policy;
use super::{HANDOFF, READER, READERS, RwSem, UPGRADABLE, WAITERS, WOKEN, WRITER};
use crate::platform::{Atomic, Platform};
use crate::raw::RawForkRwLock;

/// What is left of `count` without those that waited.
fn without_waiters(count: u32) -> u32 {
    let count = count & !(WAITERS | HANDOFF | WOKEN);
    match count & (WRITER | UPGRADABLE) {
        // I1: readers have come in vain.
        WRITER => count & !READERS,
        // One that waited to be upgraded still reads.
        both if both == WRITER | UPGRADABLE => (count & !WRITER) + READER,
        _ => count,
    }
}

// SAFETY: the list and the spin queue are all that names a node.
unsafe impl<P: Platform, Y: Policy> RawForkRwLock for RwSem<P, Y> {
    unsafe fn forget_waiters(&self, written: bool) {
        let count = self.count.load(Relaxed);
        crate::check!(
            !written || count & (WRITER | UPGRADABLE) == WRITER,
            "a lock that the caller does not hold for writing"
        );
        self.count.store(without_waiters(count), Relaxed);
        self.waiters.forget();
        self.osq.forget();
    }
}
