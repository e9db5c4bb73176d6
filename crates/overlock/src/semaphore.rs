//! Counting permits: see [`Semaphore`].

use std::fmt;
use std::panic::RefUnwindSafe;
use std::time::{Duration, Instant};

use overlock_core::sleep::semaphore::MAX_PERMITS;

use crate::base as raw;
use crate::cancel::{CancelToken, Cancelled};
use crate::{System, deadline};

/// A counting semaphore: limits the number of threads at a time, first come, first served, and
/// threads with real-time priorities before others. 12 bytes.
///
/// Nobody else bypasses a waiter, not even one that wants more permits than are free. Acquiring has
/// acquire ordering, releasing has release ordering: a thread that acquires a permit sees
/// everything that was done before its release.
///
/// ```
/// use overlock::Semaphore;
///
/// static CONNECTIONS: Semaphore = Semaphore::new(2);
///
/// let first = CONNECTIONS.acquire();
/// let second = CONNECTIONS.acquire();
/// assert!(CONNECTIONS.try_acquire().is_none());
/// drop(first);
/// assert_eq!(CONNECTIONS.available_permits(), 1);
/// # drop(second);
/// ```
///
/// Not for threads of [two copies](crate#two-copies-in-a-process) of this crate.
pub struct Semaphore {
    raw: raw::Semaphore<System>,
}

/// Permits of a [`Semaphore`]; released when dropped.
///
/// It may be sent to another thread: permits belong to their owner, not to a thread.
#[must_use = "the permits are released as soon as this is dropped"]
#[clippy::has_significant_drop]
#[derive(Debug)]
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
    permits: u32,
}

impl Semaphore {
    /// The largest number of permits.
    pub const MAX_PERMITS: u32 = MAX_PERMITS;

    /// Returns a semaphore with this many permits.
    ///
    /// # Panics
    ///
    /// If that is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[inline]
    pub const fn new(permits: u32) -> Self {
        Semaphore {
            raw: raw::Semaphore::new(permits),
        }
    }

    #[inline]
    fn permit(&self, permits: u32) -> Permit<'_> {
        Permit {
            semaphore: self,
            permits,
        }
    }

    /// Takes one permit, and waits as long as necessary.
    #[inline]
    pub fn acquire(&self) -> Permit<'_> {
        self.acquire_many(1)
    }

    /// Takes one permit if one is free and nobody waits. Safe in a signal handler.
    #[inline]
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        self.try_acquire_many(1)
    }

    /// Takes one permit unless `timeout` passes first. Tries at least once.
    #[inline]
    pub fn try_acquire_for(&self, timeout: Duration) -> Option<Permit<'_>> {
        self.try_acquire_many_for(1, timeout)
    }

    /// Takes one permit unless `deadline` passes first. Tries at least once.
    #[inline]
    pub fn try_acquire_until(&self, deadline: Instant) -> Option<Permit<'_>> {
        self.try_acquire_many_until(1, deadline)
    }

    /// Takes one permit unless `cancel` is cancelled first. Tries at least once.
    ///
    /// # Errors
    ///
    /// [`Cancelled`]: no permit was taken.
    #[inline]
    pub fn acquire_cancellable(&self, cancel: &CancelToken) -> Result<Permit<'_>, Cancelled> {
        if self.raw.acquire_cancellable(cancel, None) {
            Ok(self.permit(1))
        } else {
            Err(Cancelled)
        }
    }

    /// Takes so many permits at once, and waits as long as necessary; later threads wait behind it.
    ///
    /// For more than [`MAX_PERMITS`](Self::MAX_PERMITS) it waits for ever; debug builds and the
    /// `checked` feature panic.
    #[inline]
    pub fn acquire_many(&self, permits: u32) -> Permit<'_> {
        self.raw.acquire_many(permits);
        self.permit(permits)
    }

    /// Takes so many permits if they are free and nobody waits. Safe in a signal handler.
    #[inline]
    pub fn try_acquire_many(&self, permits: u32) -> Option<Permit<'_>> {
        self.raw
            .try_acquire_many(permits)
            .then(|| self.permit(permits))
    }

    /// Takes so many permits unless `timeout` passes first. Tries at least once.
    #[inline]
    pub fn try_acquire_many_for(&self, permits: u32, timeout: Duration) -> Option<Permit<'_>> {
        self.try_acquire_many(permits)
            .or_else(|| self.acquire_slow(permits, || deadline::after(timeout)))
    }

    /// Takes so many permits unless `deadline` passes first. Tries at least once.
    #[inline]
    pub fn try_acquire_many_until(&self, permits: u32, deadline: Instant) -> Option<Permit<'_>> {
        self.try_acquire_many(permits)
            .or_else(|| self.acquire_slow(permits, || deadline::at(deadline)))
    }

    #[cold]
    #[inline(never)]
    fn acquire_slow(
        &self,
        permits: u32,
        limit: impl FnOnce() -> overlock_core::Instant,
    ) -> Option<Permit<'_>> {
        self.raw
            .acquire_many_limited(permits, Some(limit().into()), None)
            .then(|| self.permit(permits))
    }

    /// Adds permits: new ones, or those of a [forgotten](Permit::forget) [`Permit`]. Never waits;
    /// safe in a signal handler.
    ///
    /// Permits beyond [`MAX_PERMITS`](Self::MAX_PERMITS) are lost; debug builds and the `checked`
    /// feature panic.
    #[inline]
    pub fn add_permits(&self, permits: u32) {
        self.raw.release_many(permits);
    }

    /// Returns the number of free permits. A snapshot: it may be stale on return.
    #[inline]
    pub fn available_permits(&self) -> u32 {
        self.raw.available()
    }

    /// Whether a thread waits. A snapshot.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.raw.is_contended()
    }
}

impl<'a> Permit<'a> {
    /// Returns the permits' semaphore.
    #[inline]
    pub fn semaphore(s: &Self) -> &'a Semaphore {
        s.semaphore
    }

    /// Returns their number.
    #[inline]
    pub fn permits(s: &Self) -> u32 {
        s.permits
    }

    /// Takes the permits out of circulation, until they are [added](Semaphore::add_permits) again.
    #[inline]
    pub fn forget(s: Self) {
        std::mem::forget(s);
    }
}

/// A panic does not leave it half changed: no user code runs inside.
impl RefUnwindSafe for Semaphore {}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.raw.release_many(self.permits);
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available_permits", &self.available_permits())
            .finish_non_exhaustive()
    }
}
