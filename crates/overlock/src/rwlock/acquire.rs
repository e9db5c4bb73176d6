//! Reading and writing a [`SharedLock`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use overlock_core::raw::{RawFairRwLock, RawRwLock, RawTimedRwLock};

use super::{ArcReadGuard, ArcWriteGuard, Read, ReadGuard, SharedLock, Write, WriteGuard};
use crate::deadline;
use crate::guard::{Guard, Place};
use crate::watch::How;

impl<R: RawRwLock, T: ?Sized> SharedLock<R, T> {
    /// # Safety
    ///
    /// `token` is that of a reader's acquisition of `place`'s lock by the calling thread, and is
    /// used for nothing else.
    #[inline]
    pub(super) unsafe fn reader<P: Place<Raw = R>>(place: P, token: R::Read) -> Guard<P, Read<R>> {
        // SAFETY: the caller's promise.
        unsafe { Guard::new(place, token) }
    }

    /// # Safety
    ///
    /// As for [`reader`](Self::reader), of a writer's.
    #[inline]
    unsafe fn writer<P: Place<Raw = R>>(place: P, token: R::Write) -> Guard<P, Write<R>> {
        // SAFETY: the caller's promise.
        unsafe { Guard::new(place, token) }
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn acquire_read(&self, level: u8) -> R::Read {
        let (queue, attempt) = (|| self.raw.is_contended(), || self.raw.try_read());
        (self.raw).acquire(How::reader::<R>(), level, queue, attempt, || {
            self.raw.read()
        })
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn acquire_write(&self, level: u8) -> R::Write {
        let (queue, attempt) = (|| self.raw.is_contended(), || self.raw.try_write());
        (self.raw).acquire(How::writer::<R>(), level, queue, attempt, || {
            self.raw.write()
        })
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn attempt_read(&self) -> Option<R::Read> {
        (self.raw).attempt(
            How::reader::<R>(),
            || self.raw.is_contended(),
            || self.raw.try_read(),
        )
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn attempt_write(&self) -> Option<R::Write> {
        (self.raw).attempt(
            How::writer::<R>(),
            || self.raw.is_contended(),
            || self.raw.try_write(),
        )
    }

    /// Acquires the lock together with other readers, and waits as long as necessary. The calling
    /// thread must not read already.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn read(&self) -> ReadGuard<'_, R, T> {
        // SAFETY: just acquired.
        unsafe { Self::reader(self, self.acquire_read(0)) }
    }

    /// As [`read`](Self::read), for a thread that holds other locks of the same class which come
    /// before this one: see [`lock_nested`](crate::lock::Lock::lock_nested).
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn read_nested(&self, level: u8) -> ReadGuard<'_, R, T> {
        // SAFETY: just acquired.
        unsafe { Self::reader(self, self.acquire_read(level)) }
    }

    /// As [`read`](Self::read), if that needs no waiting.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_read(&self) -> Option<ReadGuard<'_, R, T>> {
        let token = self.attempt_read()?;
        // SAFETY: just acquired.
        Some(unsafe { Self::reader(self, token) })
    }

    /// Acquires the lock exclusively, and waits as long as necessary.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn write(&self) -> WriteGuard<'_, R, T> {
        // SAFETY: just acquired.
        unsafe { Self::writer(self, self.acquire_write(0)) }
    }

