//! The traits of reader-writer locks.

/// As [`lock_api_mutex`](crate::lock_api_mutex), for a reader-writer lock.
#[doc(hidden)]
#[macro_export]
macro_rules! lock_api_rwlock {
    ($($lock:ident)::+) => {
        $crate::lock_api_rwlock!(@ *mut (), $($lock)::+);
    };
    (@ $here:ty, $($lock:ident)::+) => {
        // SAFETY: `raw::RawRwLock` promises that a writer is alone, with acquire and release
        // ordering; forgetting a token only leaves the lock locked.
        unsafe impl<P: $crate::Platform> lock_api::RawRwLock for $($lock)::+<P>
        where
            Self: $crate::raw::RawRwLock,
        {
            const INIT: Self = <Self as $crate::raw::ConstLock>::INIT;

            type SharedGuard = $crate::lock_api::GuardState<<Self as $crate::raw::RawRwLock>::Read, $here>;
            type ExclusiveGuard = $crate::lock_api::GuardState<<Self as $crate::raw::RawRwLock>::Write, $here>;

            #[inline]
            fn lock_shared(&self) -> Self::SharedGuard {
                $crate::lock_api::GuardState::new($crate::raw::RawRwLock::read(self))
            }

            #[inline]
            fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
                $crate::raw::RawRwLock::try_read(self).map($crate::lock_api::GuardState::new)
            }

            #[inline]
            unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
                // SAFETY: the caller passes the state of its acquisition of this lock; so below.
                unsafe { $crate::raw::RawRwLock::unlock_read(self, guard.into_token()) }
            }

            #[inline]
            fn lock_exclusive(&self) -> Self::ExclusiveGuard {
                $crate::lock_api::GuardState::new($crate::raw::RawRwLock::write(self))
            }

            #[inline]
            fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
                $crate::raw::RawRwLock::try_write(self).map($crate::lock_api::GuardState::new)
            }

            #[inline]
            unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
                // SAFETY: as above.
                unsafe { $crate::raw::RawRwLock::unlock_write(self, guard.into_token()) }
            }

            #[inline]
            fn is_locked(&self) -> bool {
                $crate::raw::RawRwLock::is_locked(self)
            }

            #[inline]
            fn is_locked_exclusive(&self) -> bool {
                $crate::raw::RawRwLock::is_write_locked(self)
            }
        }

        // SAFETY: as above; `RawTimedRwLock` promises not to give up early.
        unsafe impl<P: $crate::Platform> lock_api::RawRwLockTimed for $($lock)::+<P>
        where
            Self: $crate::raw::RawTimedRwLock,
        {
            type Duration = core::time::Duration;
            type Instant = $crate::Instant;

            #[inline]
            fn try_lock_shared_for(&self, timeout: core::time::Duration) -> Option<Self::SharedGuard> {
                self.try_lock_shared_until(P::now().plus(timeout))
            }

            #[inline]
            fn try_lock_shared_until(&self, timeout: $crate::Instant) -> Option<Self::SharedGuard> {
                $crate::raw::RawTimedRwLock::read_until(self, timeout).map($crate::lock_api::GuardState::new)
            }

            #[inline]
            fn try_lock_exclusive_for(&self, timeout: core::time::Duration) -> Option<Self::ExclusiveGuard> {
                self.try_lock_exclusive_until(P::now().plus(timeout))
            }

            #[inline]
            fn try_lock_exclusive_until(&self, timeout: $crate::Instant) -> Option<Self::ExclusiveGuard> {
                $crate::raw::RawTimedRwLock::write_until(self, timeout).map($crate::lock_api::GuardState::new)
            }
        }

        // SAFETY: as above; `RawDowngradeRwLock` lets no writer in between.
        unsafe impl<P: $crate::Platform> lock_api::RawRwLockDowngrade for $($lock)::+<P>
        where
            Self: $crate::raw::RawDowngradeRwLock,
        {
            #[inline]
            unsafe fn downgrade(&self, guard: Self::ExclusiveGuard) -> Self::SharedGuard {
                // SAFETY: as above.
                $crate::lock_api::GuardState::new(unsafe { $crate::raw::RawDowngradeRwLock::downgrade(self, guard.into_token()) })
            }
        }

        // SAFETY: as above; `RawUpgradeRwLock` promises one upgradable reader at a time.
        unsafe impl<P: $crate::Platform> lock_api::RawRwLockUpgrade for $($lock)::+<P>
        where
            Self: $crate::raw::RawUpgradeRwLock,
        {
            type UpgradableGuard = $crate::lock_api::GuardState<<Self as $crate::raw::RawUpgradeRwLock>::Upgradable, $here>;

            #[inline]
            fn lock_upgradable(&self) -> Self::UpgradableGuard {
                $crate::lock_api::GuardState::new($crate::raw::RawUpgradeRwLock::upgradable(self))
            }

            #[inline]
            fn try_lock_upgradable(&self) -> Option<Self::UpgradableGuard> {
                $crate::raw::RawUpgradeRwLock::try_upgradable(self).map($crate::lock_api::GuardState::new)
            }

            #[inline]
            unsafe fn unlock_upgradable(&self, guard: Self::UpgradableGuard) {
                // SAFETY: as above.
                unsafe { $crate::raw::RawUpgradeRwLock::unlock_upgradable(self, guard.into_token()) }
            }

            #[inline]
            unsafe fn upgrade(&self, guard: Self::UpgradableGuard) -> Self::ExclusiveGuard {
                // SAFETY: as above.
                $crate::lock_api::GuardState::new(unsafe { $crate::raw::RawUpgradeRwLock::upgrade(self, guard.into_token()) })
            }

            #[inline]
            unsafe fn try_upgrade(
                &self,
                guard: Self::UpgradableGuard,
            ) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard> {
                // SAFETY: as above.
                unsafe { $crate::raw::RawUpgradeRwLock::try_upgrade(self, guard.into_token()) }
                    .map($crate::lock_api::GuardState::new)
                    .map_err($crate::lock_api::GuardState::new)
            }
        }

        // SAFETY: as above.
        unsafe impl<P: $crate::Platform> lock_api::RawRwLockUpgradeDowngrade for $($lock)::+<P>
        where
            Self: $crate::raw::RawUpgradeRwLock,
        {
            #[inline]
            unsafe fn downgrade_upgradable(
                &self,
                guard: Self::UpgradableGuard,
            ) -> Self::SharedGuard {
                // SAFETY: as above.
                $crate::lock_api::GuardState::new(unsafe { $crate::raw::RawUpgradeRwLock::downgrade_upgradable(self, guard.into_token()) })
            }

            #[inline]
            unsafe fn downgrade_to_upgradable(
                &self,
                guard: Self::ExclusiveGuard,
            ) -> Self::UpgradableGuard {
                // SAFETY: as above.
                $crate::lock_api::GuardState::new(unsafe { $crate::raw::RawUpgradeRwLock::downgrade_to_upgradable(self, guard.into_token()) })
            }
        }

        // SAFETY: as above; `RawUpgradeRwLock` promises not to give up early.
        unsafe impl<P: $crate::Platform> lock_api::RawRwLockUpgradeTimed for $($lock)::+<P>
        where
            Self: $crate::raw::RawUpgradeRwLock,
        {
            #[inline]
            fn try_lock_upgradable_for(&self, timeout: core::time::Duration) -> Option<Self::UpgradableGuard> {
                self.try_lock_upgradable_until(P::now().plus(timeout))
            }

            #[inline]
            fn try_lock_upgradable_until(&self, timeout: $crate::Instant) -> Option<Self::UpgradableGuard> {
                $crate::raw::RawUpgradeRwLock::upgradable_until(self, timeout).map($crate::lock_api::GuardState::new)
            }

            #[inline]
            unsafe fn try_upgrade_for(
                &self,
                guard: Self::UpgradableGuard,
                timeout: core::time::Duration,
            ) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard> {
                // SAFETY: as above.
                unsafe { self.try_upgrade_until(guard, P::now().plus(timeout)) }
            }

            #[inline]
            unsafe fn try_upgrade_until(
                &self,
                guard: Self::UpgradableGuard,
                timeout: $crate::Instant,
            ) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard> {
                // SAFETY: as above.
                unsafe { $crate::raw::RawUpgradeRwLock::upgrade_until(self, guard.into_token(), timeout) }
                    .map($crate::lock_api::GuardState::new)
                    .map_err($crate::lock_api::GuardState::new)
            }
        }

        // SAFETY: as above; `renew` aborts the process if the lock cannot be acquired again. So
        // below.
        unsafe impl<P: $crate::Platform> lock_api::RawRwLockFair for $($lock)::+<P>
        where
            Self: $crate::raw::RawFairRwLock,
        {
            #[inline]
            unsafe fn unlock_shared_fair(&self, guard: Self::SharedGuard) {
                // SAFETY: as above.
                unsafe { $crate::raw::RawFairRwLock::unlock_read_fair(self, guard.into_token()) }
            }

            #[inline]
            unsafe fn unlock_exclusive_fair(&self, guard: Self::ExclusiveGuard) {
                // SAFETY: as above.
                unsafe { $crate::raw::RawFairRwLock::unlock_write_fair(self, guard.into_token()) }
            }

            #[inline]
            unsafe fn bump_shared(&self, guard: &mut Self::SharedGuard) {
                // SAFETY: as above.
                guard.renew(|token| unsafe { $crate::raw::RawFairRwLock::bump_read(self, token) });
            }

            #[inline]
            unsafe fn bump_exclusive(&self, guard: &mut Self::ExclusiveGuard) {
                // SAFETY: as above.
                guard.renew(|token| unsafe { $crate::raw::RawFairRwLock::bump_write(self, token) });
            }
        }

        // SAFETY: as above.
        unsafe impl<P: $crate::Platform> lock_api::RawRwLockUpgradeFair for $($lock)::+<P>
        where
            Self: $crate::raw::RawFairRwLock,
        {
            #[inline]
            unsafe fn unlock_upgradable_fair(&self, guard: Self::UpgradableGuard) {
                // SAFETY: as above.
                unsafe { $crate::raw::RawFairRwLock::unlock_upgradable_fair(self, guard.into_token()) }
            }

            #[inline]
            unsafe fn bump_upgradable(&self, guard: &mut Self::UpgradableGuard) {
                // SAFETY: as above.
                guard.renew(|token| unsafe { $crate::raw::RawFairRwLock::bump_upgradable(self, token) });
            }
        }
    };
}

lock_api_rwlock!(crate::rw::OverlockRw);
lock_api_rwlock!(crate::rw::RecursiveRw);
lock_api_rwlock!(crate::rw::PerCpuRwSem);
lock_api_rwlock!(@ (), super::sent::OverlockRw);
lock_api_rwlock!(@ (), super::sent::RecursiveRw);
