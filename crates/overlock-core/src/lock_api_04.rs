//! lock_api 0.4's `RawMutex`, for crates that have not moved to 0.5. It has no state of its own in its guards,
//! so the locks whose token is a queue node cannot have it.

use lock_api_04::{GuardNoSend, RawMutex};

use crate::platform::ConstPlatform;
use crate::raw::RawLock;
use crate::spin;

macro_rules! raw_mutex {
    ($($name:ident: $lock:ident, $kind:ident;)*) => {
        $(raw_mutex!(@ $lock, $kind);)*
    };
    (@ $lock:ident, node) => {};
    (@ $lock:ident, fallible) => {};
    (@ $lock:ident, plain) => {
        // SAFETY: `RawLock` promises exclusion with acquire and release ordering.
        unsafe impl<P: ConstPlatform> RawMutex for spin::$lock<P> {
            #[allow(clippy::declare_interior_mutable_const)] // the trait asks for it
            const INIT: Self = spin::$lock::new();

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
                // SAFETY: the caller holds the lock; the token of a plain lock is `()`.
                unsafe { RawLock::unlock(self, ()) }
            }

            #[inline]
            fn is_locked(&self) -> bool {
                RawLock::is_locked(self)
            }
        }
    };
}

crate::spin_locks!(raw_mutex);
