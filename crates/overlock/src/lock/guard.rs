//! What the guards of a [`Lock`] can do beside what [every guard](crate::guard) can.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

use overlock_core::raw::{RawFairLock, RawLock};

use super::Lock;
use crate::guard::{Alone, Guard, MappedGuard, Mode, Place, sealed};

/// The one mode of a [`Lock`]: its holder is alone.
#[derive(Debug)]
pub struct Exclusive<R>(PhantomData<R>, Infallible);

/// The guard of a [`Lock`].
pub type LockGuard<'a, R, T> = Guard<&'a Lock<R, T>, Exclusive<R>>;

/// The guard of a [`Lock`], which it keeps alive.
pub type ArcLockGuard<R, T> = Guard<Arc<Lock<R, T>>, Exclusive<R>>;

/// The guard of a part of a [`Lock`]'s data.
pub type MappedLockGuard<'a, R, T> = MappedGuard<'a, T, Exclusive<R>>;

impl<R> sealed::Sealed for Exclusive<R> {}
impl<R: RawLock> Alone for Exclusive<R> {}
impl<R: RawLock> Mode for Exclusive<R> {
    type Raw = R;
    type Token = R::Token;

    #[inline]
    fn acquire(raw: &R) -> R::Token {
        raw.lock()
    }

    #[inline]
    unsafe fn release(raw: &R, token: R::Token) {
        // SAFETY: the caller's promise.
        unsafe { raw.unlock(token) };
    }
}

impl<'a, R: RawLock, T: ?Sized> Guard<&'a Lock<R, T>, Exclusive<R>> {
    /// The lock that the guard is of.
    #[inline]
    pub fn mutex(s: &Self) -> &'a Lock<R, T> {
        s.place()
    }
}

impl<R: RawLock, T: ?Sized> Guard<Arc<Lock<R, T>>, Exclusive<R>> {
    /// The lock that the guard is of.
    #[inline]
    pub fn mutex(s: &Self) -> &Arc<Lock<R, T>> {
        s.place()
    }

    /// Releases the lock as [`unlock_fair`](Self::unlock_fair) does, and keeps the [`Arc`].
    #[inline]
    pub fn into_arc_fair(s: Self) -> Arc<Lock<R, T>>
    where
        R: RawFairLock,
    {
        let (lock, token) = s.into_parts();
        // SAFETY: the guard's own acquisition, on its thread.
        unsafe { lock.raw.unlock_fair(token) };
        lock
    }
}

impl<P: Place<Raw = R>, R: RawFairLock> Guard<P, Exclusive<R>> {
    /// Releases the lock; where a waiter sleeps for it, gives it to that one, past everybody else.
    ///
    /// Costs a wake-up during which nobody is inside. Worth it where one thread would take the lock again and again, and
    /// others need it in between; the bound on their waiting times holds without it.
    #[inline]
    pub fn unlock_fair(s: Self) {
        let (place, token) = s.into_parts();
        // SAFETY: the guard's own acquisition, on its thread.
        unsafe { place.parts().0.unlock_fair(token) };
    }

    /// As [`unlocked`](Self::unlocked), releasing as [`unlock_fair`](Self::unlock_fair) does.
    #[inline]
    pub fn unlocked_fair<F, U>(s: &mut Self, f: F) -> U
    where
        F: FnOnce() -> U,
    {
        s.released_by(
            // SAFETY: the guard's own acquisition, on its thread.
            |raw, token| unsafe { raw.unlock_fair(token) },
            f,
        )
    }

    /// Lets waiters have the lock, if any sleep for it, and acquires it again. The guard is borrowed mutably, so that no reference
    /// into the data can be kept meanwhile.
    ///
    /// ```
    /// use overlock::{Mutex, MutexGuard};
    ///
    /// let lock = Mutex::new(vec![3, 1, 2]);
    /// let mut guard = lock.lock();
    /// while let Some(work) = guard.pop() {
    ///     # let _ = work;
    ///     MutexGuard::bump(&mut guard);
    /// }
    /// ```
    #[inline]
    pub fn bump(s: &mut Self) {
        // SAFETY: the guard's own acquisition, on its thread.
        s.with_token(|raw, token| (unsafe { raw.bump(token) }, ()));
    }
}
