//! The locks behind both versions: overlock's, with the standard library's clock and with reports
//! to the deadlock detection.
//!
//! Neither word names a thread, and the tokens are empty. So any thread may release what another
//! has acquired, as guards that are `Send` do.

use std::ptr;
use std::time::{Duration, Instant};

use overlock::System;
use overlock_core::raw::{ConstLock, RawDowngradeRwLock, RawFairLock, RawFairRwLock, RawLock};
use overlock_core::raw::{RawRwLock, RawTimedLock, RawTimedRwLock, RawUpgradeRwLock};
use overlock_core::rw::OverlockRw;
use overlock_core::rw::overlock_rw::{Passing, Refused};
use overlock_core::sleep::{self, Overlock};
use overlock_core::{Deadline, Platform};

use crate::deadlock::{self, Kind};

/// When a wait ends: `None` for never.
pub type Limit = Option<Instant>;

/// The moment `timeout` from now, if there is one.
pub fn after(timeout: Duration) -> Limit {
    Instant::now().checked_add(timeout)
}

fn deadline(limit: Instant) -> Deadline {
    let left = limit.saturating_duration_since(Instant::now());
    System::now().plus(left).into()
}

#[derive(Debug)]
#[repr(transparent)]
pub struct Exclusive(Overlock<System>);

impl Exclusive {
    pub const fn new() -> Self {
        Exclusive(ConstLock::INIT)
    }

    fn key(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    #[inline]
    pub fn lock(&self) {
        let wait = || {
            self.0.lock();
            true
        };
        deadlock::acquire(
            self.key(),
            Kind::Write,
            None,
            || self.0.try_lock().is_some(),
            wait,
        );
    }

    #[inline]
    pub fn try_lock(&self) -> bool {
        deadlock::acquired(self.key(), Kind::Write, self.0.try_lock().is_some())
    }

    pub fn lock_until(&self, limit: Limit) -> bool {
        let Some(at) = limit else {
            self.lock();
            return true;
        };
        let wait = || self.0.lock_until(deadline(at)).is_some();
        deadlock::acquire(
            self.key(),
            Kind::Write,
            limit,
            || self.0.try_lock().is_some(),
            wait,
        )
    }

    /// # Safety
    ///
    /// The lock is held for the caller.
    #[inline]
    pub unsafe fn unlock(&self) {
        deadlock::released(self.key(), Kind::Write);
        // SAFETY: the caller's promise; a thread's name is not part of the lock.
        unsafe { self.0.unlock(()) }
    }

    /// # Safety
    ///
    /// As for [`unlock`](Self::unlock).
    #[inline]
    pub unsafe fn unlock_fair(&self) {
        deadlock::released(self.key(), Kind::Write);
        // SAFETY: as there.
        unsafe { self.0.unlock_fair(()) }
    }

    /// Lets a waiter have the lock, and acquires it again.
    ///
    /// # Safety
    ///
    /// As for [`unlock`](Self::unlock).
    #[inline]
    pub unsafe fn bump(&self) {
        if self.0.is_contended() {
            // SAFETY: as there.
            unsafe { self.unlock_fair() };
            self.lock();
        }
    }

    #[inline]
    pub fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

impl ConstLock for Exclusive {
    const INIT: Self = Exclusive::new();
}

// SAFETY: acquisitions and releases are overlock's, at the same address (`repr(transparent)`).
unsafe impl RawLock for Exclusive {
    type Token = ();

    const NAME: &'static str = "parking_lot";

    fn lock(&self) {
        self.lock();
    }

    fn try_lock(&self) -> Option<()> {
        self.try_lock().then_some(())
    }

    unsafe fn unlock(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock() }
    }

    fn is_locked(&self) -> bool {
        self.is_locked()
    }

    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }

    fn is_overlock<P: Platform>(&self) -> bool {
        self.0.is_overlock::<P>()
    }

    fn is_watched(&self) -> bool {
        cfg!(feature = "deadlock_detection")
    }

    fn lock_adopted(&self) {
        self.0.lock_adopted();
    }
}

#[derive(Debug)]
pub struct Waiters(sleep::Condvar<System>);

impl Waiters {
    pub const fn new() -> Self {
        Waiters(sleep::Condvar::new())
    }

