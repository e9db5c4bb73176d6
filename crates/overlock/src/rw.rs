//! Every reader-writer lock of the family, for threads.
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
    ConstLock, RawDowngradeRwLock, RawFairRwLock, RawForkRwLock, RawRecursiveRwLock, RawRwLock,
    RawTimedRwLock, RawUpgradeRwLock,
};

use crate::System;

/// [`OverlockRw`](overlock_core::rw::OverlockRw) for threads: `overlock_rw` in tables.
pub type OverlockRw = overlock_core::rw::OverlockRw<System>;

/// [`PerCpuRwSem`](overlock_core::rw::PerCpuRwSem) for threads: `percpu_rwsem` in tables.
pub type PerCpuRwSem = overlock_core::rw::PerCpuRwSem<System>;

/// [`Qrwlock`](overlock_family::rw::Qrwlock) for threads: `qrwlock` in tables.
#[cfg(feature = "family")]
pub type Qrwlock = overlock_family::rw::Qrwlock<System>;

/// [`RwSem`](overlock_family::sleep::RwSem) for threads: `rwsem` in tables.
#[cfg(feature = "family")]
pub type RwSem = overlock_family::sleep::RwSem<System>;

/// [`RwSemNone`](overlock_family::sleep::RwSemNone) for threads: `rwsem_none` in tables.
#[cfg(feature = "family")]
pub type RwSemNone = overlock_family::sleep::RwSemNone<System>;

/// [`RwSemCounted`](overlock_family::sleep::RwSemCounted) for threads: `rwsem_count` in
/// tables.
#[cfg(feature = "family")]
pub type RwSemCounted = overlock_family::sleep::RwSemCounted<System>;
