//! Guards that let go in favour of those that wait.

use std::sync::Arc;

use overlock_core::raw::RawFairRwLock;

use super::{Alone, Guard, Guarded, MappedGuard, MappedReadGuard, Mode, Place};

/// A [`Mode`] whose holder can give the lock to those that wait for it.
/// [`Exclusive`](crate::lock::Exclusive) is one where the raw lock is a
/// [`RawFairLock`](overlock_core::raw::RawFairLock), the other three where it is a
/// [`RawFairRwLock`]. Sealed.
pub trait Fair: Mode {
    /// # Safety
    ///
    /// As for [`Mode::release`].
    #[doc(hidden)]
    unsafe fn release_fair(raw: &Self::Raw, token: Self::Token);

    /// # Safety
    ///
    /// As for [`Mode::release`].
    #[doc(hidden)]
    unsafe fn bump(raw: &Self::Raw, token: Self::Token) -> Self::Token;
}

impl<P: Place<Raw = M::Raw>, M: Fair> Guard<P, M> {
    /// Releases the lock; where a waiter sleeps for it, gives it to that one, past everybody else.
    ///
    /// Costs a wake-up during which nobody is inside. Worth it where one thread would take the lock
    /// again and again, and others need it in between; the bound on their waiting times holds
    /// without it. What readers release goes to a writer when the last of them has left. Those
    /// that wait for an upgradable reader are woken, and may still be passed by a writer.
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

    /// Lets waiters have the lock, if any sleep for it, and acquires it again in the same mode. The
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
    /// Releases the lock; where a waiter sleeps for it, gives it to that one, past everybody else.
    #[inline]
    pub fn unlock_fair(s: Self) {
        s.held.release_fair();
    }
}

impl<R: RawFairRwLock, T: ?Sized> MappedReadGuard<'_, R, T> {
    /// Releases the lock; a writer that waits for it has it when the last reader has left.
    #[inline]
    pub fn unlock_fair(s: Self) {
        s.held.release_fair();
    }
}
