//! In a child of fork.

use core::sync::atomic::Ordering::Relaxed;

use super::{FREE, HANDED, NOTHING, Overlock, Policy};
use crate::platform::{Atomic, Platform};
use crate::raw::RawFork;

// SAFETY: the list, `chosen` and the entry in the kick table are all that names a node; the last has gone with all others.
unsafe impl<P: Platform, Y: Policy> RawFork for Overlock<P, Y> {
    unsafe fn forget_waiters(&self) {
        if self.locked.load(Relaxed) == HANDED {
            // The one that it was handed to is gone.
            self.locked.store(FREE, Relaxed);
        }
        // Not by `set_kick`: the kick table counts nobody any more.
        self.kick.store(NOTHING, Relaxed);
        self.chosen.store(0, Relaxed);
        self.sleepers.forget();
        self.guard.forget();
    }
}
