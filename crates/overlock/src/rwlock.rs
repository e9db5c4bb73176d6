//! Many readers or one writer: one lock with data, over any of the family's raw reader-writer
//! locks.
//!
//! [`RwLock`](crate::RwLock) and [`PerCpuRwLock`](crate::PerCpuRwLock) are aliases of
//! [`SharedLock`]. Its methods depend on the traits of the raw lock:
//!
//! | trait | what it brings |
//! |---|---|
//! | [`RawRwLock`] | `read`, `write`, their `try_` forms, and all for `Arc` |
//! | [`RawTimedRwLock`] | `try_read_for`, `try_read_until`, `try_write_for`, `try_write_until` |
//! | [`RawRecursiveRwLock`] | `read_recursive` and its kind, for a thread that reads already |
//! | [`RawDowngradeRwLock`] | `downgrade` of writers' guards |
//! | [`RawUpgradeRwLock`] | `upgradable_read`, and `upgrade` of its guards |
//! | [`RawFairRwLock`] | `unlock_fair`, `unlocked_fair`, `bump` of the guards |
//! | [`ConstLock`] | `new` in constants, `From`, `Default` |

mod acquire;
mod guard;
mod recursive;
mod upgradable;

use std::cell::UnsafeCell;
use std::fmt;

use overlock_core::raw::{ConstLock, RawRwLock};
#[cfg(doc)]
use overlock_core::raw::{
    RawDowngradeRwLock, RawFairRwLock, RawRecursiveRwLock, RawTimedRwLock, RawUpgradeRwLock,
};

pub use guard::{
    ArcReadGuard, ArcUpgradableReadGuard, ArcWriteGuard, MappedReadGuard, MappedWriteGuard, Read,
    ReadGuard, UpgradableReadGuard, Write, WriteGuard,
};
pub use upgradable::Upgradable;

use crate::guard::{Guarded, sealed};
use crate::watch::{Sort, Watched};

/// A reader-writer lock with the data that it protects, over the raw lock `R`. The usual name is
/// [`RwLock`](crate::RwLock).
///
/// Acquiring has acquire ordering, releasing has release ordering. A writer's release synchronises
/// with every acquisition that follows it, a reader's with the next writer's. The raw lock
/// determines how long a waiter may wait, and who may bypass it.
///
/// A thread that reads must not `read` again before it has released, nor write. A writer that
/// arrives in between waits for the first acquisition, and the second waits for that writer:
/// [`read_recursive`](Self::read_recursive) does not. A forgotten guard leaves the lock acquired.
pub struct SharedLock<R, T: ?Sized> {
    raw: Watched<R>,
    data: UnsafeCell<T>,
}

// SAFETY: the lock gives many threads shared access at a time (`T: Sync`), or one thread access by
// mutable reference, which is as good as sending the data there and back (`T: Send`). Raw locks are
// made to be shared.
unsafe impl<R: RawRwLock, T: ?Sized + Send + Sync> Sync for SharedLock<R, T> {}

impl<R, T: ?Sized> sealed::Sealed for SharedLock<R, T> {}
impl<R, T: ?Sized> Guarded for SharedLock<R, T> {
    type Raw = R;
    type Data = T;

    #[inline]
    fn parts(&self) -> (&Watched<R>, *mut T) {
        (&self.raw, self.data.get())
    }
}

impl<R: ConstLock, T> SharedLock<R, T> {
    /// Returns a new, unlocked lock around `data`.
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    #[inline]
    pub const fn new(data: T) -> Self {
        Self::from_raw(R::INIT, data)
    }

    /// As [`new`](Self::new), with a name for the features `stat` and `lockdep`: see
    /// [`Lock::named`](crate::lock::Lock::named).
    #[inline]
    pub const fn named(name: &'static str, data: T) -> Self {
        SharedLock {
            raw: Watched::named(R::INIT, Sort::RwLock, name),
            data: UnsafeCell::new(data),
        }
    }
}

impl<R, T> SharedLock<R, T> {
    /// Returns a lock made of its parts, for raw locks that are not constants.
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    #[inline]
    pub const fn from_raw(raw: R, data: T) -> Self {
        SharedLock {
            raw: Watched::new(raw, Sort::RwLock),
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

impl<R, T: ?Sized> SharedLock<R, T> {
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

impl<R: RawRwLock, T: ?Sized> SharedLock<R, T> {
    /// Whether the lock is held. A snapshot: it may be stale on return.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// Whether a writer holds the lock, or is about to. A snapshot.
    #[inline]
    pub fn is_locked_exclusive(&self) -> bool {
        self.raw.is_write_locked()
    }

    /// Whether a thread sleeps for the lock. A snapshot. Misses waiters that spin, and woken ones
    /// that have not acquired yet.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.raw.is_contended()
    }
}

impl<R: ConstLock, T: Default> Default for SharedLock<R, T> {
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    fn default() -> Self {
        SharedLock::new(T::default())
    }
}

impl<R: ConstLock, T> From<T> for SharedLock<R, T> {
    #[cfg_attr(any(feature = "lockdep", feature = "stat"), track_caller)]
    fn from(data: T) -> Self {
        SharedLock::new(data)
    }
}

impl<R: RawRwLock, T: ?Sized + fmt::Debug> fmt::Debug for SharedLock<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RwLock");
        match self.try_read() {
            Some(guard) => shown.field("data", &&*guard),
            None => shown.field("data", &format_args!("<locked>")),
        };
        shown.finish()
    }
}
