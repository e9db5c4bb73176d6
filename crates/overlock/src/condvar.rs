//! Waiting for a condition on the data of a lock: see [`Condvar`].

use std::fmt;
use std::time::{Duration, Instant};

use overlock_core::raw::RawLock;

use crate::base as raw;
use crate::cancel::{CancelToken, Cancelled};
use crate::guard::{Guard, Place, sealed::Sealed};
use crate::lock::Exclusive;
use crate::{RawCondvar, System, deadline, watch};

/// A condition variable, for any guard of a [`Lock`](crate::lock::Lock): of a
/// [`Mutex`](crate::Mutex), a [`SpinLock`](crate::SpinLock), an [`RtMutex`](crate::RtMutex), or an
/// `Arc` of one. 8 bytes.
///
/// Threads may wait with different locks at the same time.
///
/// A waiter polls for up to 20 us before it sleeps. After polls in vain it polls less often.
///
/// Each notification wakes the longest waiter. [`notify_all`](Self::notify_all) does not wake all
/// waiters at once, but each as it gets the lock. A wait ends without a notification only for a
/// thread without a queue node (more than 16383 threads), so use [`wait_while`](Self::wait_while),
/// as with any condition variable. A notified thread sees everything that its notifier did before.
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
/// No guard of std or parking_lot will do, nor one of a reader-writer lock:
///
/// ```compile_fail,E0277
/// let lock = std::sync::Mutex::new(0);
/// overlock::Condvar::new().wait(&mut lock.lock().unwrap());
/// ```
///
/// A guard that is mapped to a part of the data cannot wait: the part might be gone when the wait
/// ends.
///
/// ```compile_fail,E0277
/// # use overlock::{Condvar, Mutex, MutexGuard};
/// let lock = Mutex::new((0, 1));
/// let mut part = MutexGuard::map(lock.lock(), |pair| &mut pair.1);
/// Condvar::new().wait(&mut part);
/// ```
///
/// Not for threads of [two copies](crate#two-copies-in-a-process) of this crate.
#[derive(Default)]
pub struct Condvar {
    raw: raw::Condvar<System>,
}

/// Whether a wait ended at its limit.
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
    /// Returns a condition variable without waiters.
    #[inline]
    pub const fn new() -> Self {
        Condvar {
            raw: raw::Condvar::new(),
        }
    }

    /// Returns the condition variable that this one is made of.
    #[inline]
    pub const fn raw(&self) -> &RawCondvar {
        &self.raw
    }

    /// Notifies the longest waiter, and returns whether there was one. The caller need not hold the
    /// lock.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.raw.notify_one()
    }

    /// Notifies all waiters, and returns their number. The caller need not hold the lock.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.raw.notify_all()
    }

    /// Releases the lock, waits until notified, and acquires the lock again, however long that
    /// takes.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait<G: WaitGuard>(&self, guard: &mut G) {
        guard.wait_limited(self, None, None);
    }

    /// Waits as [`wait`](Self::wait) does until `condition` is false. Does not wait if it is false
    /// at once.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait_while<G, F>(&self, guard: &mut G, mut condition: F)
    where
        G: WaitGuard,
        F: FnMut(&mut G::Data) -> bool,
    {
        while condition(guard.data()) {
            self.wait(guard);
        }
    }

    /// As [`wait`](Self::wait), unless `timeout` passes first.
    #[doc(alias = "wait_timeout")]
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait_for<G: WaitGuard>(&self, guard: &mut G, timeout: Duration) -> WaitTimeoutResult {
        let end = deadline::after(timeout);
        WaitTimeoutResult(!guard.wait_limited(self, Some(end), None))
    }

    /// As [`wait`](Self::wait), unless `deadline` passes first.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait_until<G: WaitGuard>(&self, guard: &mut G, deadline: Instant) -> WaitTimeoutResult {
        let end = deadline::at(deadline);
        WaitTimeoutResult(!guard.wait_limited(self, Some(end), None))
    }

    /// As [`wait_while`](Self::wait_while), unless `timeout` passes first. `timed_out` says that it
    /// has passed and the condition is still true.
    #[doc(alias = "wait_timeout_while")]
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait_while_for<G, F>(
        &self,
        guard: &mut G,
        condition: F,
        timeout: Duration,
    ) -> WaitTimeoutResult
    where
        G: WaitGuard,
        F: FnMut(&mut G::Data) -> bool,
    {
        self.wait_while_before(guard, condition, deadline::after(timeout))
    }

    /// As [`wait_while`](Self::wait_while), unless `deadline` passes first. `timed_out` says that
    /// it has passed and the condition is still true.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn wait_while_until<G, F>(
        &self,
        guard: &mut G,
        condition: F,
        deadline: Instant,
    ) -> WaitTimeoutResult
    where
        G: WaitGuard,
        F: FnMut(&mut G::Data) -> bool,
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
    pub fn wait_cancellable<G: WaitGuard>(
        &self,
        guard: &mut G,
        cancel: &CancelToken,
    ) -> Result<(), Cancelled> {
        if guard.wait_limited(self, None, Some(cancel)) {
            Ok(())
        } else {
            Err(Cancelled)
        }
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    fn wait_while_before<G, F>(
        &self,
        guard: &mut G,
        mut condition: F,
        end: overlock_core::Instant,
    ) -> WaitTimeoutResult
    where
        G: WaitGuard,
        F: FnMut(&mut G::Data) -> bool,
    {
        let mut notified = true;
        while condition(guard.data()) {
            if !notified {
                return WaitTimeoutResult(true);
            }
            notified = guard.wait_limited(self, Some(end), None);
        }
        WaitTimeoutResult(false)
    }
}