    /// As [`write`](Self::write), for a thread that holds other locks of the same class which come
    /// before this one: see [`lock_nested`](crate::lock::Lock::lock_nested).
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn write_nested(&self, level: u8) -> WriteGuard<'_, R, T> {
        // SAFETY: just acquired.
        unsafe { Self::writer(self, self.acquire_write(level)) }
    }

    /// As [`write`](Self::write), if that needs no waiting.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_write(&self) -> Option<WriteGuard<'_, R, T>> {
        let token = self.attempt_write()?;
        // SAFETY: just acquired.
        Some(unsafe { Self::writer(self, token) })
    }

    /// As [`read`](Self::read), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn read_arc(self: &Arc<Self>) -> ArcReadGuard<R, T> {
        // SAFETY: just acquired.
        unsafe { Self::reader(Arc::clone(self), self.acquire_read(0)) }
    }

    /// As [`try_read`](Self::try_read), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_read_arc(self: &Arc<Self>) -> Option<ArcReadGuard<R, T>> {
        let token = self.attempt_read()?;
        // SAFETY: just acquired.
        Some(unsafe { Self::reader(Arc::clone(self), token) })
    }

    /// As [`write`](Self::write), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn write_arc(self: &Arc<Self>) -> ArcWriteGuard<R, T> {
        // SAFETY: just acquired.
        unsafe { Self::writer(Arc::clone(self), self.acquire_write(0)) }
    }

    /// As [`try_write`](Self::try_write), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_write_arc(self: &Arc<Self>) -> Option<ArcWriteGuard<R, T>> {
        let token = self.attempt_write()?;
        // SAFETY: just acquired.
        Some(unsafe { Self::writer(Arc::clone(self), token) })
    }

    /// Returns a guard for a reader's acquisition that the caller holds already: through
    /// [`raw`](Self::raw), or since it forgot the guard.
    ///
    /// # Safety
    ///
    /// `token` is that of a reader's acquisition of this lock by the calling thread, and is used
    /// for nothing else.
    #[inline]
    pub unsafe fn make_read_guard_unchecked(&self, token: R::Read) -> ReadGuard<'_, R, T> {
        // SAFETY: the caller's promise.
        unsafe { Self::reader(self, token) }
    }

    /// Returns a guard for a writer's acquisition that the caller holds already.
    ///
    /// # Safety
    ///
    /// `token` is that of a writer's acquisition of this lock by the calling thread, and is used
    /// for nothing else.
    #[inline]
    pub unsafe fn make_write_guard_unchecked(&self, token: R::Write) -> WriteGuard<'_, R, T> {
        // SAFETY: the caller's promise.
        unsafe { Self::writer(self, token) }
    }

    /// As [`make_read_guard_unchecked`](Self::make_read_guard_unchecked), with a guard that keeps
    /// the lock alive.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline]
    pub unsafe fn make_arc_read_guard_unchecked(
        self: &Arc<Self>,
        token: R::Read,
    ) -> ArcReadGuard<R, T> {
        // SAFETY: the caller's promise.
        unsafe { Self::reader(Arc::clone(self), token) }
    }

    /// As [`make_write_guard_unchecked`](Self::make_write_guard_unchecked), with a guard that keeps
    /// the lock alive.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline]
    pub unsafe fn make_arc_write_guard_unchecked(
        self: &Arc<Self>,
        token: R::Write,
    ) -> ArcWriteGuard<R, T> {
        // SAFETY: the caller's promise.
        unsafe { Self::writer(Arc::clone(self), token) }
    }

    /// Releases a reader's acquisition whose guard was forgotten.
    ///
    /// # Safety
    ///
    /// As for [`make_read_guard_unchecked`](Self::make_read_guard_unchecked); no reference to the
    /// data from that guard remains.
    #[inline]
    pub unsafe fn force_unlock_read(&self, token: R::Read) {
        // SAFETY: the caller's promise.
        self.raw.release(|| unsafe { self.raw.unlock_read(token) });
    }

    /// Releases a writer's acquisition whose guard was forgotten.
    ///
    /// # Safety
    ///
    /// As for [`make_write_guard_unchecked`](Self::make_write_guard_unchecked); no reference to the
    /// data remains.
    #[inline]
    pub unsafe fn force_unlock_write(&self, token: R::Write) {
        // SAFETY: the caller's promise.
        self.raw.release(|| unsafe { self.raw.unlock_write(token) });
    }
}

impl<R: RawFairRwLock, T: ?Sized> SharedLock<R, T> {
    /// As [`force_unlock_read`](Self::force_unlock_read), but a waiting writer gets the lock when
    /// the last reader has left.
    ///
    /// # Safety
    ///
    /// As for [`force_unlock_read`](Self::force_unlock_read).
    #[inline]
    pub unsafe fn force_unlock_read_fair(&self, token: R::Read) {
        // SAFETY: the caller's promise.
        self.raw
            .release(|| unsafe { self.raw.unlock_read_fair(token) });
    }

