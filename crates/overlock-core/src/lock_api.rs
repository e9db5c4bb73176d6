//! lock_api's `Raw*` traits for every lock, so that `lock_api::Mutex<spin::Ticket<P>, T>` works.
//!
//! A guard's state is the acquisition's token: a queue node where the lock has one. No guard is
//! `Send`: the token, and the queue node behind it, belong to the thread that locked.

use core::marker::PhantomData;

use lock_api::RawMutex;

use crate::platform::ConstPlatform;
use crate::raw::RawLock;
use crate::spin;

/// The state of one acquisition, kept in lock_api's guard.
#[derive(Debug)]
pub struct GuardState<T>(T, PhantomData<*mut ()>);

// SAFETY: a shared reference to the state gives access to nothing.
unsafe impl<T> Sync for GuardState<T> {}

macro_rules! raw_mutex {
    ($($name:ident: $lock:ident, $kind:ident;)*) => {
        $(raw_mutex!(@ $lock, $kind);)*
    };
    // Has no `INIT`.
    (@ $lock:ident, fallible) => {};
    (@ $lock:ident, $kind:ident) => {
        // SAFETY: `RawLock` promises exclusion with acquire and release ordering; forgetting a token
        // leaves the lock locked and its node claimed, no more.
        unsafe impl<P: ConstPlatform> RawMutex for spin::$lock<P> {
            #[allow(clippy::declare_interior_mutable_const)] // the trait asks for it
            const INIT: Self = spin::$lock::new();

            type Guard = GuardState<<spin::$lock<P> as RawLock>::Token>;

            #[inline]
            fn lock(&self) -> Self::Guard {
                GuardState(RawLock::lock(self), PhantomData)
            }

            #[inline]
            fn try_lock(&self) -> Option<Self::Guard> {
                RawLock::try_lock(self).map(|token| GuardState(token, PhantomData))
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
    };
}

crate::spin_locks!(raw_mutex);
// What `FastQueue` cannot have itself.
raw_mutex!(@ LazyFastQueue, node);
