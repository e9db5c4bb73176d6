//! The traits of reader-writer locks.

use core::time::Duration;

use lock_api::{
    RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockTimed, RawRwLockUpgrade,
    RawRwLockUpgradeDowngrade, RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};

use super::GuardState;
use crate::platform::{ConstPlatform, Instant};
use crate::raw::{
    self, ConstLock, RawDowngradeRwLock, RawFairRwLock, RawTimedRwLock, RawUpgradeRwLock,
};

macro_rules! raw_rwlocks {
    ($($name:ident: $module:ident::$lock:ident;)*) => {$(
        // SAFETY: `raw::RawRwLock` promises that a writer is alone, with acquire and release
        // ordering; forgetting a token only leaves the lock locked.
        unsafe impl<P: ConstPlatform> RawRwLock for crate::$module::$lock<P> {
            #[allow(clippy::declare_interior_mutable_const)] // the trait asks for it
            const INIT: Self = <Self as ConstLock>::INIT;

            type SharedGuard = GuardState<<Self as raw::RawRwLock>::Read>;
            type ExclusiveGuard = GuardState<<Self as raw::RawRwLock>::Write>;

            #[inline]
            fn lock_shared(&self) -> Self::SharedGuard {
                GuardState::new(raw::RawRwLock::read(self))
            }

            #[inline]
            fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
                raw::RawRwLock::try_read(self).map(GuardState::new)
            }

            #[inline]
            unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
                // SAFETY: the caller passes the state of its acquisition of this lock; so below.
                unsafe { raw::RawRwLock::unlock_read(self, guard.0) }
            }

            #[inline]
            fn lock_exclusive(&self) -> Self::ExclusiveGuard {
                GuardState::new(raw::RawRwLock::write(self))
            }

            #[inline]
            fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
                raw::RawRwLock::try_write(self).map(GuardState::new)
            }

            #[inline]
            unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
                // SAFETY: as above.
                unsafe { raw::RawRwLock::unlock_write(self, guard.0) }
            }

            #[inline]
            fn is_locked(&self) -> bool {
                raw::RawRwLock::is_locked(self)
            }

            #[inline]
            fn is_locked_exclusive(&self) -> bool {
                raw::RawRwLock::is_write_locked(self)
            }
        }

        // SAFETY: as above; `RawTimedRwLock` promises not to give up early.
        unsafe impl<P: ConstPlatform> RawRwLockTimed for crate::$module::$lock<P>
        where
            Self: RawTimedRwLock,
        {
            type Duration = Duration;
            type Instant = Instant;

            #[inline]
            fn try_lock_shared_for(&self, timeout: Duration) -> Option<Self::SharedGuard> {
                self.try_lock_shared_until(P::now().plus(timeout))
            }

            #[inline]
            fn try_lock_shared_until(&self, timeout: Instant) -> Option<Self::SharedGuard> {
                RawTimedRwLock::read_until(self, timeout).map(GuardState::new)
            }

            #[inline]
            fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<Self::ExclusiveGuard> {
                self.try_lock_exclusive_until(P::now().plus(timeout))
            }

            #[inline]
            fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<Self::ExclusiveGuard> {
                RawTimedRwLock::write_until(self, timeout).map(GuardState::new)
            }
        }

        // SAFETY: as above; `RawDowngradeRwLock` lets no writer in between.
        unsafe impl<P: ConstPlatform> RawRwLockDowngrade for crate::$module::$lock<P>
        where
            Self: RawDowngradeRwLock,
        {
            #[inline]
            unsafe fn downgrade(&self, guard: Self::ExclusiveGuard) -> Self::SharedGuard {
                // SAFETY: as above.
                GuardState::new(unsafe { RawDowngradeRwLock::downgrade(self, guard.0) })
            }
        }

        // SAFETY: as above; `RawUpgradeRwLock` promises one upgradable reader at a time.
        unsafe impl<P: ConstPlatform> RawRwLockUpgrade for crate::$module::$lock<P>
        where
            Self: RawUpgradeRwLock,
        {
            type UpgradableGuard = GuardState<<Self as RawUpgradeRwLock>::Upgradable>;

            #[inline]
            fn lock_upgradable(&self) -> Self::UpgradableGuard {
                GuardState::new(RawUpgradeRwLock::upgradable(self))
            }

            #[inline]
            fn try_lock_upgradable(&self) -> Option<Self::UpgradableGuard> {
                RawUpgradeRwLock::try_upgradable(self).map(GuardState::new)
            }

            #[inline]
            unsafe fn unlock_upgradable(&self, guard: Self::UpgradableGuard) {
                // SAFETY: as above.
                unsafe { RawUpgradeRwLock::unlock_upgradable(self, guard.0) }
            }

            #[inline]
            unsafe fn upgrade(&self, guard: Self::UpgradableGuard) -> Self::ExclusiveGuard {
                // SAFETY: as above.
                GuardState::new(unsafe { RawUpgradeRwLock::upgrade(self, guard.0) })
            }

            #[inline]
            unsafe fn try_upgrade(
                &self,
                guard: Self::UpgradableGuard,
            ) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard> {
                // SAFETY: as above.
                unsafe { RawUpgradeRwLock::try_upgrade(self, guard.0) }
                    .map(GuardState::new)
                    .map_err(GuardState::new)
            }
        }

        // SAFETY: as above.
        unsafe impl<P: ConstPlatform> RawRwLockUpgradeDowngrade for crate::$module::$lock<P>
        where
            Self: RawUpgradeRwLock,
        {
            #[inline]
            unsafe fn downgrade_upgradable(
                &self,
                guard: Self::UpgradableGuard,
            ) -> Self::SharedGuard {
                // SAFETY: as above.
                GuardState::new(unsafe { RawUpgradeRwLock::downgrade_upgradable(self, guard.0) })
            }

            #[inline]
            unsafe fn downgrade_to_upgradable(
                &self,
                guard: Self::ExclusiveGuard,
            ) -> Self::UpgradableGuard {
                // SAFETY: as above.
                GuardState::new(unsafe { RawUpgradeRwLock::downgrade_to_upgradable(self, guard.0) })
            }
        }

        // SAFETY: as above; `RawUpgradeRwLock` promises not to give up early.
        unsafe impl<P: ConstPlatform> RawRwLockUpgradeTimed for crate::$module::$lock<P>
        where
            Self: RawUpgradeRwLock,
        {
            #[inline]
            fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<Self::UpgradableGuard> {
                self.try_lock_upgradable_until(P::now().plus(timeout))
            }

            #[inline]
            fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<Self::UpgradableGuard> {
                RawUpgradeRwLock::upgradable_until(self, timeout).map(GuardState::new)
            }

            #[inline]
            unsafe fn try_upgrade_for(
                &self,
                guard: Self::UpgradableGuard,
                timeout: Duration,
            ) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard> {
                // SAFETY: as above.
                unsafe { self.try_upgrade_until(guard, P::now().plus(timeout)) }
            }

            #[inline]
            unsafe fn try_upgrade_until(
                &self,
                guard: Self::UpgradableGuard,
                timeout: Instant,
            ) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard> {
                // SAFETY: as above.
                unsafe { RawUpgradeRwLock::upgrade_until(self, guard.0, timeout) }
                    .map(GuardState::new)
                    .map_err(GuardState::new)
            }
        }

        // SAFETY: as above; `renew` aborts the process if the lock cannot be acquired again. So
        // below.
        unsafe impl<P: ConstPlatform> RawRwLockFair for crate::$module::$lock<P>
        where
            Self: RawFairRwLock,
        {
            #[inline]
            unsafe fn unlock_shared_fair(&self, guard: Self::SharedGuard) {
                // SAFETY: as above.
                unsafe { RawFairRwLock::unlock_read_fair(self, guard.0) }
            }

            #[inline]
            unsafe fn unlock_exclusive_fair(&self, guard: Self::ExclusiveGuard) {
                // SAFETY: as above.
                unsafe { RawFairRwLock::unlock_write_fair(self, guard.0) }
            }

            #[inline]
            unsafe fn bump_shared(&self, guard: &mut Self::SharedGuard) {
                // SAFETY: as above.
                guard.renew(|token| unsafe { RawFairRwLock::bump_read(self, token) });
            }

            #[inline]
            unsafe fn bump_exclusive(&self, guard: &mut Self::ExclusiveGuard) {
                // SAFETY: as above.
                guard.renew(|token| unsafe { RawFairRwLock::bump_write(self, token) });
            }
        }

        // SAFETY: as above.
        unsafe impl<P: ConstPlatform> RawRwLockUpgradeFair for crate::$module::$lock<P>
        where
            Self: RawFairRwLock,
        {
            #[inline]
            unsafe fn unlock_upgradable_fair(&self, guard: Self::UpgradableGuard) {
                // SAFETY: as above.
                unsafe { RawFairRwLock::unlock_upgradable_fair(self, guard.0) }
            }

            #[inline]
            unsafe fn bump_upgradable(&self, guard: &mut Self::UpgradableGuard) {
                // SAFETY: as above.
                guard.renew(|token| unsafe { RawFairRwLock::bump_upgradable(self, token) });
            }
        }
    )*};
}

crate::rw_locks!(raw_rwlocks);