    /// As [`force_unlock_write`](Self::force_unlock_write), but hands the lock off to a waiter if
    /// one sleeps.
    ///
    /// # Safety
    ///
    /// As for [`force_unlock_write`](Self::force_unlock_write).
    #[inline]
    pub unsafe fn force_unlock_write_fair(&self, token: R::Write) {
        // SAFETY: the caller's promise.
        self.raw
            .release(|| unsafe { self.raw.unlock_write_fair(token) });
    }
}

/// Acquisitions with a limit. All of them try at least once, and never give up early. They read the
/// clock only if the lock is not available at once.
impl<R: RawTimedRwLock, T: ?Sized> SharedLock<R, T> {
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn read_before(&self, limit: impl FnOnce() -> overlock_core::Instant) -> Option<R::Read> {
        let (queue, attempt) = (|| self.raw.is_contended(), || self.raw.try_read());
        (self.raw).attempt_or(How::reader::<R>(), queue, attempt, || self.read_slow(limit))
    }

    #[cold]
    #[inline(never)]
    fn read_slow(&self, limit: impl FnOnce() -> overlock_core::Instant) -> Option<R::Read> {
        self.raw.read_until(limit())
    }

    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    fn write_before(&self, limit: impl FnOnce() -> overlock_core::Instant) -> Option<R::Write> {
        let (queue, attempt) = (|| self.raw.is_contended(), || self.raw.try_write());
        (self.raw).attempt_or(How::writer::<R>(), queue, attempt, || {
            self.write_slow(limit)
        })
    }

    #[cold]
    #[inline(never)]
    fn write_slow(&self, limit: impl FnOnce() -> overlock_core::Instant) -> Option<R::Write> {
        self.raw.write_until(limit())
    }

    /// Acquires the lock for reading unless `timeout` passes first.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_read_for(&self, timeout: Duration) -> Option<ReadGuard<'_, R, T>> {
        let token = self.read_before(|| deadline::after(timeout))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::reader(self, token) })
    }

    /// Acquires the lock for reading unless `deadline` passes first.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_read_until(&self, deadline: Instant) -> Option<ReadGuard<'_, R, T>> {
        let token = self.read_before(|| deadline::at(deadline))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::reader(self, token) })
    }

    /// Acquires the lock for writing unless `timeout` passes first.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_write_for(&self, timeout: Duration) -> Option<WriteGuard<'_, R, T>> {
        let token = self.write_before(|| deadline::after(timeout))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::writer(self, token) })
    }

    /// Acquires the lock for writing unless `deadline` passes first.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_write_until(&self, deadline: Instant) -> Option<WriteGuard<'_, R, T>> {
        let token = self.write_before(|| deadline::at(deadline))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::writer(self, token) })
    }

    /// As [`try_read_for`](Self::try_read_for), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_read_arc_for(self: &Arc<Self>, timeout: Duration) -> Option<ArcReadGuard<R, T>> {
        let token = self.read_before(|| deadline::after(timeout))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::reader(Arc::clone(self), token) })
    }

    /// As [`try_read_until`](Self::try_read_until), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_read_arc_until(self: &Arc<Self>, deadline: Instant) -> Option<ArcReadGuard<R, T>> {
        let token = self.read_before(|| deadline::at(deadline))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::reader(Arc::clone(self), token) })
    }

    /// As [`try_write_for`](Self::try_write_for), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_write_arc_for(self: &Arc<Self>, timeout: Duration) -> Option<ArcWriteGuard<R, T>> {
        let token = self.write_before(|| deadline::after(timeout))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::writer(Arc::clone(self), token) })
    }

    /// As [`try_write_until`](Self::try_write_until), with a guard that keeps the lock alive.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline]
    pub fn try_write_arc_until(self: &Arc<Self>, deadline: Instant) -> Option<ArcWriteGuard<R, T>> {
        let token = self.write_before(|| deadline::at(deadline))?;
        // SAFETY: just acquired.
        Some(unsafe { Self::writer(Arc::clone(self), token) })
    }
}
