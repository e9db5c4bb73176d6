//! Every reader-writer lock of the family, for threads of a Linux process.
//!
//! Their states and bounds: [`overlock_core::rw`] and [`overlock_core::sleep`]. They are used by
//! hand, through [`RawRwLock`] and the traits beside it:
//!
//! ```
//! use overlock::rw::{RawDowngradeRwLock, RawRwLock, RwSem};
//!
//! let lock = RwSem::new();
//! let token = lock.write();
//! // SAFETY: the token comes from this lock, on this thread.
//! let token = unsafe { lock.downgrade(token) };
//! assert!(lock.try_write().is_none());
//! // SAFETY: as above.
//! unsafe { lock.unlock_read(token) };
//! ```

pub use overlock_core::Instant;
pub use overlock_core::raw::{
    RawDowngradeRwLock, RawFairRwLock, RawRwLock, RawTimedRwLock, RawUpgradeRwLock,
};

use crate::Linux;

macro_rules! aliases {
    ($($name:ident: $module:ident::$lock:ident;)*) => {$(
        #[doc = concat!("[`", stringify!($lock), "`](overlock_core::", stringify!($module), "::", stringify!($lock), ") for Linux threads: `", stringify!($name), "` in tables.")]
        pub type $lock = overlock_core::$module::$lock<Linux>;
    )*};
}

overlock_core::rw_locks!(aliases);
