//! Acquisitions of what the thread holds already.

use core::num::NonZeroUsize;

use super::RawRwLock;
use crate::platform::Deadline;

/// A reader-writer lock whose readers can bypass waiting writers, so that a thread can read what it
/// reads already.
///
/// # Safety
///
/// As for [`RawRwLock`].
pub unsafe trait RawRecursiveRwLock: RawRwLock {
    /// Acquires the lock together with other readers; waits only for the thread that writes.
    fn read_recursive(&self) -> Self::Read;

    /// The same if no thread writes.
    fn try_read_recursive(&self) -> Option<Self::Read>;

    /// The same unless `deadline` passes first. Tries at least once; never gives up before it.
    fn read_recursive_until(&self, deadline: impl Into<Deadline>) -> Option<Self::Read>;
}

/// Tells threads apart.
///
/// # Safety
///
/// No two threads that run at a time have the same number. That of a thread never changes, nor is
/// it another one in the child of a fork.
pub unsafe trait ThreadId: Send + Sync + 'static {
    /// The number of the calling thread.
    fn current() -> NonZeroUsize;
}
