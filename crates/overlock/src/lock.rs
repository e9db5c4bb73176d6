//! Mutual exclusion: one lock with data, over any of the family's raw locks.
//!
//! [`Mutex`](crate::Mutex), [`SpinLock`](crate::SpinLock) and [`RtMutex`](crate::RtMutex) are
//! aliases of [`Lock`]. Its methods depend on the traits of the raw lock:
//!
//! | trait | what it brings |
//! |---|---|
//! | [`RawLock`] | `lock`, `try_lock`, and both for `Arc` |
//! | [`RawTimedLock`] | `try_lock_for`, `try_lock_until` |
//! | [`RawFairLock`] | `unlock_fair`, `unlocked_fair`, `bump` of the guards |
//! | [`RawCancelLock`] | `lock_cancellable` |
//! | [`ConstLock`] | `new` in constants, `From`, `Default` |
//!
//! So any lock of `spin` (feature `family`) can protect data:
//!
//! ```
//! use overlock::lock::Lock;
//! use overlock::spin::Mcs;
//!
//! let lock: Lock<Mcs, _> = Lock::new(1);
//! *lock.lock() += 1;
//! assert_eq!(lock.into_inner(), 2);
//! ```

mod guard;

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use overlock_core::raw::{ConstLock, RawCancelLock, RawFairLock, RawLock, RawTimedLock};

pub use guard::{ArcLockGuard, Exclusive, LockGuard, MappedLockGuard};

use crate::cancel::{CancelToken, Cancelled};
use crate::guard::{Guard, Guarded, Place, sealed};
use crate::watch::{How, Sort, Watched};
use crate::{System, deadline};

/// A mutual-exclusion lock with the data that it protects, over the raw lock `R`. The usual name is
/// [`Mutex`](crate::Mutex).
///
/// Acquiring has acquire ordering, releasing has release ordering, and each release synchronises
/// with the acquisition that follows it. The raw lock determines how long a waiter may wait, and
/// who may bypass it.
///
/// A thread that locks what it holds already waits for ever. So may a signal handler that locks
/// what the interrupted thread holds, waits for, or is releasing. With a spinning raw lock,
/// [`Mutex`](crate::Mutex) and [`SpinLock`](crate::SpinLock) included, a handler may always try,
/// and release what it got. A forgotten guard leaves the lock acquired.
pub struct Lock<R, T: ?Sized> {
    raw: Watched<R>,
    data: UnsafeCell<T>,
}

// SAFETY: the lock gives one thread at a time access to the data, by mutable reference, which is as
// good as sending the data there and back. Raw locks are made to be shared.
unsafe impl<R: RawLock, T: ?Sized + Send> Sync for Lock<R, T> {}

impl<R, T: ?Sized> sealed::Sealed for Lock<R, T> {}
impl<R, T: ?Sized> Guarded for Lock<R, T> {
    type Raw = R;
    type Data = T;

    #[inline]
    fn parts(&self) -> (&Watched<R>, *mut T) {
        (&self.raw, self.data.get())
    }
}

impl<R: ConstLock, T> Lock<R, T> {
    /// Returns a new, unlocked lock around `data`.
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    #[inline]
    pub const fn new(data: T) -> Self {
        Self::from_raw(R::INIT, data)
    }

    /// As [`new`](Self::new), with a name for the features `stat` and `lockdep`. The name appears
    /// in reports, and locks of one name are one class: their [figures](crate::stat) are summed,
    /// and they are taken in one order. Without these features it is the same as `new`.
    #[inline]
    pub const fn named(name: &'static str, data: T) -> Self {
        Lock {
            raw: Watched::named(R::INIT, Sort::Mutex, name),
            data: UnsafeCell::new(data),
        }
    }
}

impl<R, T> Lock<R, T> {
    /// Returns a lock made of its parts, for raw locks that are not constants.
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    #[inline]
    pub const fn from_raw(raw: R, data: T) -> Self {
        Lock {
            raw: Watched::new(raw, Sort::Mutex),
            data: UnsafeCell::new(data),
        }
    }

    /// [`from_raw`](Self::from_raw), by the name that parking_lot had for it until 0.12.
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    #[inline]
    pub const fn const_new(raw: R, data: T) -> Self {
        Self::from_raw(raw, data)
    }

    /// Consumes the lock and returns the data.
    #[inline]
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }

    /// Returns the lock's parts. The raw lock is locked if a guard was forgotten.
    #[inline]
    pub fn into_inner_with_raw(self) -> (R, T) {
        (self.raw.into_raw(), self.data.into_inner())
    }
}

