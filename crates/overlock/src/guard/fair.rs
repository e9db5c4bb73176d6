//! Guards that release in favour of waiters.

use std::sync::Arc;

#[cfg(doc)]
use overlock_core::raw::RawFairRwLock;

use super::{Alone, Guard, Guarded, MappedGuard, MappedSharedGuard, Mode, Place};
use crate::watch::Watched;

/// A [`Mode`] whose holder can hand the lock off to a waiter. [`Exclusive`](crate::lock::Exclusive)
/// is one if the raw lock is a [`RawFairLock`](overlock_core::raw::RawFairLock), the other three if
/// it is a [`RawFairRwLock`]. Sealed.
pub trait Fair: Mode {
    /// # Safety
    ///
    /// As for [`Mode::release`].
    #[doc(hidden)]
    unsafe fn release_fair(raw: &Watched<Self::Raw>, token: Self::Token);

    /// # Safety
    ///
    /// As for [`Mode::release`].
    #[doc(hidden)]
    unsafe fn bump(raw: &Watched<Self::Raw>, token: Self::Token) -> Self::Token;
}

impl<P: Place<Raw = M::Raw>, M: Fair> Guard<P, M> {
    /// Releases the lock, and hands it off to a waiter if one sleeps, ahead of everybody else.
    ///
    /// It costs a wake-up during which nobody is in the critical section. Worth it where one thread
    /// takes the lock again and again, and others need it in between. The bound on waiting times
    /// holds without it. A reader's release hands off to a writer once the last reader has left.
    /// Waiters for an upgradable reader are woken, and a writer may still bypass them.
    #[inline]
    pub fn unlock_fair(s: Self) {
        let (place, token) = s.into_parts();
        // SAFETY: the guard's own acquisition, on its thread (G1).
        unsafe { M::release_fair(place.parts().0, token) };
    }

    /// As [`unlocked`](Self::unlocked), releasing as [`unlock_fair`](Self::unlock_fair) does.
    #[inline]
    pub fn unlocked_fair<F, U>(s: &mut Self, f: F) -> U
    where
        F: FnOnce() -> U,
    {
        s.released_by(
            // SAFETY: the guard's own acquisition, on its thread (G1).
            |raw, token| unsafe { M::release_fair(raw, token) },
            f,
        )
    }

    /// Hands the lock off to waiters, if any sleep, and acquires it again in the same mode. The
    /// guard is borrowed mutably, so that no reference into the data can be kept meanwhile.
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
        // SAFETY: the guard's own acquisition, on its thread (G1).
        s.with_token(|raw, token| (unsafe { M::bump(raw, token) }, ()));
    }
}

impl<L: Guarded<Raw = M::Raw> + ?Sized, M: Fair> Guard<Arc<L>, M> {
    /// Releases the lock as [`unlock_fair`](Self::unlock_fair) does, and keeps the [`Arc`].
    #[inline]
    pub fn into_arc_fair(s: Self) -> Arc<L> {
        let (lock, token) = s.into_parts();
        // SAFETY: the guard's own acquisition, on its thread (G1).
        unsafe { M::release_fair(Guarded::parts(&*lock).0, token) };
        lock
    }
}

impl<T: ?Sized, M: Alone + Fair> MappedGuard<'_, T, M> {
    /// Releases the lock, and hands it off to a waiter if one sleeps, ahead of everybody else.
    #[inline]
    pub fn unlock_fair(s: Self) {
        s.held.release_fair();
    }
}

impl<T: ?Sized, M: Fair> MappedSharedGuard<'_, T, M> {
    /// Releases the lock as [`Guard::unlock_fair`] does.
    #[inline]
    pub fn unlock_fair(s: Self) {
        s.held.release_fair();
    }
}
