//! Every mutual-exclusion lock of the family whose waiters sleep, for threads of a Linux process.
//!
//! Their states and bounds: [`overlock_core::sleep`]. They protect data inside `lock_api::Mutex`
//! (feature `lock_api`, on by default), or are used by hand through [`RawLock`] and the traits
//! beside it:
#![cfg_attr(feature = "lock_api", doc = "```")]
#![cfg_attr(not(feature = "lock_api"), doc = "```ignore")]
//! use overlock::sleep::{KernelMutex, RawFairLock, RawLock};
//!
//! let counter: lock_api::Mutex<KernelMutex, u64> = lock_api::Mutex::new(0);
//! *counter.lock() += 1;
//! assert_eq!(counter.into_inner(), 1);
//!
//! let lock = KernelMutex::new();
//! RawLock::lock(&lock);
//! // SAFETY: this thread has locked it.
//! unsafe { lock.unlock_fair(()) };
//! ```
//!
//! [`Overlock`] is the one inside [`Mutex`](crate::Mutex), and the one to take where nothing speaks
//! for another. A signal handler may try it; none of the others is for handlers.
//!
//! [`KernelMutex`] is [`overlock_core::sleep::Mutex`], after the kernel's `struct mutex`. It has
//! another name here because [`overlock::Mutex`](crate::Mutex) is not made of it.

pub use overlock_core::Instant;
pub use overlock_core::raw::{CreateError, RawCancelLock, RawFairLock, RawLock, RawTimedLock};

use crate::Linux;

macro_rules! aliases {
    ($($name:ident: $lock:ident, $kind:ident;)*) => {$(
        alias! { $name: $lock }
    )*};
}

macro_rules! alias {
    ($name:ident: Mutex) => { alias! { $name: Mutex as KernelMutex } };
    ($name:ident: $lock:ident) => { alias! { $name: $lock as $lock } };
    ($name:ident: $lock:ident as $alias:ident) => {
        #[doc = concat!("[`", stringify!($lock), "`](overlock_core::sleep::", stringify!($lock), ") for Linux threads: `", stringify!($name), "` in tables.")]
        pub type $alias = overlock_core::sleep::$lock<Linux>;
    };
}

overlock_core::sleep_locks!(aliases);