impl<R, T: ?Sized> Lock<R, T> {
    /// Returns the data: the mutable borrow proves that nobody else has access.
    #[inline]
    pub const fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// Returns a pointer to the data, for a holder of the lock without a guard.
    #[inline]
    pub const fn data_ptr(&self) -> *mut T {
        self.data.get()
    }

    /// Returns the raw lock.
    ///
    /// # Safety
    ///
    /// The caller unlocks only its own acquisitions through the raw lock, or those whose guard it
    /// has forgotten.
    #[inline]
    pub const unsafe fn raw(&self) -> &R {
        self.raw.raw()
    }
}

impl<R: RawLock, T: ?Sized> Lock<R, T> {
    /// Returns the guard of a new acquisition.
    ///
    /// # Safety
    ///
    /// As for [`Guard::new`].
    #[inline]
    unsafe fn guard<P: Place<Raw = R>>(place: P, token: R::Token) -> Guard<P, Exclusive<R>> {
        // SAFETY: the caller's promise.
        unsafe { Guard::new(place, token) }
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn acquire(&self, level: u8) -> R::Token {
        let (queue, attempt) = (|| self.raw.is_contended(), || self.raw.try_lock());
        (self.raw).acquire(How::of::<R>(), level, queue, attempt, || self.raw.lock())
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn attempt(&self) -> Option<R::Token> {
        let (queue, attempt) = (|| self.raw.is_contended(), || self.raw.try_lock());
        self.raw.attempt(How::of::<R>(), queue, attempt)
    }

    /// Acquires the lock, and waits as long as necessary.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn lock(&self) -> LockGuard<'_, R, T> {
        // SAFETY: just acquired.
        unsafe { Self::guard(self, self.acquire(0)) }
    }

    /// As [`lock`](Self::lock), for a thread that holds other locks of the same class which come
    /// before this one. `level` is 1 for the second lock, 2 for the third. It informs the feature
    /// `lockdep` that the caller knows an order among them. Without the feature it is the same as
    /// `lock`.
    ///
    /// ```
    /// use overlock::Mutex;
    ///
    /// fn transfer(accounts: &[Mutex<i64>], from: usize, to: usize, sum: i64) {
    ///     assert_ne!(from, to);
    ///     let mut first = accounts[from.min(to)].lock();
    ///     let mut second = accounts[from.max(to)].lock_nested(1);
    ///     let (from, to) = if from < to { (&mut first, &mut second) } else { (&mut second, &mut first) };
    ///     **from -= sum;
    ///     **to += sum;
    /// }
    ///
    /// let accounts = [5, 0].map(Mutex::new);
    /// transfer(&accounts, 0, 1, 2);
    /// assert_eq!(accounts.map(Mutex::into_inner), [3, 2]);
    /// ```
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn lock_nested(&self, level: u8) -> LockGuard<'_, R, T> {
        // SAFETY: just acquired.
        unsafe { Self::guard(self, self.acquire(level)) }
    }

    /// Acquires the lock if that needs no waiting. May fail while another thread acquires or
    /// releases it.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_lock(&self) -> Option<LockGuard<'_, R, T>> {
        let token = self.attempt()?;
        // SAFETY: just acquired.
        Some(unsafe { Self::guard(self, token) })
    }

    /// Whether the lock is held. A snapshot: it may be stale on return.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// Whether a thread waits for the lock. A snapshot; spinning waiters may not show.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.raw.is_contended()
    }

    /// Returns a guard for an acquisition that the caller holds already: through
    /// [`raw`](Self::raw), or since it forgot the guard.
    ///
    /// # Safety
    ///
    /// `token` is that of an acquisition of this lock by the calling thread, and is used for
    /// nothing else.
    #[inline]
    pub unsafe fn make_guard_unchecked(&self, token: R::Token) -> LockGuard<'_, R, T> {
        // SAFETY: the caller's promise.
        unsafe { Self::guard(self, token) }
    }

    /// Releases an acquisition whose guard was forgotten.
    ///
    /// # Safety
    ///
    /// As for [`make_guard_unchecked`](Self::make_guard_unchecked); no reference to the data
    /// remains.
    #[inline]
    pub unsafe fn force_unlock(&self, token: R::Token) {
        // SAFETY: the caller's promise.
        self.raw.release(|| unsafe { self.raw.unlock(token) });
    }
}

impl<R: RawFairLock, T: ?Sized> Lock<R, T> {
    /// As [`force_unlock`](Self::force_unlock), but hands the lock off to a waiter if one sleeps.
    ///
    /// # Safety
    ///
    /// As for [`force_unlock`](Self::force_unlock).
    #[inline]
    pub unsafe fn force_unlock_fair(&self, token: R::Token) {
        // SAFETY: the caller's promise.
        self.raw.release(|| unsafe { self.raw.unlock_fair(token) });
    }
}

