//! fork(): the lock in the child.

use core::sync::atomic::Ordering::Relaxed;

use super::policy::Policy;
use super::{HANDOFF, READER, READERS, RwSem, UPGRADABLE, WAITERS, WOKEN, WRITER};
use overlock_core::platform::{Atomic, Platform};
use overlock_core::raw::RawForkRwLock;

/// Returns `count` without waiters.
fn without_waiters(count: u32) -> u32 {
    let count = count & !(WAITERS | HANDOFF | WOKEN);
    match count & (WRITER | UPGRADABLE) {
        // I1: with a writer inside, readers have come in vain.
        WRITER => count & !READERS,
        // A reader that waited for its upgrade still reads.
        both if both == WRITER | UPGRADABLE => (count & !WRITER) + READER,
        _ => count,
    }
}

// SAFETY: only the list and the spin queue name a node.
unsafe impl<P: Platform, Y: Policy> RawForkRwLock for RwSem<P, Y> {
    unsafe fn forget_waiters(&self, written: bool) {
        let count = self.count.load(Relaxed);
        overlock_core::check!(
            !written || count & (WRITER | UPGRADABLE) == WRITER,
            "a lock that the caller does not hold for writing"
        );
        self.count.store(without_waiters(count), Relaxed);
        self.waiters.forget();
        self.osq.forget();
    }
}
