//! lock_api's `Raw*` traits for every lock, so that `lock_api::Mutex<spin::Ticket<P>, T>` and
//! `lock_api::RwLock<rw::OverlockRw<P>, T>` work.
//!
//! A guard's state is the acquisition's token: a queue node where the lock has one. No guard is
//! `Send`: the token, and the queue node behind it, belong to the thread that locked.
//!
//! | lock_api's trait | implemented for a lock with |
//! |---|---|
//! | `RawMutex` | [`RawLock`] |
//! | `RawMutexTimed` | [`RawTimedLock`] |
//! | `RawMutexFair` | [`RawFairLock`] |
//! | `RawRwLock` | [`raw::RawRwLock`] |
//! | `RawRwLockTimed` | [`raw::RawTimedRwLock`] |
//! | `RawRwLockDowngrade` | [`raw::RawDowngradeRwLock`] |
//! | `RawRwLockUpgrade`, `RawRwLockUpgradeDowngrade`, `RawRwLockUpgradeTimed` | [`raw::RawUpgradeRwLock`] |
//! | `RawRwLockFair`, `RawRwLockUpgradeFair` | [`raw::RawFairRwLock`] |
//!
//! The lists of locks do not say which lock implements which of the `Raw*` traits. So all but
//! `RawMutex` and `RawRwLock` are implemented for every lock with a `where` clause, which for many
//! locks never holds.

mod rw;

use core::marker::PhantomData;
use core::time::Duration;
use core::{mem, ptr};

use lock_api::{RawMutex, RawMutexFair, RawMutexTimed};

use crate::platform::{ConstPlatform, Instant};
#[cfg(doc)]
use crate::raw;
use crate::raw::{ConstLock, RawFairLock, RawLock, RawTimedLock};

/// The state of one acquisition, in lock_api's guard.
#[derive(Debug)]
pub struct GuardState<T>(T, PhantomData<*mut ()>);

// SAFETY: a shared reference to the state gives access to nothing.
unsafe impl<T> Sync for GuardState<T> {}

impl<T> GuardState<T> {
    #[inline]
    fn new(token: T) -> Self {
        GuardState(token, PhantomData)
    }

    /// Passes the token to `f`, and keeps the one that it returns. If `f` unwinds, the guard has no
    /// token: this aborts the process.
    #[inline]
    fn renew(&mut self, f: impl FnOnce(T) -> T) {
        struct Abort;

        impl Drop for Abort {
            #[cold]
            fn drop(&mut self) {
                panic!("acquiring a lock again for its guard has panicked");
            }
        }

        let abort = Abort;
        // SAFETY: the token is used by `f` only, and replaced before the state is used again: a
        // panic during unwinding does not return.
        let token = f(unsafe { ptr::read(&self.0) });
        // SAFETY: a reference is valid for writing; the old token was moved out above.
        unsafe { ptr::write(&mut self.0, token) };
        mem::forget(abort);
    }
}

macro_rules! raw_mutex {
    // A fallible lock has no `INIT`.
    ($module:ident, $lock:ident, fallible) => {};
    ($module:ident, $lock:ident, $kind:ident) => {
        // SAFETY: `RawLock` promises exclusion with acquire and release ordering; forgetting a
        // token only leaves the lock locked and its node in use.
        unsafe impl<P: ConstPlatform> RawMutex for crate::$module::$lock<P> {
            #[allow(clippy::declare_interior_mutable_const)] // the trait asks for it
            const INIT: Self = <Self as ConstLock>::INIT;

            type Guard = GuardState<<Self as RawLock>::Token>;

            #[inline]
            fn lock(&self) -> Self::Guard {
                GuardState::new(RawLock::lock(self))
            }

            #[inline]
            fn try_lock(&self) -> Option<Self::Guard> {
                RawLock::try_lock(self).map(GuardState::new)
            }

            #[inline]
            unsafe fn unlock(&self, guard: Self::Guard) {
                // SAFETY: the caller passes the state of its acquisition of this lock.
                unsafe { RawLock::unlock(self, guard.0) }
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
            fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard> {
                self.try_lock_until(P::now().plus(timeout))
            }

            #[inline]
            fn try_lock_until(&self, timeout: Instant) -> Option<Self::Guard> {
                RawTimedLock::lock_until(self, timeout).map(GuardState::new)
            }
        }

        // SAFETY: as above; `renew` aborts the process if the lock cannot be acquired again.
        unsafe impl<P: ConstPlatform> RawMutexFair for crate::$module::$lock<P>
        where
            Self: RawFairLock,
        {
            #[inline]
            unsafe fn unlock_fair(&self, guard: Self::Guard) {
                // SAFETY: the caller passes the state of its acquisition of this lock.
                unsafe { RawFairLock::unlock_fair(self, guard.0) }
            }

            #[inline]
            unsafe fn bump(&self, guard: &mut Self::Guard) {
                // SAFETY: as above.
                guard.renew(|token| unsafe { RawFairLock::bump(self, token) });
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
// In place of `FastQueue`, which is fallible.
#[cfg(target_has_atomic = "64")]
raw_mutex!(spin, LazyFastQueue, node);
