//! lock_api 0.4's traits, for crates that have not moved to 0.5. Its guards have no state. So these
//! traits are not implemented for locks with a token: a queue node, or the entry of a visible
//! reader. The other locks have the same traits as in [`lock_api`](crate::lock_api), without
//! upgradable readers. (The reader-writer locks that can be released fairly all have tokens.)

use core::time::Duration;

use lock_api_04::{
    GuardNoSend, RawMutex, RawMutexFair, RawMutexTimed, RawRwLock, RawRwLockDowngrade,
    RawRwLockTimed,
};

use crate::platform::{ConstPlatform, Instant};
use crate::raw::{
    self, ConstLock, RawDowngradeRwLock, RawFairLock, RawLock, RawTimedLock, RawTimedRwLock,
};

macro_rules! raw_mutex {
    ($module:ident, $lock:ident, node) => {};
    ($module:ident, $lock:ident, fallible) => {};
    ($module:ident, $lock:ident, plain) => {
        // SAFETY: `RawLock` promises exclusion with acquire and release ordering.
        unsafe impl<P: ConstPlatform> RawMutex for crate::$module::$lock<P> {
            #[allow(clippy::declare_interior_mutable_const)] // the trait asks for it
            const INIT: Self = <Self as ConstLock>::INIT;

            type GuardMarker = GuardNoSend;

            #[inline]
            fn lock(&self) {
                RawLock::lock(self);
            }

            #[inline]
            fn try_lock(&self) -> bool {
                RawLock::try_lock(self).is_some()
            }

            #[inline]
            unsafe fn unlock(&self) {
                // SAFETY: the caller holds the lock; the token of a plain lock is `()`. So below.
                unsafe { RawLock::unlock(self, ()) }
            }

            #[inline]
            fn is_locked(&self) -> bool {
                RawLock::is_locked(self)
            }
        }

        // SAFETY: as above; `RawTimedLock` promises not to give up early.
        unsafe impl<P: ConstPlatform> RawMutexTimed for crate::$module::$lock<P>
        where
            Self: RawTimedLock,
        {
            type Duration = Duration;
            type Instant = Instant;

            #[inline]
            fn try_lock_for(&self, timeout: Duration) -> bool {
                self.try_lock_until(P::now().plus(timeout))
            }

            #[inline]
            fn try_lock_until(&self, timeout: Instant) -> bool {
                RawTimedLock::lock_until(self, timeout).is_some()
            }
        }

        // SAFETY: as above.
        unsafe impl<P: ConstPlatform> RawMutexFair for crate::$module::$lock<P>
        where
            Self: RawFairLock<Token = ()>,
        {
            #[inline]
            unsafe fn unlock_fair(&self) {
                // SAFETY: as above.
                unsafe { RawFairLock::unlock_fair(self, ()) }
            }

            #[inline]
            unsafe fn bump(&self) {
                // SAFETY: as above.
                unsafe { RawFairLock::bump(self, ()) }
            }
        }
    };
}

macro_rules! spin_mutexes {
    ($($name:ident: $lock:ident, $kind:ident;)*) => {
        $(raw_mutex!(spin, $lock, $kind);)*
    };
}

macro_rules! sleep_mutexes {
    ($($name:ident: $lock:ident, $kind:ident;)*) => {
        $(raw_mutex!(sleep, $lock, $kind);)*
    };
}

crate::spin_locks!(spin_mutexes);
crate::sleep_locks!(sleep_mutexes);

macro_rules! raw_rwlocks {
    ($($name:ident: $module:ident::$lock:ident;)*) => {$(
        // SAFETY: `raw::RawRwLock` promises that a writer is alone, with acquire and release
        // ordering.
        unsafe impl<P: ConstPlatform> RawRwLock for crate::$module::$lock<P>
        where
            Self: raw::RawRwLock<Read = (), Write = ()>,
        {
            #[allow(clippy::declare_interior_mutable_const)] // the trait asks for it
            const INIT: Self = <Self as ConstLock>::INIT;

            type GuardMarker = GuardNoSend;

            #[inline]
            fn lock_shared(&self) {
                raw::RawRwLock::read(self);
            }

            #[inline]
            fn try_lock_shared(&self) -> bool {
                raw::RawRwLock::try_read(self).is_some()
            }

            #[inline]
            unsafe fn unlock_shared(&self) {
                // SAFETY: the caller reads, with the token `()`.
                unsafe { raw::RawRwLock::unlock_read(self, ()) }
            }

            #[inline]
            fn lock_exclusive(&self) {
                raw::RawRwLock::write(self);
            }

            #[inline]
            fn try_lock_exclusive(&self) -> bool {
                raw::RawRwLock::try_write(self).is_some()
            }

            #[inline]
            unsafe fn unlock_exclusive(&self) {
                // SAFETY: the caller is the writer, with the token `()`. So below.
                unsafe { raw::RawRwLock::unlock_write(self, ()) }
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
            Self: RawTimedRwLock<Read = (), Write = ()>,
        {
            type Duration = Duration;
            type Instant = Instant;

            #[inline]
            fn try_lock_shared_for(&self, timeout: Duration) -> bool {
                self.try_lock_shared_until(P::now().plus(timeout))
            }

            #[inline]
            fn try_lock_shared_until(&self, timeout: Instant) -> bool {
                RawTimedRwLock::read_until(self, timeout).is_some()
            }

            #[inline]
            fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
                self.try_lock_exclusive_until(P::now().plus(timeout))
            }

            #[inline]
            fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
                RawTimedRwLock::write_until(self, timeout).is_some()
            }
        }

        // SAFETY: as above; `RawDowngradeRwLock` lets no writer in between.
        unsafe impl<P: ConstPlatform> RawRwLockDowngrade for crate::$module::$lock<P>
        where
            Self: RawDowngradeRwLock<Read = (), Write = ()>,
        {
            #[inline]
            unsafe fn downgrade(&self) {
                // SAFETY: as above.
                unsafe { RawDowngradeRwLock::downgrade(self, ()) }
            }
        }
    )*};
}

crate::rw_locks!(raw_rwlocks);
