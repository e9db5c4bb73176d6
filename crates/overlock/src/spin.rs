//! Every spinlock of the family, for threads.
//!
//! Their states and bounds: [`overlock_family::spin`]. They protect data inside `lock_api::Mutex`
//! (feature `lock_api`), or are used by hand through [`RawLock`]:
#![cfg_attr(feature = "lock_api", doc = "```")]
#![cfg_attr(not(feature = "lock_api"), doc = "```ignore")]
//! use overlock::spin::{Hybrid, RawLock};
//!
//! let counter: lock_api::Mutex<Hybrid, u64> = lock_api::Mutex::new(0);
//! *counter.lock() += 1;
//! assert_eq!(counter.into_inner(), 1);
//!
//! let lock = Hybrid::new();
//! let token = RawLock::lock(&lock);
//! // SAFETY: the token comes from this lock, on this thread.
//! unsafe { RawLock::unlock(&lock, token) };
//! ```
//!
//! The raw lock of [`SpinLock`](crate::SpinLock) is not here, since its waiters sleep in the end:
//! [`sleep::Overlock`](crate::sleep::Overlock). The strictly fair locks (`Ticket`, `Mcs`,
//! `FastQueue`, `Queued`) collapse when threads outnumber CPUs.

pub use overlock_core::Instant;
pub use overlock_core::raw::{ConstLock, Create, CreateError, RawLock, RawTimedLock};

use crate::System;

macro_rules! aliases {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$(
        #[doc = concat!("[`", stringify!($lock), "`](overlock_family::spin::", stringify!($lock), ") for threads: `", stringify!($name), "` in tables.")]
        pub type $lock = overlock_family::spin::$lock<System>;
    )*};
}

overlock_family::spin_locks!(aliases);

/// [`FastQueue`] that takes its ticket when it is first locked, so that it can be a constant and go
/// into lock_api.
pub type LazyFastQueue = overlock_family::spin::LazyFastQueue<System>;
