//! Waiting for a condition on what a lock protects: see [`Condvar`].

use std::fmt;
use std::time::{Duration, Instant};

use overlock_core::raw::RawLock;
use overlock_core::sleep::condvar as raw;

use crate::cancel::{CancelToken, Cancelled};
use crate::guard::{Guard, Place};
use crate::lock::Exclusive;
use crate::{Linux, deadline, watch};

/// A condition variable, for any guard of a [`Lock`](crate::lock::Lock): of a
/// [`Mutex`](crate::Mutex), a [`SpinLock`](crate::SpinLock), an [`RtMutex`](crate::RtMutex), or an
/// `Arc` of one. 8 bytes.
///
/// Threads that wait at the same time may do so with different locks.
///
/// A waiter polls for up to 20 us before it sleeps, rarely where that is in vain.
///
/// Each notification wakes the one that has waited longest, and [`notify_all`](Self::notify_all)
/// wakes waiters as they get the lock, not all of them at once. A wait ends without a notification
/// only where a thread has no queue node left (more than 16383 threads), so use
/// [`wait_while`](Self::wait_while), as with any condition variable. What a notifier did before it
/// notified is visible to whom it notified.
///
/// ```
/// use overlock::{Condvar, Mutex};
///
/// static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// static FILLED: Condvar = Condvar::new();
///
/// std::thread::scope(|scope| {
///     let consumer = scope.spawn(|| {
///         let mut queue = QUEUE.lock();
///         FILLED.wait_while(&mut queue, |queue| queue.is_empty());
///         queue.pop()
///     });
///     QUEUE.lock().push(7);
///     FILLED.notify_one();
///     assert_eq!(consumer.join().unwrap(), Some(7));
/// });
/// ```
///
/// A guard that is mapped to a part of the data cannot wait: the part might be gone when the wait
/// ends.
///
/// ```compile_fail,E0308
/// # use overlock::{Condvar, Mutex, MutexGuard};
/// let lock = Mutex::new((0, 1));
/// let mut part = MutexGuard::map(lock.lock(), |pair| &mut pair.1);
/// Condvar::new().wait(&mut part);
/// ```
#[derive(Default)]
pub struct Condvar {
    raw: raw::Condvar<Linux>,
}

/// Whether a wait with a limit was ended by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the limit came first. The lock has been acquired again either way.
    #[inline]
    pub const fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// A new condition variable that nobody waits for.
    #[inline]
    pub const fn new() -> Self {
        Condvar {
            raw: raw::Condvar::new(),
        }
    }

    /// Notifies the waiter that has waited longest; whether there was one. The caller need not hold
    /// the lock.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.raw.notify_one()
    }

    /// Notifies all waiters; how many there were. The caller need not hold the lock.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.raw.notify_all()
    }

    /// Releases the lock, waits until notified, and acquires the lock again, however long that
    /// takes.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait<P: Place<Raw = R>, R: RawLock>(&self, guard: &mut Guard<P, Exclusive<R>>) {
        self.wait_limited(guard, None, None);
    }

    /// Waits as [`wait`](Self::wait) does until `condition` is false. Does not wait if it is false
    /// already.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait_while<P, R, F>(&self, guard: &mut Guard<P, Exclusive<R>>, mut condition: F)
    where
        P: Place<Raw = R>,
        R: RawLock,
        F: FnMut(&mut P::Data) -> bool,
    {
        while condition(&mut **guard) {
            self.wait(guard);
        }
    }

    /// As [`wait`](Self::wait), unless `timeout` passes first.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait_for<P: Place<Raw = R>, R: RawLock>(
        &self,
        guard: &mut Guard<P, Exclusive<R>>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        let end = deadline::after(timeout);
        WaitTimeoutResult(!self.wait_limited(guard, Some(end), None))
    }

    /// As [`wait`](Self::wait), unless `deadline` passes first.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait_until<P: Place<Raw = R>, R: RawLock>(
        &self,
        guard: &mut Guard<P, Exclusive<R>>,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        let end = deadline::at(deadline);
        WaitTimeoutResult(!self.wait_limited(guard, Some(end), None))
    }

    /// As [`wait_while`](Self::wait_while), unless `timeout` passes first. `timed_out` says that it
    /// has passed and the condition is still true.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait_while_for<P, R, F>(
        &self,
        guard: &mut Guard<P, Exclusive<R>>,
        condition: F,
        timeout: Duration,
    ) -> WaitTimeoutResult
    where
        P: Place<Raw = R>,
        R: RawLock,
        F: FnMut(&mut P::Data) -> bool,
    {
        self.wait_while_before(guard, condition, deadline::after(timeout))
    }

    /// As [`wait_while`](Self::wait_while), unless `deadline` passes first. `timed_out` says that
    /// it has passed and the condition is still true.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait_while_until<P, R, F>(
        &self,
        guard: &mut Guard<P, Exclusive<R>>,
        condition: F,
        deadline: Instant,
    ) -> WaitTimeoutResult
    where
        P: Place<Raw = R>,
        R: RawLock,
        F: FnMut(&mut P::Data) -> bool,
    {
        self.wait_while_before(guard, condition, deadline::at(deadline))
    }

    /// As [`wait`](Self::wait), unless `cancel` is cancelled first. The lock has been acquired
    /// again either way.
    ///
    /// # Errors
    ///
    /// [`Cancelled`]: there was no notification.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait_cancellable<P: Place<Raw = R>, R: RawLock>(
        &self,
        guard: &mut Guard<P, Exclusive<R>>,
        cancel: &CancelToken,
    ) -> Result<(), Cancelled> {
        if self.wait_limited(guard, None, Some(cancel)) {
            Ok(())
        } else {
            Err(Cancelled)
        }
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    fn wait_while_before<P, R, F>(
        &self,
        guard: &mut Guard<P, Exclusive<R>>,
        mut condition: F,
        end: overlock_core::Instant,
    ) -> WaitTimeoutResult
    where
        P: Place<Raw = R>,
        R: RawLock,
        F: FnMut(&mut P::Data) -> bool,
    {
        let mut notified = true;
        while condition(&mut **guard) {
            if !notified {
                return WaitTimeoutResult(true);
            }
            notified = self.wait_limited(guard, Some(end), None);
        }
        WaitTimeoutResult(false)
    }

    /// Whether it was notified. The guard has the lock again, whatever the answer.
    #[cfg_attr(feature = "lockdep", track_caller)]
    fn wait_limited<P: Place<Raw = R>, R: RawLock>(
        &self,
        guard: &mut Guard<P, Exclusive<R>>,
        end: Option<overlock_core::Instant>,
        cancel: Option<&CancelToken>,
    ) -> bool {
        let (here, end) = (watch::here(), end.map(Into::into));
        guard.with_token(|lock, token| {
            // SAFETY: the guard's own acquisition, on its thread; nobody has a reference into the
            // data, since the guard is borrowed mutably.
            let wait = || unsafe { self.raw.wait_limited(lock, token, end, cancel) };
            watch::asleep(here, lock, wait)
        })
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Condvar { .. }")
    }
}