impl<R: RawTimedLock, T: ?Sized> Lock<R, T> {
    /// Reads the clock only if the lock is not free.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn acquire_until(&self, deadline: impl FnOnce() -> overlock_core::Instant) -> Option<R::Token> {
        let (queue, attempt) = (|| self.raw.is_contended(), || self.raw.try_lock());
        let wait = || self.lock_slow(deadline);
        (self.raw).attempt_or(How::of::<R>(), queue, attempt, wait)
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, deadline: impl FnOnce() -> overlock_core::Instant) -> Option<R::Token> {
        self.raw.lock_until(deadline())
    }

    /// Acquires the lock unless `timeout` passes first. Tries at least once; never gives up early.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_lock_for(&self, timeout: Duration) -> Option<LockGuard<'_, R, T>> {
        let token = self.acquire_until(|| deadline::after(timeout))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::guard(self, token) })
    }

    /// Acquires the lock unless `deadline` passes first. Tries at least once; never gives up early.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_lock_until(&self, deadline: Instant) -> Option<LockGuard<'_, R, T>> {
        let token = self.acquire_until(|| deadline::at(deadline))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::guard(self, token) })
    }
}

impl<R: RawCancelLock<System>, T: ?Sized> Lock<R, T> {
    /// Acquires the lock unless `cancel` is cancelled first, by any thread or by a signal handler.
    /// Tries at least once, even if it has been cancelled already.
    ///
    /// ```
    /// use overlock::{CancelToken, Mutex};
    ///
    /// let lock = Mutex::new(0);
    /// let shutdown = CancelToken::new();
    /// std::thread::scope(|scope| {
    ///     let held = lock.lock();
    ///     let waiter = scope.spawn(|| lock.lock_cancellable(&shutdown).is_err());
    ///     shutdown.cancel();
    ///     assert!(waiter.join().unwrap());
    ///     drop(held);
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// [`Cancelled`]: the lock was not acquired.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn lock_cancellable(&self, cancel: &CancelToken) -> Result<LockGuard<'_, R, T>, Cancelled> {
        let (queue, attempt) = (|| self.raw.is_contended(), || self.raw.try_lock());
        let wait = || self.raw.lock_cancellable(cancel, None);
        let token = (self.raw).attempt_or(How::of::<R>(), queue, attempt, wait);
        let token = token.ok_or(Cancelled)?;
        // SAFETY: just acquired.
        Ok(unsafe { Self::guard(self, token) })
    }
}

impl<R: RawLock, T: ?Sized> Lock<R, T> {
    /// As [`lock`](Self::lock), with a guard that keeps the lock alive.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use overlock::Mutex;
    ///
    /// let guard = Arc::new(Mutex::new(1)).lock_arc();
    /// assert_eq!(*guard, 1);
    /// ```
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn lock_arc(self: &Arc<Self>) -> ArcLockGuard<R, T> {
        // SAFETY: just acquired.
        unsafe { Self::guard(Arc::clone(self), self.acquire(0)) }
    }

    /// As [`try_lock`](Self::try_lock), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_lock_arc(self: &Arc<Self>) -> Option<ArcLockGuard<R, T>> {
        let token = self.attempt()?;
        // SAFETY: just acquired.
        Some(unsafe { Self::guard(Arc::clone(self), token) })
    }
}

impl<R: RawTimedLock, T: ?Sized> Lock<R, T> {
    /// As [`try_lock_for`](Self::try_lock_for), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_lock_arc_for(self: &Arc<Self>, timeout: Duration) -> Option<ArcLockGuard<R, T>> {
        let token = self.acquire_until(|| deadline::after(timeout))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::guard(Arc::clone(self), token) })
    }

    /// As [`try_lock_until`](Self::try_lock_until), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_lock_arc_until(self: &Arc<Self>, deadline: Instant) -> Option<ArcLockGuard<R, T>> {
        let token = self.acquire_until(|| deadline::at(deadline))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::guard(Arc::clone(self), token) })
    }
}

impl<R: ConstLock, T: Default> Default for Lock<R, T> {
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    fn default() -> Self {
        Lock::new(T::default())
    }
}

impl<R: ConstLock, T> From<T> for Lock<R, T> {
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    fn from(data: T) -> Self {
        Lock::new(data)
    }
}

impl<R: RawLock, T: ?Sized + fmt::Debug> fmt::Debug for Lock<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Mutex");
        match self.try_lock() {
            Some(guard) => shown.field("data", &&*guard),
            None => shown.field("data", &format_args!("<locked>")),
        };
        shown.finish()
    }
}
