//! lock_api's traits for the two reader-writer locks.

use std::time::{Duration, Instant};

use crate::GuardMarker;
use crate::locks::{Shared, after};

/// The raw lock of [`RwLock`](crate::RwLock): overlock's. With `RECURSIVE` readers pass writers
/// that wait, so a thread may read twice.
#[derive(Debug)]
pub struct RawRwLock<const RECURSIVE: bool = false>(pub(crate) Shared);

/// The raw lock of [`RecursiveRwLock`](crate::RecursiveRwLock).
pub type RawRwLockRecursive = RawRwLock<true>;

/// The state of a guard that its lock does not need.
const HELD: GuardMarker = GuardMarker::new();

fn held(success: bool) -> Option<GuardMarker> {
    success.then_some(HELD)
}

fn upgraded(success: bool) -> Result<GuardMarker, GuardMarker> {
    if success { Ok(HELD) } else { Err(HELD) }
}

// SAFETY: overlock's lock has one writer or readers, and its acquisitions and releases have acquire
// and release ordering. So below.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLock for RawRwLock<RECURSIVE> {
    const INIT: Self = RawRwLock(Shared::new());

    type SharedGuard = GuardMarker;
    type ExclusiveGuard = GuardMarker;

    #[inline]
    fn lock_shared(&self) -> GuardMarker {
        self.0.read(RECURSIVE);
        HELD
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardMarker> {
        held(self.0.try_read(RECURSIVE))
    }

    #[inline]
    unsafe fn unlock_shared(&self, _: GuardMarker) {
        // SAFETY: the caller holds the lock in this way. So below.
        unsafe { self.0.unlock_read() }
    }

    #[inline]
    fn lock_exclusive(&self) -> GuardMarker {
        self.0.write();
        HELD
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<GuardMarker> {
        held(self.0.try_write())
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _: GuardMarker) {
        // SAFETY: as above.
        unsafe { self.0.unlock_write() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }
}

// SAFETY: as above; a guard has no state that would have to be restored. So below.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockFair for RawRwLock<RECURSIVE> {
    unsafe fn unlock_shared_fair(&self, _: GuardMarker) {
        // SAFETY: as above.
        unsafe { self.0.unlock_read_fair() }
    }

    unsafe fn unlock_exclusive_fair(&self, _: GuardMarker) {
        // SAFETY: as above.
        unsafe { self.0.unlock_write_fair() }
    }

    unsafe fn bump_shared(&self, _: &mut GuardMarker) {
        // SAFETY: as above.
        unsafe { self.0.bump_read(RECURSIVE) }
    }

    unsafe fn bump_exclusive(&self, _: &mut GuardMarker) {
        // SAFETY: as above.
        unsafe { self.0.bump_write() }
    }
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockDowngrade for RawRwLock<RECURSIVE> {
    unsafe fn downgrade(&self, _: GuardMarker) -> GuardMarker {
        // SAFETY: as above.
        unsafe { self.0.downgrade() };
        HELD
    }
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockTimed for RawRwLock<RECURSIVE> {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardMarker> {
        held(self.0.read_until(RECURSIVE, after(timeout)))
    }

    fn try_lock_shared_until(&self, timeout: Instant) -> Option<GuardMarker> {
        held(self.0.read_until(RECURSIVE, Some(timeout)))
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardMarker> {
        held(self.0.write_until(after(timeout)))
    }

    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<GuardMarker> {
        held(self.0.write_until(Some(timeout)))
    }
}

// SAFETY: as above; there is one upgradable reader at a time.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgrade for RawRwLock<RECURSIVE> {
    type UpgradableGuard = GuardMarker;

    fn lock_upgradable(&self) -> GuardMarker {
        self.0.upgradable();
        HELD
    }

    fn try_lock_upgradable(&self) -> Option<GuardMarker> {
        held(self.0.try_upgradable())
    }

    unsafe fn unlock_upgradable(&self, _: GuardMarker) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable() }
    }

    unsafe fn upgrade(&self, _: GuardMarker) -> GuardMarker {
        // SAFETY: as above.
        unsafe { self.0.upgrade(None) };
        HELD
    }

    unsafe fn try_upgrade(&self, _: GuardMarker) -> Result<GuardMarker, GuardMarker> {
        // SAFETY: as above.
        upgraded(unsafe { self.0.try_upgrade() })
    }
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeFair for RawRwLock<RECURSIVE> {
    unsafe fn unlock_upgradable_fair(&self, _: GuardMarker) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable_fair() }
    }

    unsafe fn bump_upgradable(&self, _: &mut GuardMarker) {
        // SAFETY: as above.
        unsafe { self.0.bump_upgradable() }
    }
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeDowngrade for RawRwLock<RECURSIVE> {
    unsafe fn downgrade_upgradable(&self, _: GuardMarker) -> GuardMarker {
        // SAFETY: as above.
        unsafe { self.0.downgrade_upgradable() };
        HELD
    }

    unsafe fn downgrade_to_upgradable(&self, _: GuardMarker) -> GuardMarker {
        // SAFETY: as above.
        unsafe { self.0.downgrade_to_upgradable() };
        HELD
    }
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeTimed for RawRwLock<RECURSIVE> {
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<GuardMarker> {
        held(self.0.upgradable_until(after(timeout)))
    }

    fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<GuardMarker> {
        held(self.0.upgradable_until(Some(timeout)))
    }

    unsafe fn try_upgrade_for(
        &self,
        _: GuardMarker,
        timeout: Duration,
    ) -> Result<GuardMarker, GuardMarker> {
        // SAFETY: as above.
        upgraded(unsafe { self.0.upgrade(after(timeout)) })
    }

    unsafe fn try_upgrade_until(
        &self,
        _: GuardMarker,
        timeout: Instant,
    ) -> Result<GuardMarker, GuardMarker> {
        // SAFETY: as above.
        upgraded(unsafe { self.0.upgrade(Some(timeout)) })
    }
}
