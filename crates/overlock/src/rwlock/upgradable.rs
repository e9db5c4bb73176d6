//! The third kind of acquisition of a [`SharedLock`]: a reader that can become the writer.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

use overlock_core::raw::{RawFairRwLock, RawRwLock, RawUpgradeRwLock};

use super::{ArcUpgradableReadGuard, Read, SharedLock, UpgradableReadGuard, Write};
use crate::deadline;
use crate::guard::{Guard, Place, mode, or_abort};
use crate::watch::How;

mode! {
    /// The mode of a reader that can become the writer: shared with plain readers, one of its kind
    /// at a time.
    Upgradable<RawUpgradeRwLock>: upgradable() -> Upgradable, unlock_upgradable;
    RawFairRwLock: unlock_upgradable_fair, bump_upgradable
}

/// Upgradable readers share the lock with plain readers and exclude each other. So one that must
/// write can upgrade without letting a writer in between.
///
/// ```
/// use overlock::{RwLock, RwLockUpgradableReadGuard};
///
/// let cache = RwLock::new(None);
/// let found = cache.upgradable_read();
/// if found.is_none() {
///     *RwLockUpgradableReadGuard::upgrade(found) = Some(42);
/// }
/// assert_eq!(*cache.read(), Some(42));
/// ```
impl<R: RawUpgradeRwLock, T: ?Sized> SharedLock<R, T> {
    /// # Safety
    ///
    /// `token` is that of an upgradable reader's acquisition of `place`'s lock by the calling
    /// thread, and is used for nothing else.
    #[inline]
    unsafe fn upgrader<P: Place<Raw = R>>(
        place: P,
        token: R::Upgradable,
    ) -> Guard<P, Upgradable<R>> {
        // SAFETY: the caller's promise.
        unsafe { Guard::new(place, token) }
    }

    /// In the order of locks it is a writer: readers wait behind it once it upgrades.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn acquire_upgradable(&self) -> R::Upgradable {
        let (queue, attempt) = (|| self.raw.is_contended(), || self.raw.try_upgradable());
        (self.raw).acquire(How::upgradable::<R>(), 0, queue, attempt, || {
            self.raw.upgradable()
        })
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn attempt_upgradable(&self) -> Option<R::Upgradable> {
        (self.raw).attempt(
            How::upgradable::<R>(),
            || self.raw.is_contended(),
            || self.raw.try_upgradable(),
        )
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn upgradable_before(
        &self,
        limit: impl FnOnce() -> overlock_core::Instant,
    ) -> Option<R::Upgradable> {
        let (queue, attempt) = (|| self.raw.is_contended(), || self.raw.try_upgradable());
        (self.raw).attempt_or(How::upgradable::<R>(), queue, attempt, || {
            self.upgradable_slow(limit)
        })
    }

    #[cold]
    #[inline(never)]
    fn upgradable_slow(
        &self,
        limit: impl FnOnce() -> overlock_core::Instant,
    ) -> Option<R::Upgradable> {
        self.raw.upgradable_until(limit())
    }

    /// Acquires the lock as its upgradable reader, and waits as long as necessary.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn upgradable_read(&self) -> UpgradableReadGuard<'_, R, T> {
        // SAFETY: just acquired.
        unsafe { Self::upgrader(self, self.acquire_upgradable()) }
    }

