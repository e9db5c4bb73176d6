//! Reading what the thread reads already.

use std::sync::Arc;
use std::time::{Duration, Instant};

use overlock_core::raw::RawRecursiveRwLock;

use super::{ArcReadGuard, ReadGuard, SharedLock};
use crate::deadline;
use crate::watch::How;

/// Readers that may read already. They wait for the thread that writes, and not for one that
/// waits to write: so a stream of them can keep writers out for ever. A thread that writes, or is
/// about to [upgrade](crate::guard::Guard::upgrade), waits for itself.
///
/// ```
/// let lock = overlock::RwLock::new(1);
/// let outer = lock.read();
/// let inner = lock.read_recursive();
/// assert_eq!(*outer + *inner, 2);
/// ```
impl<R: RawRecursiveRwLock, T: ?Sized> SharedLock<R, T> {
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn acquire_recursive(&self) -> R::Read {
        let (queue, attempt) = (|| self.raw.is_contended(), || self.raw.try_read_recursive());
        (self.raw).acquire(How::recursive::<R>(), 0, queue, attempt, || {
            self.raw.read_recursive()
        })
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn attempt_recursive(&self) -> Option<R::Read> {
        (self.raw).attempt(
            How::recursive::<R>(),
            || self.raw.is_contended(),
            || self.raw.try_read_recursive(),
        )
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn recursive_before(&self, limit: impl FnOnce() -> overlock_core::Instant) -> Option<R::Read> {
        (self.raw).attempt_or(
            How::recursive::<R>(),
            || self.raw.is_contended(),
            || self.raw.try_read_recursive(),
            || self.raw.read_recursive_until(limit()),
        )
    }

    /// As [`read`](Self::read), also for a thread that reads already.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn read_recursive(&self) -> ReadGuard<'_, R, T> {
        // SAFETY: just acquired.
        unsafe { Self::reader(self, self.acquire_recursive()) }
    }

    /// As [`read_recursive`](Self::read_recursive), if that needs no waiting.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_read_recursive(&self) -> Option<ReadGuard<'_, R, T>> {
        let token = self.attempt_recursive()?;
        // SAFETY: just acquired.
        Some(unsafe { Self::reader(self, token) })
    }

    /// As [`read_recursive`](Self::read_recursive), unless `timeout` passes first.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_read_recursive_for(&self, timeout: Duration) -> Option<ReadGuard<'_, R, T>> {
        let token = self.recursive_before(|| deadline::after(timeout))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::reader(self, token) })
    }

    /// As [`read_recursive`](Self::read_recursive), unless `deadline` passes first.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_read_recursive_until(&self, deadline: Instant) -> Option<ReadGuard<'_, R, T>> {
        let token = self.recursive_before(|| deadline::at(deadline))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::reader(self, token) })
    }

    /// As [`read_recursive`](Self::read_recursive), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn read_arc_recursive(self: &Arc<Self>) -> ArcReadGuard<R, T> {
        // SAFETY: just acquired.
        unsafe { Self::reader(Arc::clone(self), self.acquire_recursive()) }
    }

    /// As [`try_read_recursive`](Self::try_read_recursive), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_read_recursive_arc(self: &Arc<Self>) -> Option<ArcReadGuard<R, T>> {
        let token = self.attempt_recursive()?;
        // SAFETY: just acquired.
        Some(unsafe { Self::reader(Arc::clone(self), token) })
    }

    /// As [`try_read_recursive_for`](Self::try_read_recursive_for), with a guard that keeps the
    /// lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_read_arc_recursive_for(
        self: &Arc<Self>,
        timeout: Duration,
    ) -> Option<ArcReadGuard<R, T>> {
        let token = self.recursive_before(|| deadline::after(timeout))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::reader(Arc::clone(self), token) })
    }

    /// As [`try_read_recursive_until`](Self::try_read_recursive_until), with a guard that keeps the
    /// lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_read_arc_recursive_until(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Option<ArcReadGuard<R, T>> {
        let token = self.recursive_before(|| deadline::at(deadline))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::reader(Arc::clone(self), token) })
    }
}
