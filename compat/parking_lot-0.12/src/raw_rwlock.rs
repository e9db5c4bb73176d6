//! lock_api's traits for the reader-writer lock.

use std::time::{Duration, Instant};

use crate::GuardMarker;
use crate::locks::{Shared, after};

/// The raw lock of [`RwLock`](crate::RwLock): overlock's.
#[derive(Debug)]
pub struct RawRwLock(Shared);

// SAFETY: overlock's lock has one writer or readers, and its acquisitions and releases have acquire
// and release ordering. So below.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = RawRwLock(Shared::new());

    type GuardMarker = GuardMarker;

    #[inline]
    fn lock_shared(&self) {
        self.0.read(false);
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        self.0.try_read(false)
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        // SAFETY: the caller holds the lock in this way. So below.
        unsafe { self.0.unlock_read() }
    }

    #[inline]
    fn lock_exclusive(&self) {
        self.0.write();
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        self.0.try_write()
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
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

// SAFETY: as above.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    unsafe fn unlock_shared_fair(&self) {
        // SAFETY: as above.
        unsafe { self.0.unlock_read_fair() }
    }

    unsafe fn unlock_exclusive_fair(&self) {
        // SAFETY: as above.
        unsafe { self.0.unlock_write_fair() }
    }

    unsafe fn bump_shared(&self) {
        // SAFETY: as above.
        unsafe { self.0.bump_read(false) }
    }

    unsafe fn bump_exclusive(&self) {
        // SAFETY: as above.
        unsafe { self.0.bump_write() }
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self) {
        // SAFETY: as above.
        unsafe { self.0.downgrade() }
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        self.0.read_until(false, after(timeout))
    }

    fn try_lock_shared_until(&self, timeout: Instant) -> bool {
        self.0.read_until(false, Some(timeout))
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        self.0.write_until(after(timeout))
    }

    fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
        self.0.write_until(Some(timeout))
    }
}

// SAFETY: as above; a reader that passes waiting writers waits for the one inside alone.
unsafe impl lock_api::RawRwLockRecursive for RawRwLock {
    #[inline]
    fn lock_shared_recursive(&self) {
        self.0.read(true);
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> bool {
        self.0.try_read(true)
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockRecursiveTimed for RawRwLock {
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
        self.0.read_until(true, after(timeout))
    }

    fn try_lock_shared_recursive_until(&self, timeout: Instant) -> bool {
        self.0.read_until(true, Some(timeout))
    }
}

// SAFETY: as above; there is one upgradable reader at a time.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    fn lock_upgradable(&self) {
        self.0.upgradable();
    }

    fn try_lock_upgradable(&self) -> bool {
        self.0.try_upgradable()
    }

    unsafe fn unlock_upgradable(&self) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable() }
    }

    unsafe fn upgrade(&self) {
        // SAFETY: as above.
        unsafe { self.0.upgrade(None) };
    }

    unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_upgrade() }
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeFair for RawRwLock {
    unsafe fn unlock_upgradable_fair(&self) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable_fair() }
    }

    unsafe fn bump_upgradable(&self) {
        // SAFETY: as above.
        unsafe { self.0.bump_upgradable() }
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self) {
        // SAFETY: as above.
        unsafe { self.0.downgrade_upgradable() }
    }

    unsafe fn downgrade_to_upgradable(&self) {
        // SAFETY: as above.
        unsafe { self.0.downgrade_to_upgradable() }
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeTimed for RawRwLock {
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        self.0.upgradable_until(after(timeout))
    }

    fn try_lock_upgradable_until(&self, timeout: Instant) -> bool {
        self.0.upgradable_until(Some(timeout))
    }

    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        // SAFETY: as above.
        unsafe { self.0.upgrade(after(timeout)) }
    }

    unsafe fn try_upgrade_until(&self, timeout: Instant) -> bool {
        // SAFETY: as above.
        unsafe { self.0.upgrade(Some(timeout)) }
    }
}
