//! In a child of fork.

use core::sync::atomic::Ordering::Relaxed;

use super::{OverlockRw, READERS, UPGRADABLE, WRITING};
use crate::platform::{Atomic, Platform};
use crate::raw::{RawFork, RawForkRwLock, RawLock};

// SAFETY: the gate is all that may name a thread.
unsafe impl<P: Platform> RawForkRwLock for OverlockRw<P> {
    unsafe fn forget_waiters(&self, written: bool) {
        // SAFETY: the caller's promise.
        unsafe { self.gate.forget_waiters() };
        if self.gate.is_locked() {
            // SAFETY: its owner waited for the word (I4), and the calling thread waits for nothing:
            // so it is one that is gone, and its token is ().
            unsafe { self.gate.unlock(()) };
        }
        // Beside a writer all readers are such that waited. Else they cannot be told from those
        // that hold the lock.
        let kept = if written {
            WRITING
        } else {
            self.word.load(Relaxed) & (WRITING | UPGRADABLE | READERS)
        };
        self.word.store(kept, Relaxed);
    }
}
