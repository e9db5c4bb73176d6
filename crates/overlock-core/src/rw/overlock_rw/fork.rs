//! In a child of fork.
//!
//! A gate that is held may be a writer's that writes, or one's that was on its way: a writer that waited for readers, a reader that passed,
//! an upgradable one that came or upgraded. The calling thread is the first, if it is any, and says so. Of one that is gone it shows in that there
//! are readers. Where there are none, the gate stays closed: that writer held the lock, as far as anybody can tell.

use core::sync::atomic::Ordering::Relaxed;

use super::{OverlockRw, Policy, count};
use crate::platform::{Atomic, Platform};
use crate::raw::{RawFork, RawForkRwLock};

// SAFETY: the gate, `drainer` and the list are all that names a node; the count in the kick table has gone with all others.
unsafe impl<P: Platform, Y: Policy> RawForkRwLock for OverlockRw<P, Y> {
    unsafe fn forget_waiters(&self, written: bool) {
        // SAFETY: the caller's promise.
        unsafe { self.gate.forget_waiters() };
        self.drainer.store(0, Relaxed);
        self.waiting.forget();
        let readers = self.readers.load(Relaxed);
        if written {
            // R1: readers have come in vain, and have not left yet.
            self.readers.store(readers - count(readers), Relaxed);
        } else if count(readers) != 0 || self.gate.is_open() || self.has_entries() {
            self.gate.reopen();
            if self.has_entries() {
                // R5: whoever waited for them has ended the bias.
                self.switch_on();
            }
        }
    }
}