    /// Returns whether it was notified.
    ///
    /// # Panics
    ///
    /// If a thread waits with another mutex.
    ///
    /// # Safety
    ///
    /// The mutex is held for the caller.
    pub unsafe fn wait(&self, mutex: &Exclusive, limit: Limit) -> bool {
        assert!(
            !self.0.waits_with_another(&mutex.0),
            "attempted to use a condition variable with more than one mutex"
        );
        // SAFETY: the caller's promise.
        let ((), notified) = unsafe { self.0.wait_limited(mutex, (), limit.map(deadline), None) };
        notified
    }

    #[inline]
    pub fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    #[inline]
    pub fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}

#[derive(Debug)]
pub struct Shared(pub(crate) OverlockRw<System>);

impl Shared {
    pub const fn new() -> Self {
        Shared(ConstLock::INIT)
    }

    fn key(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// With `recursive`, a reader waits for no writer that waits itself.
    #[inline]
    pub fn read(&self, recursive: bool) {
        let wait = || {
            if recursive {
                self.pass(None);
            } else {
                self.0.read();
            }
            true
        };
        deadlock::acquire(
            self.key(),
            read_kind(recursive),
            None,
            || self.enter(recursive),
            wait,
        );
    }

    #[inline]
    pub fn try_read(&self, recursive: bool) -> bool {
        deadlock::acquired(self.key(), Kind::Read, self.enter(recursive))
    }

    pub fn read_until(&self, recursive: bool, limit: Limit) -> bool {
        let Some(at) = limit else {
            self.read(recursive);
            return true;
        };
        let wait = || {
            let at = deadline(at);
            match recursive {
                true => self.pass(Some(at)),
                false => self.0.read_until(at).is_some(),
            }
        };
        let kind = read_kind(recursive);
        deadlock::acquire(self.key(), kind, limit, || self.enter(recursive), wait)
    }

    fn enter(&self, recursive: bool) -> bool {
        match recursive {
            true => self.0.try_read_passing(Passing::AtOnce).is_ok(),
            false => self.0.try_read().is_some(),
        }
    }

    /// Returns false after the deadline.
    fn pass(&self, until: Option<Deadline>) -> bool {
        match self.0.read_passing(Passing::AtOnce, until) {
            Ok(()) => true,
            Err(Refused::Late) => false,
            Err(refused) => panic!("too many readers: {refused:?}"),
        }
    }

    /// # Safety
    ///
    /// The lock is held for the caller, for reading.
    #[inline]
    pub unsafe fn unlock_read(&self) {
        deadlock::released(self.key(), Kind::Read);
        // SAFETY: the caller's promise; a thread's name is not part of the lock. So below.
        unsafe { self.0.unlock_read(()) }
    }

    /// # Safety
    ///
    /// As for [`unlock_read`](Self::unlock_read).
    #[inline]
    pub unsafe fn unlock_read_fair(&self) {
        deadlock::released(self.key(), Kind::Read);
        // SAFETY: as there.
        unsafe { self.0.unlock_read_fair(()) }
    }

    /// # Safety
    ///
    /// As for [`unlock_read`](Self::unlock_read).
    pub unsafe fn bump_read(&self, recursive: bool) {
        // With another reader inside, which may be the caller too, a recursive one keeps its share.
        if self.0.is_contended() && (!recursive || self.0.is_sole_reader()) {
            // SAFETY: as there.
            unsafe { self.unlock_read_fair() };
            self.read(false);
        }
    }

    #[inline]
    pub fn write(&self) {
        let wait = || {
            self.0.write();
            true
        };
        deadlock::acquire(
            self.key(),
            Kind::Write,
            None,
            || self.0.try_write().is_some(),
            wait,
        );
    }

    #[inline]
    pub fn try_write(&self) -> bool {
        deadlock::acquired(self.key(), Kind::Write, self.0.try_write().is_some())
    }

    pub fn write_until(&self, limit: Limit) -> bool {
        let Some(at) = limit else {
            self.write();
            return true;
        };
        let wait = || self.0.write_until(deadline(at)).is_some();
        deadlock::acquire(
            self.key(),
            Kind::Write,
            limit,
            || self.0.try_write().is_some(),
            wait,
        )
    }

    /// # Safety
    ///
    /// The lock is held for the caller, for writing.
    #[inline]
    pub unsafe fn unlock_write(&self) {
        deadlock::released(self.key(), Kind::Write);
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_write(()) }
    }

    /// # Safety
    ///
    /// As for [`unlock_write`](Self::unlock_write).
    #[inline]
    pub unsafe fn unlock_write_fair(&self) {
        deadlock::released(self.key(), Kind::Write);
        // SAFETY: as there.
        unsafe { self.0.unlock_write_fair(()) }
    }

