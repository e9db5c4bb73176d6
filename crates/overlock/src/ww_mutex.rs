//! Mutexes of which a thread can hold several, taken in any order, without deadlock.
//!
//! ```
//! use overlock::ww_mutex::{self, Class, WwMutex};
//!
//! static ACCOUNTS: Class = Class::new();
//!
//! let accounts = [100, 20, 0].map(|balance| WwMutex::new(&ACCOUNTS, balance));
//! let transfer = |from: usize, to: usize, sum: i64| {
//!     ww_mutex::acquire(&ACCOUNTS, |ctx| {
//!         let mut from = ctx.lock(&accounts[from])?;
//!         let mut to = ctx.lock(&accounts[to])?;
//!         *from -= sum;
//!         *to += sum;
//!         Ok(())
//!     })
//! };
//! std::thread::scope(|scope| {
//!     scope.spawn(|| transfer(0, 1, 30).unwrap());
//!     scope.spawn(|| transfer(1, 0, 10).unwrap()); // the other way round, at the same time
//! });
//! assert_eq!(transfer(2, 2, 5), Err(ww_mutex::Error::AlreadyHeld));
//! assert_eq!(accounts.map(WwMutex::into_inner), [80, 40, 0]);
//! ```
//!
//! If two threads are about to wait for each other, one of them is *aborted*. Its `lock` returns
//! [`Error::Aborted`], the `?` leaves the closure, which drops its guards, and [`acquire`] runs it
//! again. The next attempt begins as soon as it has the lock that it was refused. A context keeps
//! its age, so in the end it is the oldest, and gets through. This leads to four rules:
//!
//! - Take all locks before you change anything. Changes before an abort stay.
//! - A closure must be able to run again. It returns its own errors within `Ok`: [`acquire`] has
//!   but two.
//! - The locks that are taken together have one [`Class`]. A lock of another one is refused.
//! - Take locks that are found in the data of others with [`Context::lock_found`].
//!
//! None of this helps a thread that waits in another way for a lock that it holds itself: in a
//! [`lock`](WwMutex::lock) without a context, or in another context that it has opened inside of
//! the first.
//!
//! [`overlock_core::sleep::ww_mutex`] has the algorithm, and the proof that there is no deadlock.
//!
//! # What the compiler refuses
//!
//! A guard must not leave its attempt:
//!
//! ```compile_fail
//! # use overlock::ww_mutex::{self, Class, WwMutex};
//! static CLASS: Class = Class::new();
//! let lock = WwMutex::new(&CLASS, 0);
//! let guard = ww_mutex::acquire(&CLASS, |ctx| ctx.lock(&lock));
//! ```
//!
//! A lock must outlive the attempt, as the next one may begin with it:
//!
//! ```compile_fail
//! # use overlock::ww_mutex::{self, Class, WwMutex};
//! static CLASS: Class = Class::new();
//! let result = ww_mutex::acquire(&CLASS, |ctx| {
//!     let lock = WwMutex::new(&CLASS, 0);
//!     *ctx.lock(&lock)? += 1;
//!     Ok(())
//! });
//! ```

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

use overlock_core::raw::RawLock;
use overlock_core::sleep::ww_mutex as raw;
pub use overlock_core::sleep::ww_mutex::{Error, Rule};

use crate::System;

/// A family of locks that are taken together, usually a static. [`Class::new`] is right for most;
/// [`Class::optimistic`] is faster where locks are seldom contended, and aborts more often where
/// they are.
pub type Class = raw::Class<System>;

/// A mutex of which a thread can hold several, taken in any order, without deadlock: see the
/// [module's page](self).
///
/// It takes 24 bytes beside the data. Acquiring has acquire ordering, releasing has release
/// ordering. A panic while a guard is alive releases the lock; there is no poisoning. Waiters sleep
/// at once.
///
/// Not for threads of [two copies](crate#two-copies-in-a-process) of this crate.
pub struct WwMutex<T: ?Sized> {
    raw: raw::WwMutex<System>,
    data: UnsafeCell<T>,
}

// SAFETY: the lock gives one thread at a time access to the data, by reference, which is as good as
// sending the data there and back.
unsafe impl<T: ?Sized + Send> Sync for WwMutex<T> {}

/// Access to the data of a [`WwMutex`]; releases the lock when dropped.
///
/// Not `Send`: the thread that acquired it releases it.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct WwMutexGuard<'a, T: ?Sized> {
    data: &'a UnsafeCell<T>,
    /// The acquisition, whose drop releases the lock.
    _held: raw::Held<'a, System>,
}

// SAFETY: a shared guard gives shared access to the data, and to nothing else.
unsafe impl<T: ?Sized + Sync> Sync for WwMutexGuard<'_, T> {}

/// Context of one attempt of [`acquire`]: a thread takes several locks through it. The locks live
/// at least for `'env`.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a, 'env>(&'a raw::Context<'env, System>);