    /// As [`upgradable_read`](Self::upgradable_read), if that needs no waiting.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_upgradable_read(&self) -> Option<UpgradableReadGuard<'_, R, T>> {
        let token = self.attempt_upgradable()?;
        // SAFETY: just acquired.
        Some(unsafe { Self::upgrader(self, token) })
    }

    /// As [`upgradable_read`](Self::upgradable_read), unless `timeout` passes first. Tries at least
    /// once.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_upgradable_read_for(
        &self,
        timeout: Duration,
    ) -> Option<UpgradableReadGuard<'_, R, T>> {
        let token = self.upgradable_before(|| deadline::after(timeout))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::upgrader(self, token) })
    }

    /// As [`upgradable_read`](Self::upgradable_read), unless `deadline` passes first. Tries at
    /// least once.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_upgradable_read_until(
        &self,
        deadline: Instant,
    ) -> Option<UpgradableReadGuard<'_, R, T>> {
        let token = self.upgradable_before(|| deadline::at(deadline))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::upgrader(self, token) })
    }

    /// As [`upgradable_read`](Self::upgradable_read), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn upgradable_read_arc(self: &Arc<Self>) -> ArcUpgradableReadGuard<R, T> {
        // SAFETY: just acquired.
        unsafe { Self::upgrader(Arc::clone(self), self.acquire_upgradable()) }
    }

    /// As [`try_upgradable_read`](Self::try_upgradable_read), with a guard that keeps the lock
    /// alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_upgradable_read_arc(self: &Arc<Self>) -> Option<ArcUpgradableReadGuard<R, T>> {
        let token = self.attempt_upgradable()?;
        // SAFETY: just acquired.
        Some(unsafe { Self::upgrader(Arc::clone(self), token) })
    }

    /// As [`try_upgradable_read_for`](Self::try_upgradable_read_for), with a guard that keeps the
    /// lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_upgradable_read_arc_for(
        self: &Arc<Self>,
        timeout: Duration,
    ) -> Option<ArcUpgradableReadGuard<R, T>> {
        let token = self.upgradable_before(|| deadline::after(timeout))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::upgrader(Arc::clone(self), token) })
    }

    /// As [`try_upgradable_read_until`](Self::try_upgradable_read_until), with a guard that keeps
    /// the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_upgradable_read_arc_until(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Option<ArcUpgradableReadGuard<R, T>> {
        let token = self.upgradable_before(|| deadline::at(deadline))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::upgrader(Arc::clone(self), token) })
    }

    /// Returns a guard for an upgradable reader's acquisition that the caller holds already.
    ///
    /// # Safety
    ///
    /// `token` is that of an upgradable reader's acquisition of this lock by the calling thread,
    /// and is used for nothing else.
    #[inline]
    pub unsafe fn make_upgradable_guard_unchecked(
        &self,
        token: R::Upgradable,
    ) -> UpgradableReadGuard<'_, R, T> {
        // SAFETY: the caller's promise.
        unsafe { Self::upgrader(self, token) }
    }

    /// As [`make_upgradable_guard_unchecked`](Self::make_upgradable_guard_unchecked), with a guard
    /// that keeps the lock alive.
    ///
    /// # Safety
    ///
    /// As for [`make_upgradable_guard_unchecked`](Self::make_upgradable_guard_unchecked).
    #[inline]
    pub unsafe fn make_upgradable_arc_guard_unchecked(
        self: &Arc<Self>,
        token: R::Upgradable,
    ) -> ArcUpgradableReadGuard<R, T> {
        // SAFETY: the caller's promise.
        unsafe { Self::upgrader(Arc::clone(self), token) }
    }
}

/// Result of an attempt to upgrade: the writer's token, or the old one.
type Upgraded<R> = Result<<R as RawRwLock>::Write, <R as RawUpgradeRwLock>::Upgradable>;

impl<R: RawUpgradeRwLock, P: Place<Raw = R>> Guard<P, Upgradable<R>> {
    /// Becomes the writer: waits until all readers have left, without letting a writer in between.
    ///
    /// A thread that has a reader's guard as well waits for itself, for ever.
    #[inline]
    pub fn upgrade(s: Self) -> Guard<P, Write<R>> {
        let (place, token) = s.into_parts();
        // SAFETY: the guard's own acquisition, on its thread.
        let token = place
            .parts()
            .0
            .upgrades(|| unsafe { place.parts().0.upgrade(token) });
        // SAFETY: the acquisition has become the writer's, by this thread.
        unsafe { Guard::new(place, token) }
    }

    /// As [`upgrade`](Self::upgrade), if that needs no waiting.
    ///
    /// # Errors
    ///
    /// The guard itself, if a reader holds the lock.
    #[inline]
    pub fn try_upgrade(s: Self) -> Result<Guard<P, Write<R>>, Self> {
        // SAFETY: `upgraded_by` passes the guard's own acquisition.
        s.upgraded_by(|raw, token| unsafe { raw.try_upgrade(token) })
    }

    /// As [`upgrade`](Self::upgrade), unless `timeout` passes first. Tries at least once.
    ///
    /// # Errors
    ///
    /// The guard itself, if a reader still holds the lock.
    #[inline]
    pub fn try_upgrade_for(s: Self, timeout: Duration) -> Result<Guard<P, Write<R>>, Self> {
        // SAFETY: `upgraded_by` passes the guard's own acquisition.
        s.upgraded_by(|raw, token| unsafe { raw.upgrade_until(token, deadline::after(timeout)) })
    }

    /// As [`upgrade`](Self::upgrade), unless `deadline` passes first. Tries at least once.
    ///
    /// # Errors
    ///
    /// The guard itself, if a reader still holds the lock.
    #[inline]
    pub fn try_upgrade_until(s: Self, deadline: Instant) -> Result<Guard<P, Write<R>>, Self> {
        // SAFETY: `upgraded_by` passes the guard's own acquisition.
        s.upgraded_by(|raw, token| unsafe { raw.upgrade_until(token, deadline::at(deadline)) })
    }

    /// Becomes a plain reader, which makes room for another upgradable one. No writer comes
    /// between.
    #[inline]
    pub fn downgrade(s: Self) -> Guard<P, Read<R>> {
        let (place, token) = s.into_parts();
        place.parts().0.downgrades();
        // SAFETY: the guard's own acquisition, on its thread.
        let token = unsafe { place.parts().0.downgrade_upgradable(token) };
        // SAFETY: the acquisition has become a plain reader's, by this thread.
        unsafe { Guard::new(place, token) }
    }

