//! lock_api's `Raw*` traits for every lock, so that `lock_api::Mutex<sleep::Overlock<P>, T>` and
//! `lock_api::RwLock<rw::OverlockRw<P>, T>` work.
//!
//! A guard's state is the acquisition's token: a queue node where the lock has one. Guards are not
//! `Send`: the token, and the queue node behind it, belong to the thread that locked. Those of a
//! [`Sent`] are.
//!
//! | lock_api's trait | implemented for a lock with |
//! |---|---|
//! | `RawMutex` | [`RawLock`] |
//! | `RawMutexTimed` | [`RawTimedLock`] |
//! | `RawMutexFair` | [`RawFairLock`] |
//! | `RawCondvar`, `RawCondvarTimed` | [`Condvar`](crate::sleep::Condvar), with an `Overlock` |
//! | `RawRwLock` | [`raw::RawRwLock`] |
//! | `RawRwLockTimed` | [`raw::RawTimedRwLock`] |
//! | `RawRwLockDowngrade` | [`raw::RawDowngradeRwLock`] |
//! | `RawRwLockUpgrade`, `RawRwLockUpgradeDowngrade`, `RawRwLockUpgradeTimed` | [`raw::RawUpgradeRwLock`] |
//! | `RawRwLockFair`, `RawRwLockUpgradeFair` | [`raw::RawFairRwLock`] |
//!
//! Crates with locks of their own implement them by the macros here.

mod condvar;
mod rw;

use core::marker::PhantomData;
use core::{mem, ptr};

#[cfg(doc)]
use crate::raw::{self, RawFairLock, RawLock, RawTimedLock, Sent};

/// The state of one acquisition, in lock_api's guard. `Here` says whether it is `Send`.
#[derive(Debug)]
pub struct GuardState<T, Here = *mut ()>(T, PhantomData<Here>);

// SAFETY: a shared reference to the state gives access to nothing.
unsafe impl<T, Here> Sync for GuardState<T, Here> {}

impl<T, Here> GuardState<T, Here> {
    #[doc(hidden)]
    #[inline]
    pub fn new(token: T) -> Self {
        GuardState(token, PhantomData)
    }

    #[doc(hidden)]
    #[inline]
    pub fn into_token(self) -> T {
        self.0
    }

    /// Passes the token to `f`, and keeps the one that it returns. If `f` unwinds, the guard has no
    /// token: this aborts the process.
    #[doc(hidden)]
    #[inline]
    pub fn renew(&mut self, f: impl FnOnce(T) -> T) {
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

/// Implements lock_api's traits for a lock: its path, without the platform. All but `RawMutex` are
/// implemented with a `where` clause, which for many locks never holds.
#[doc(hidden)]
#[macro_export]
macro_rules! lock_api_mutex {
    ($($lock:ident)::+ $(: $bound:path)?) => {
        $crate::lock_api_mutex!(@ *mut (), $($lock)::+ $(: $bound)?);
    };
    (@ $here:ty, $($lock:ident)::+ $(: $bound:path)?) => {
        // SAFETY: `RawLock` promises exclusion with acquire and release ordering; forgetting a
        // token only leaves the lock locked and its node in use.
        unsafe impl<P: $crate::Platform $(+ $bound)?> lock_api::RawMutex for $($lock)::+<P>
        where
            Self: $crate::raw::RawLock + $crate::raw::ConstLock,
        {
            const INIT: Self = <Self as $crate::raw::ConstLock>::INIT;

            type Guard = $crate::lock_api::GuardState<<Self as $crate::raw::RawLock>::Token, $here>;

            #[inline]
            fn lock(&self) -> Self::Guard {
                $crate::lock_api::GuardState::new($crate::raw::RawLock::lock(self))
            }

            #[inline]
            fn try_lock(&self) -> Option<Self::Guard> {
                $crate::raw::RawLock::try_lock(self).map($crate::lock_api::GuardState::new)
            }

            #[inline]
            unsafe fn unlock(&self, guard: Self::Guard) {
                // SAFETY: the caller passes the state of its acquisition of this lock.
                unsafe { $crate::raw::RawLock::unlock(self, guard.into_token()) }
            }

            #[inline]
            fn is_locked(&self) -> bool {
                $crate::raw::RawLock::is_locked(self)
            }
        }

        // SAFETY: as above; `RawTimedLock` promises not to give up early.
        unsafe impl<P: $crate::Platform $(+ $bound)?> lock_api::RawMutexTimed for $($lock)::+<P>
        where
            Self: $crate::raw::RawTimedLock + $crate::raw::ConstLock,
        {
            type Duration = core::time::Duration;
            type Instant = $crate::Instant;

            #[inline]
            fn try_lock_for(&self, timeout: core::time::Duration) -> Option<Self::Guard> {
                self.try_lock_until(P::now().plus(timeout))
            }

            #[inline]
            fn try_lock_until(&self, timeout: $crate::Instant) -> Option<Self::Guard> {
                $crate::raw::RawTimedLock::lock_until(self, timeout).map($crate::lock_api::GuardState::new)
            }
        }

        // SAFETY: as above; `renew` aborts the process if the lock cannot be acquired again.
        unsafe impl<P: $crate::Platform $(+ $bound)?> lock_api::RawMutexFair for $($lock)::+<P>
        where
            Self: $crate::raw::RawFairLock + $crate::raw::ConstLock,
        {
            #[inline]
            unsafe fn unlock_fair(&self, guard: Self::Guard) {
                // SAFETY: the caller passes the state of its acquisition of this lock.
                unsafe { $crate::raw::RawFairLock::unlock_fair(self, guard.into_token()) }
            }

            #[inline]
            unsafe fn bump(&self, guard: &mut Self::Guard) {
                // SAFETY: as above.
                guard.renew(|token| unsafe { $crate::raw::RawFairLock::bump(self, token) });
            }
        }
    };
}

lock_api_mutex!(crate::sleep::Overlock);
lock_api_mutex!(crate::sleep::FairOverlock);

/// [`Sent`] locks by the names of one platform, for the macros.
mod sent {
    use crate::raw::Sent;

    pub(super) type Overlock<P> = Sent<crate::sleep::Overlock<P>>;
    pub(super) type FairOverlock<P> = Sent<crate::sleep::FairOverlock<P>>;
    pub(super) type OverlockRw<P> = Sent<crate::rw::OverlockRw<P>>;
    pub(super) type RecursiveRw<P> = Sent<crate::rw::RecursiveRw<P>>;
}

lock_api_mutex!(@ (), sent::Overlock);
lock_api_mutex!(@ (), sent::FairOverlock);
