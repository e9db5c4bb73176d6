//! The operations of a [`Lock`]'s guards beyond those of [every guard](crate::guard).

use std::sync::Arc;

use overlock_core::raw::{RawFairLock, RawLock, RawSendLock, Sent};

use super::Lock;
use crate::guard::{Alone, Guard, MappedGuard, SendMode, mode};

mode! {
    /// The one mode of a [`Lock`]: exclusive access.
    Exclusive<RawLock>: lock() -> Token, unlock;
    RawFairLock: unlock_fair, bump
}

impl<R: RawLock> Alone for Exclusive<R> {}

// SAFETY: the lock is a `RawSendLock`.
unsafe impl<L: RawSendLock> SendMode for Exclusive<Sent<L>> where Sent<L>: RawLock {}

/// The guard of a [`Lock`].
pub type LockGuard<'a, R, T> = Guard<&'a Lock<R, T>, Exclusive<R>>;

/// The guard of a [`Lock`] which it keeps alive.
pub type ArcLockGuard<R, T> = Guard<Arc<Lock<R, T>>, Exclusive<R>>;

/// The guard of a part of a [`Lock`]'s data.
pub type MappedLockGuard<'a, R, T> = MappedGuard<'a, T, Exclusive<R>>;

impl<'a, R: RawLock, T: ?Sized> Guard<&'a Lock<R, T>, Exclusive<R>> {
    /// Returns the guard's lock.
    #[inline]
    pub fn mutex(s: &Self) -> &'a Lock<R, T> {
        s.place()
    }
}

impl<R: RawLock, T: ?Sized> Guard<Arc<Lock<R, T>>, Exclusive<R>> {
    /// Returns the guard's lock.
    #[inline]
    pub fn mutex(s: &Self) -> &Arc<Lock<R, T>> {
        s.place()
    }
}