    /// Becomes the writer while `f` runs, and the upgradable reader again afterwards, even if `f`
    /// panics. It may wait for readers to leave. No writer comes between.
    ///
    /// ```
    /// let lock = overlock::RwLock::new(1);
    /// let mut guard = lock.upgradable_read();
    /// guard.with_upgraded(|data| *data += 1);
    /// assert_eq!(*guard, 2);
    /// ```
    #[inline]
    pub fn with_upgraded<Ret, F: FnOnce(&mut P::Data) -> Ret>(&mut self, f: F) -> Ret {
        // SAFETY: `while_writer` gives the guard a token again, or the process ends.
        let token = unsafe { self.take_token() };
        // SAFETY: the guard's own acquisition, on its thread.
        let token = or_abort(|| (self.raw()).upgrades(|| unsafe { self.raw().upgrade(token) }));
        self.while_writer(token, f)
    }

    /// As [`with_upgraded`](Self::with_upgraded), if that needs no waiting; `None`, without a call
    /// of `f`, if a reader holds the lock.
    #[inline]
    pub fn try_with_upgraded<Ret, F: FnOnce(&mut P::Data) -> Ret>(&mut self, f: F) -> Option<Ret> {
        // SAFETY: `with_upgraded_by` passes the guard's own acquisition.
        self.with_upgraded_by(|raw, token| unsafe { raw.try_upgrade(token) }, f)
    }

    /// As [`with_upgraded`](Self::with_upgraded), unless `timeout` passes first. Tries at least
    /// once.
    #[inline]
    pub fn try_with_upgraded_for<Ret, F: FnOnce(&mut P::Data) -> Ret>(
        &mut self,
        timeout: Duration,
        f: F,
    ) -> Option<Ret> {
        self.with_upgraded_by(
            // SAFETY: `with_upgraded_by` passes the guard's own acquisition.
            |raw, token| unsafe { raw.upgrade_until(token, deadline::after(timeout)) },
            f,
        )
    }

    /// As [`with_upgraded`](Self::with_upgraded), unless `deadline` passes first. Tries at least
    /// once.
    #[inline]
    pub fn try_with_upgraded_until<Ret, F: FnOnce(&mut P::Data) -> Ret>(
        &mut self,
        deadline: Instant,
        f: F,
    ) -> Option<Ret> {
        self.with_upgraded_by(
            // SAFETY: `with_upgraded_by` passes the guard's own acquisition.
            |raw, token| unsafe { raw.upgrade_until(token, deadline::at(deadline)) },
            f,
        )
    }

    #[inline]
    fn upgraded_by(
        self,
        upgrade: impl FnOnce(&R, R::Upgradable) -> Upgraded<R>,
    ) -> Result<Guard<P, Write<R>>, Self> {
        let (place, token) = self.into_parts();
        match upgrade(place.parts().0, token) {
            Ok(token) => {
                place.parts().0.is_now(How::writer::<R>());
                // SAFETY: the acquisition has become the writer's, by this thread.
                Ok(unsafe { Guard::new(place, token) })
            }
            // SAFETY: the acquisition is what it was.
            Err(token) => Err(unsafe { Guard::new(place, token) }),
        }
    }

    #[inline]
    fn with_upgraded_by<V>(
        &mut self,
        upgrade: impl FnOnce(&R, R::Upgradable) -> Upgraded<R>,
        f: impl FnOnce(&mut P::Data) -> V,
    ) -> Option<V> {
        // SAFETY: both arms give the guard a token again, or the process ends.
        let token = unsafe { self.take_token() };
        match or_abort(|| upgrade(self.raw(), token)) {
            Ok(token) => Some(self.while_writer(token, f)),
            Err(token) => {
                self.put_token(token);
                None
            }
        }
    }

    /// Runs `f` as the writer, with `token`, and makes the guard an upgradable reader's again,
    /// however `f` ends.
    #[inline]
    fn while_writer<V>(&mut self, token: R::Write, f: impl FnOnce(&mut P::Data) -> V) -> V {
        struct Back<'a, R: RawUpgradeRwLock, P: Place<Raw = R>> {
            guard: &'a mut Guard<P, Upgradable<R>>,
            token: ManuallyDrop<R::Write>,
        }

        impl<R: RawUpgradeRwLock, P: Place<Raw = R>> Drop for Back<'_, R, P> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the token is there from the beginning, and is not used again.
                let token = unsafe { ManuallyDrop::take(&mut self.token) };
                let raw = self.guard.raw();
                raw.is_now(How::upgradable::<R>());
                // SAFETY: the token is that of the writer that the guard has become, on its thread.
                let token = or_abort(|| unsafe { raw.downgrade_to_upgradable(token) });
                self.guard.put_token(token);
            }
        }

        self.raw().is_now(How::writer::<R>());
        let back = Back {
            guard: self,
            token: ManuallyDrop::new(token),
        };
        // SAFETY: the writer is alone with the data until `back` is dropped.
        f(unsafe { &mut *back.guard.data() })
    }
}