/// Runs `attempt` until it is not aborted, and returns its result. It takes locks through the
/// context that it is passed. See the [module's page](self).
///
/// # Errors
///
/// [`Error::AlreadyHeld`] and [`Error::OtherClass`] as `attempt` returns them. Never
/// [`Error::Aborted`].
pub fn acquire<'env, R>(
    class: &'static Class,
    mut attempt: impl FnMut(Context<'_, 'env>) -> Result<R, Error>,
) -> Result<R, Error> {
    raw::acquire(class, |context| attempt(Context(context)))
}

impl<'a, 'env> Context<'a, 'env> {
    /// Acquires `lock`, and waits as long as necessary, unless the context has to be aborted.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    #[inline]
    pub fn lock<T: ?Sized>(self, lock: &'env WwMutex<T>) -> Result<WwMutexGuard<'a, T>, Error> {
        self.0.lock(&lock.raw).map(|held| lock.guard(held))
    }

    /// Acquires a lock that may be gone when the next attempt begins, such as one in the data of
    /// another lock. If the context is aborted for it, the next attempt begins after a short sleep
    /// instead of with this lock.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use overlock::ww_mutex::{self, Class, WwMutex};
    ///
    /// static TREE: Class = Class::new();
    /// let leaf = Arc::new(WwMutex::new(&TREE, 1));
    /// let root = WwMutex::new(&TREE, vec![leaf.clone(), leaf]);
    /// let sum = ww_mutex::acquire(&TREE, |ctx| {
    ///     let root = ctx.lock(&root)?;
    ///     let mut sum = 0;
    ///     for leaf in root.iter() {
    ///         sum += *ctx.lock_found(leaf)?;
    ///     }
    ///     Ok(sum)
    /// });
    /// assert_eq!(sum, Ok(2));
    /// ```
    ///
    /// # Errors
    ///
    /// See [`Error`].
    #[inline]
    pub fn lock_found<'l, T: ?Sized>(
        self,
        lock: &'l WwMutex<T>,
    ) -> Result<WwMutexGuard<'l, T>, Error>
    where
        'a: 'l,
    {
        let context: &'l raw::Context<'env, System> = self.0;
        context.lock_found(&lock.raw).map(|held| lock.guard(held))
    }

    /// Acquires `lock` if that needs no waiting.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Aborted`] only if the context is aborted already, or its class is
    /// [optimistic](Class::optimistic) and this may be a lock of its own.
    #[inline]
    pub fn try_lock<'l, T: ?Sized>(
        self,
        lock: &'l WwMutex<T>,
    ) -> Result<Option<WwMutexGuard<'l, T>>, Error>
    where
        'a: 'l,
    {
        let context: &'l raw::Context<'env, System> = self.0;
        let held = context.try_lock(&lock.raw)?;
        Ok(held.map(|held| lock.guard(held)))
    }

    /// Returns the number of locks that the context holds. The lock for which it was last aborted
    /// counts, even before the attempt asks for it.
    pub fn holds(self) -> usize {
        self.0.holds()
    }
}

impl<T> WwMutex<T> {
    /// Returns a new, unlocked lock around `data`, for contexts of `class`.
    pub const fn new(class: &'static Class, data: T) -> Self {
        WwMutex {
            raw: raw::WwMutex::new(class),
            data: UnsafeCell::new(data),
        }
    }

    /// Consumes the lock and returns the data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> WwMutex<T> {
    /// Acquires this lock without a context, and waits as long as necessary. A thread that holds it
    /// already waits for ever, and nothing detects cycles of such locks.
    #[inline]
    pub fn lock(&self) -> WwMutexGuard<'_, T> {
        self.guard(self.raw.hold())
    }

    /// Acquires this lock without a context if it is free; does not wait.
    #[inline]
    pub fn try_lock(&self) -> Option<WwMutexGuard<'_, T>> {
        self.raw.try_hold().map(|held| self.guard(held))
    }

    /// Returns the data: the mutable borrow proves that nobody else has access.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// Whether the lock is held. A snapshot: it may be stale on return.
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// Whether a thread waits for the lock. A snapshot, as [`is_locked`](Self::is_locked).
    pub fn is_contended(&self) -> bool {
        self.raw.is_contended()
    }

    /// `held` is an acquisition of this lock.
    #[inline]
    fn guard<'a>(&'a self, held: raw::Held<'a, System>) -> WwMutexGuard<'a, T> {
        WwMutexGuard {
            data: &self.data,
            _held: held,
        }
    }
}

impl<T: ?Sized> Deref for WwMutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held while the guard lives, so nobody else has a mutable reference.
        unsafe { &*self.data.get() }
    }
}

impl<T: ?Sized> DerefMut for WwMutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; and the guard itself is borrowed mutably, so this reference is the
        // only one.
        unsafe { &mut *self.data.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for WwMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("WwMutex");
        match self.try_lock() {
            Some(guard) => shown.field("data", &&*guard),
            None => shown.field("data", &format_args!("<locked>")),
        };
        shown.finish_non_exhaustive()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for WwMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for WwMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests;