/// The guard of a [`Lock`](crate::lock::Lock), with which a [`Condvar`] waits, or a mutable
/// reference to one. Sealed.
#[diagnostic::on_unimplemented(
    message = "a `Condvar` cannot wait with `{Self}`",
    label = "this is not the guard of an overlock mutex",
    note = "a Condvar waits with a guard of overlock's Mutex, SpinLock, RtMutex or another Lock",
    note = "guards of reader-writer locks, mapped guards, and those of std and parking_lot are others"
)]
pub trait WaitGuard: Sealed {
    /// The data under the lock.
    type Data: ?Sized;

    #[doc(hidden)]
    fn data(&mut self) -> &mut Self::Data;

    /// Returns whether it was notified. The guard has the lock again either way.
    #[doc(hidden)]
    fn wait_limited(
        &mut self,
        condvar: &Condvar,
        end: Option<overlock_core::Instant>,
        cancel: Option<&CancelToken>,
    ) -> bool;
}

impl<P: Place<Raw = R>, R: RawLock> Sealed for Guard<P, Exclusive<R>> {}
impl<P: Place<Raw = R>, R: RawLock> WaitGuard for Guard<P, Exclusive<R>> {
    type Data = P::Data;

    #[inline]
    fn data(&mut self) -> &mut P::Data {
        self
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    fn wait_limited(
        &mut self,
        condvar: &Condvar,
        end: Option<overlock_core::Instant>,
        cancel: Option<&CancelToken>,
    ) -> bool {
        let (here, end) = (watch::here(), end.map(Into::into));
        self.with_token(|lock, token| {
            // SAFETY: the guard's own acquisition, on its thread; nobody has a reference into the
            // data, since the guard is borrowed mutably.
            let wait = |lock: &_| unsafe { condvar.raw.wait_limited(lock, token, end, cancel) };
            lock.asleep(here, wait)
        })
    }
}

impl<G: WaitGuard> Sealed for &mut G {}
impl<G: WaitGuard> WaitGuard for &mut G {
    type Data = G::Data;

    #[inline]
    fn data(&mut self) -> &mut G::Data {
        (**self).data()
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn wait_limited(
        &mut self,
        condvar: &Condvar,
        end: Option<overlock_core::Instant>,
        cancel: Option<&CancelToken>,
    ) -> bool {
        (**self).wait_limited(condvar, end, cancel)
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Condvar { .. }")
    }
}
