//! Readers that may read what they read already: single acquisitions of [`OverlockRw`], and a lock
//! all of whose readers are such.

use super::{OverlockRw, Passing, Refused, counted};
use crate::platform::{Deadline, FutexPlatform, Platform};
use crate::raw::{
    ConstLock, RawDowngradeRwLock, RawFairRwLock, RawForkRwLock, RawRecursiveRwLock, RawRwLock,
    RawTimedRwLock, RawUpgradeRwLock,
};

// SAFETY: I1 holds for readers that barge, too.
unsafe impl<P: FutexPlatform> RawRecursiveRwLock for OverlockRw<P> {
    fn read_recursive(&self) {
        counted(self.read_passing(Passing::AtOnce, None));
    }

    fn try_read_recursive(&self) -> Option<()> {
        self.try_read_passing(Passing::AtOnce).ok()
    }

    fn read_recursive_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        let result = self.read_passing(Passing::AtOnce, Some(deadline.into()));
        (result != Err(Refused::Late)).then(|| counted(result))
    }
}

/// An [`OverlockRw`] whose readers wait only for the thread that writes, not for threads that want
/// to: so a thread may read what it reads already, and writers may starve.
#[derive(Debug)]
pub struct RecursiveRw<P: Platform>(OverlockRw<P>);

impl<P: Platform> RecursiveRw<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        RecursiveRw(OverlockRw::new())
    }
}

impl<P: Platform> Default for RecursiveRw<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> ConstLock for RecursiveRw<P> {
    const INIT: Self = Self::new();
}

// SAFETY: as for `OverlockRw`; so below.
unsafe impl<P: FutexPlatform> RawRwLock for RecursiveRw<P> {
    type Read = ();
    type Write = ();

    const NAME: &'static str = "recursive_rw";
    const IS_RECURSIVE: bool = true;

    #[inline]
    fn read(&self) {
        if !self.0.enter() {
            self.0.read_recursive();
        }
    }

    fn try_read(&self) -> Option<()> {
        self.0.try_read_recursive()
    }

    #[inline]
    unsafe fn unlock_read(&self, (): ()) {
        // SAFETY: the caller's promise; so below.
        unsafe { self.0.unlock_read(()) }
    }

    #[inline]
    fn write(&self) {
        self.0.write();
    }

    #[inline]
    fn try_write(&self) -> Option<()> {
        self.0.try_write()
    }

    #[inline]
    unsafe fn unlock_write(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_write(()) }
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    fn is_write_locked(&self) -> bool {
        self.0.is_write_locked()
    }

    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }
}

// SAFETY: as above.
unsafe impl<P: FutexPlatform> RawTimedRwLock for RecursiveRw<P> {
    fn read_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.read_recursive_until(deadline)
    }

    fn write_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.write_until(deadline)
    }
}

// SAFETY: as above.
unsafe impl<P: FutexPlatform> RawRecursiveRwLock for RecursiveRw<P> {
    fn read_recursive(&self) {
        self.read();
    }

    fn try_read_recursive(&self) -> Option<()> {
        self.try_read()
    }

    fn read_recursive_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.read_until(deadline)
    }
}

// SAFETY: as above.
unsafe impl<P: FutexPlatform> RawDowngradeRwLock for RecursiveRw<P> {
    unsafe fn downgrade(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.downgrade(()) }
    }
}

// SAFETY: as above.
unsafe impl<P: FutexPlatform> RawUpgradeRwLock for RecursiveRw<P> {
    type Upgradable = ();

    fn upgradable(&self) {
        self.0.upgradable();
    }

    fn try_upgradable(&self) -> Option<()> {
        self.0.try_upgradable()
    }

    fn upgradable_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.0.upgradable_until(deadline)
    }

    unsafe fn unlock_upgradable(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable(()) }
    }

    /// Waits for readers that come meanwhile, too.
    unsafe fn upgrade(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.upgrade(()) }
    }

    unsafe fn try_upgrade(&self, (): ()) -> Result<(), ()> {
        // SAFETY: as above.
        unsafe { self.0.try_upgrade(()) }
    }

    unsafe fn upgrade_until(&self, (): (), deadline: impl Into<Deadline>) -> Result<(), ()> {
        // SAFETY: as above.
        unsafe { self.0.upgrade_until((), deadline) }
    }

    unsafe fn downgrade_upgradable(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.downgrade_upgradable(()) }
    }

    unsafe fn downgrade_to_upgradable(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.downgrade_to_upgradable(()) }
    }
}

// SAFETY: as above.
unsafe impl<P: FutexPlatform> RawFairRwLock for RecursiveRw<P> {
    unsafe fn unlock_read_fair(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_read_fair(()) }
    }

    unsafe fn unlock_write_fair(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_write_fair(()) }
    }

    unsafe fn unlock_upgradable_fair(&self, (): ()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable_fair(()) }
    }
}

// SAFETY: as above.
unsafe impl<P: FutexPlatform> RawForkRwLock for RecursiveRw<P> {
    unsafe fn forget_waiters(&self, written: bool) {
        // SAFETY: as above.
        unsafe { self.0.forget_waiters(written) }
    }
}
