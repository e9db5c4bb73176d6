//! The operations of readers' and writers' guards beyond those of [every guard](crate::guard).

use std::sync::Arc;

use overlock_core::raw::{
    RawDowngradeRwLock, RawFairRwLock, RawRwLock, RawSendLock, RawUpgradeRwLock, Sent,
};

use super::{SharedLock, Upgradable};
use crate::guard::{Alone, Guard, MappedGuard, Mode, Place, SendMode, mode};
use crate::watch::How;

pub use crate::guard::MappedReadGuard;

mode! {
    /// The mode of a reader: shared with other readers.
    Read<RawRwLock>: read() -> Read, unlock_read;
    RawFairRwLock: unlock_read_fair, bump_read
}

mode! {
    /// The mode of a writer: exclusive.
    Write<RawRwLock>: write() -> Write, unlock_write;
    RawFairRwLock: unlock_write_fair, bump_write
}

impl<R: RawRwLock> Alone for Write<R> {}

// SAFETY: the lock is a `RawSendLock`; so below.
unsafe impl<L: RawSendLock> SendMode for Read<Sent<L>> where Sent<L>: RawRwLock {}
// SAFETY: as above.
unsafe impl<L: RawSendLock> SendMode for Write<Sent<L>> where Sent<L>: RawRwLock {}
// SAFETY: as above.
unsafe impl<L: RawSendLock> SendMode for Upgradable<Sent<L>> where Sent<L>: RawUpgradeRwLock {}

/// A reader's guard.
pub type ReadGuard<'a, R, T> = Guard<&'a SharedLock<R, T>, Read<R>>;

/// A writer's guard.
pub type WriteGuard<'a, R, T> = Guard<&'a SharedLock<R, T>, Write<R>>;

/// An upgradable reader's guard.
pub type UpgradableReadGuard<'a, R, T> = Guard<&'a SharedLock<R, T>, Upgradable<R>>;

/// A reader's guard of a lock that it keeps alive.
pub type ArcReadGuard<R, T> = Guard<Arc<SharedLock<R, T>>, Read<R>>;

/// A writer's guard of a lock that it keeps alive.
pub type ArcWriteGuard<R, T> = Guard<Arc<SharedLock<R, T>>, Write<R>>;

/// An upgradable reader's guard of a lock that it keeps alive.
pub type ArcUpgradableReadGuard<R, T> = Guard<Arc<SharedLock<R, T>>, Upgradable<R>>;

/// A writer's guard of a part of the data.
pub type MappedWriteGuard<'a, R, T> = MappedGuard<'a, T, Write<R>>;

impl<'a, R, T: ?Sized, M: Mode<Raw = R>> Guard<&'a SharedLock<R, T>, M> {
    /// Returns the guard's lock.
    #[inline]
    pub fn rwlock(s: &Self) -> &'a SharedLock<R, T> {
        s.place()
    }
}

impl<R, T: ?Sized, M: Mode<Raw = R>> Guard<Arc<SharedLock<R, T>>, M> {
    /// Returns the guard's lock.
    #[inline]
    pub fn rwlock(s: &Self) -> &Arc<SharedLock<R, T>> {
        s.place()
    }
}

impl<P: Place<Raw = R>, R: RawDowngradeRwLock> Guard<P, Write<R>> {
    /// Turns the writer into a reader, without letting a writer in between.
    ///
    /// ```
    /// use overlock::{RwLock, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new(1);
    /// let mut writer = lock.write();
    /// *writer = 2;
    /// let reader = RwLockWriteGuard::downgrade(writer);
    /// assert_eq!(*reader, 2);
    /// assert!(lock.try_read().is_some());
    /// ```
    #[inline]
    pub fn downgrade(s: Self) -> Guard<P, Read<R>> {
        let (place, token) = s.into_parts();
        place.parts().0.downgrades();
        // SAFETY: the guard's own acquisition, on its thread.
        let token = unsafe { place.parts().0.downgrade(token) };
        // SAFETY: the writer's acquisition has become a reader's, by this thread.
        unsafe { Guard::new(place, token) }
    }
}

impl<P: Place<Raw = R>, R: RawUpgradeRwLock> Guard<P, Write<R>> {
    /// Turns the writer into the upgradable reader, without letting a writer in between.
    #[inline]
    pub fn downgrade_to_upgradable(s: Self) -> Guard<P, Upgradable<R>> {
        let (place, token) = s.into_parts();
        place.parts().0.is_now(How::upgradable::<R>());
        // SAFETY: the guard's own acquisition, on its thread.
        let token = unsafe { place.parts().0.downgrade_to_upgradable(token) };
        // SAFETY: the writer's acquisition has become the upgradable reader's, by this thread.
        unsafe { Guard::new(place, token) }
    }
}
