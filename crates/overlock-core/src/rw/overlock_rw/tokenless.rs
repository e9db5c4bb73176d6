//! Releases for callers that cannot keep a token: a C program's.

use core::sync::atomic::Ordering::Relaxed;

use super::{OFF, OverlockRw, Policy, Read, Write};
use crate::platform::{Atomic, Platform};
use crate::raw::RawRwLock;

impl<P: Platform, Y: Policy> OverlockRw<P, Y> {
    /// Releases a reader's acquisition whose token is forgotten: the lock finds by itself how that one came.
    ///
    /// # Safety
    ///
    /// The calling thread has acquired the lock for reading, and has not released it since; the tokens of all its acquisitions of this
    /// lock are forgotten.
    pub unsafe fn unlock_read_without_token(&self) {
        // SAFETY: the caller's promise. Of several acquisitions each with an entry comes first; which of them is whose does not matter.
        unsafe { self.unlock_read(Read(self.own_entry())) }
    }

    /// Releases a writer's acquisition whose token is forgotten.
    ///
    /// # Safety
    ///
    /// As for [`RawRwLock::unlock_write`].
    pub unsafe fn unlock_write_without_token(&self) {
        // SAFETY: the caller's promise; all tokens of writers are the same.
        unsafe { self.unlock_write(Write(())) }
    }

    /// The entry by which the calling thread holds the lock, if that is how it does. Relaxed: only the thread itself writes its entries, and the
    /// lock keeps its id once it has one.
    fn own_entry(&self) -> Option<&'static P::U32> {
        let id = self.bias.load(Relaxed) & !OFF;
        if id == 0 {
            return None;
        }
        let entries = &P::slots()[P::slot()?].reading.0;
        entries.iter().find(|entry| entry.load(Relaxed) == id)
    }
}
