//! fork(): the lock in the child.

use core::sync::atomic::Ordering::Relaxed;

use super::{OverlockRw, READERS, UPGRADABLE, WRITING};
use crate::platform::{Atomic, FutexPlatform};
use crate::raw::{RawFork, RawForkRwLock, RawLock};

// SAFETY: only the gate may name a thread.
unsafe impl<P: FutexPlatform> RawForkRwLock for OverlockRw<P> {
    unsafe fn forget_waiters(&self, written: bool) {
        // SAFETY: the caller's promise.
        unsafe { self.gate.forget_waiters() };
        if self.gate.is_locked() {
            // SAFETY: its owner waits for the word (I4), and the calling thread waits for nothing.
            // So the owner exists only in the parent, and its token is ().
            unsafe { self.gate.unlock(()) };
        }
        // Readers counted behind a writer all waited. Without a writer, readers that backed out
        // cannot be distinguished from those that hold the lock.
        let kept = if written {
            WRITING
        } else {
            self.word.load(Relaxed) & (WRITING | UPGRADABLE | READERS)
        };
        self.word.store(kept, Relaxed);
    }
}
