//! The condition variable, which lock_api 0.4 does not have.

use std::fmt;
use std::time::{Duration, Instant};

use crate::MutexGuard;
use crate::locks::{Limit, Waiters, after};

/// Whether a wait ended at its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the limit came first.
    #[inline]
    pub const fn timed_out(self) -> bool {
        self.0
    }
}

/// A condition variable: overlock's. As parking_lot's, it is for one mutex at a time.
pub struct Condvar(Waiters);

impl Condvar {
    /// Returns a condition variable without waiters.
    #[inline]
    pub const fn new() -> Self {
        Condvar(Waiters::new())
    }

    /// Notifies the longest waiter, and returns whether there was one.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    /// Notifies all waiters, and returns their number.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.0.notify_all()
    }

    fn wait_limited<T: ?Sized>(&self, guard: &MutexGuard<'_, T>, limit: Limit) -> bool {
        // SAFETY: the wait leaves the mutex locked.
        let raw = unsafe { MutexGuard::mutex(guard).raw() };
        // SAFETY: the guard's acquisition; its callers have borrowed it mutably, so nobody has a
        // reference into the data.
        unsafe { self.0.wait(&raw.0, limit) }
    }

    /// Releases the mutex, waits until notified, and acquires the mutex again.
    ///
    /// # Panics
    ///
    /// If a thread waits with another mutex; so do the methods below.
    #[inline]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_limited(guard, None);
    }

    /// As [`wait`](Self::wait), until the limit.
    #[inline]
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        limit: Instant,
    ) -> WaitTimeoutResult {
        WaitTimeoutResult(!self.wait_limited(guard, Some(limit)))
    }

    /// As [`wait`](Self::wait), for so long.
    #[inline]
    pub fn wait_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        WaitTimeoutResult(!self.wait_limited(guard, after(timeout)))
    }

    /// After the limit the condition is not asked again, as in parking_lot 0.12.
    fn wait_while_before<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        limit: Limit,
    ) -> WaitTimeoutResult {
        while condition(guard) {
            if !self.wait_limited(guard, limit) {
                return WaitTimeoutResult(true);
            }
        }
        WaitTimeoutResult(false)
    }

    /// Waits until the condition is false.
    #[inline]
    pub fn wait_while<T: ?Sized, F>(&self, guard: &mut MutexGuard<'_, T>, condition: F)
    where
        F: FnMut(&mut T) -> bool,
    {
        self.wait_while_before(guard, condition, None);
    }

    /// As [`wait_while`](Self::wait_while), until the limit.
    #[inline]
    pub fn wait_while_until<T: ?Sized, F>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: F,
        limit: Instant,
    ) -> WaitTimeoutResult
    where
        F: FnMut(&mut T) -> bool,
    {
        self.wait_while_before(guard, condition, Some(limit))
    }

    /// As [`wait_while`](Self::wait_while), for so long.
    #[inline]
    pub fn wait_while_for<T: ?Sized, F>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: F,
        timeout: Duration,
    ) -> WaitTimeoutResult
    where
        F: FnMut(&mut T) -> bool,
    {
        self.wait_while_before(guard, condition, after(timeout))
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Condvar { .. }")
    }
}