    /// # Safety
    ///
    /// As for [`unlock_write`](Self::unlock_write).
    pub unsafe fn bump_write(&self) {
        if self.0.is_contended() {
            // SAFETY: as there.
            unsafe { self.unlock_write_fair() };
            self.write();
        }
    }

    /// # Safety
    ///
    /// As for [`unlock_write`](Self::unlock_write).
    pub unsafe fn downgrade(&self) {
        deadlock::changed(self.key(), Kind::Write, Kind::Read);
        // SAFETY: as there.
        unsafe { self.0.downgrade(()) }
    }

    pub fn upgradable(&self) {
        let wait = || {
            self.0.upgradable();
            true
        };
        let quick = || self.0.try_upgradable().is_some();
        deadlock::acquire(self.key(), Kind::Upgradable, None, quick, wait);
    }

    pub fn try_upgradable(&self) -> bool {
        deadlock::acquired(
            self.key(),
            Kind::Upgradable,
            self.0.try_upgradable().is_some(),
        )
    }

    pub fn upgradable_until(&self, limit: Limit) -> bool {
        let Some(at) = limit else {
            self.upgradable();
            return true;
        };
        let wait = || self.0.upgradable_until(deadline(at)).is_some();
        let quick = || self.0.try_upgradable().is_some();
        deadlock::acquire(self.key(), Kind::Upgradable, limit, quick, wait)
    }

    /// # Safety
    ///
    /// The lock is held for the caller, as the upgradable reader.
    pub unsafe fn unlock_upgradable(&self) {
        deadlock::released(self.key(), Kind::Upgradable);
        // SAFETY: the caller's promise. So below.
        unsafe { self.0.unlock_upgradable(()) }
    }

    /// # Safety
    ///
    /// As for [`unlock_upgradable`](Self::unlock_upgradable).
    pub unsafe fn unlock_upgradable_fair(&self) {
        deadlock::released(self.key(), Kind::Upgradable);
        // SAFETY: as there.
        unsafe { self.0.unlock_upgradable_fair(()) }
    }

    /// # Safety
    ///
    /// As for [`unlock_upgradable`](Self::unlock_upgradable).
    pub unsafe fn bump_upgradable(&self) {
        if self.0.is_contended() {
            // SAFETY: as there.
            unsafe { self.unlock_upgradable_fair() };
            self.upgradable();
        }
    }

    /// Becomes the writer, unless the limit comes first.
    ///
    /// # Safety
    ///
    /// As for [`unlock_upgradable`](Self::unlock_upgradable).
    pub unsafe fn upgrade(&self, limit: Limit) -> bool {
        // SAFETY: as there.
        let quick = || unsafe { self.0.try_upgrade(()) }.is_ok();
        let wait = || match limit {
            // SAFETY: as there.
            Some(at) => unsafe { self.0.upgrade_until((), deadline(at)) }.is_ok(),
            None => {
                // SAFETY: as there.
                unsafe { self.0.upgrade(()) };
                true
            }
        };
        let upgraded = deadlock::wait(self.key(), Kind::Upgrade, limit, quick, wait);
        if upgraded {
            deadlock::changed(self.key(), Kind::Upgradable, Kind::Write);
        }
        upgraded
    }

    /// # Safety
    ///
    /// As for [`unlock_upgradable`](Self::unlock_upgradable).
    pub unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: as there.
        let upgraded = unsafe { self.0.try_upgrade(()) }.is_ok();
        if upgraded {
            deadlock::changed(self.key(), Kind::Upgradable, Kind::Write);
        }
        upgraded
    }

    /// # Safety
    ///
    /// As for [`unlock_upgradable`](Self::unlock_upgradable).
    pub unsafe fn downgrade_upgradable(&self) {
        deadlock::changed(self.key(), Kind::Upgradable, Kind::Read);
        // SAFETY: as there.
        unsafe { self.0.downgrade_upgradable(()) }
    }

    /// # Safety
    ///
    /// As for [`unlock_write`](Self::unlock_write).
    pub unsafe fn downgrade_to_upgradable(&self) {
        deadlock::changed(self.key(), Kind::Write, Kind::Upgradable);
        // SAFETY: as there.
        unsafe { self.0.downgrade_to_upgradable(()) }
    }

    #[inline]
    pub fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline]
    pub fn is_locked_exclusive(&self) -> bool {
        self.0.is_write_locked()
    }
}

const fn read_kind(recursive: bool) -> Kind {
    if recursive {
        Kind::Recursive
    } else {
        Kind::Read
    }
}
