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
    ConstLock, RawDowngradeRwLock, RawFairRwLock, RawRwLock, RawTimedRwLock, RawUpgradeRwLock,
};

use crate::Linux;

/// [`OverlockRw`](overlock_core::rw::OverlockRw) for Linux threads: `overlock_rw` in tables.
pub type OverlockRw = overlock_core::rw::OverlockRw<Linux>;

/// [`PerCpuRwSem`](overlock_core::rw::PerCpuRwSem) for Linux threads: `percpu_rwsem` in tables.
pub type PerCpuRwSem = overlock_core::rw::PerCpuRwSem<Linux>;

/// [`Qrwlock`](overlock_family::rw::Qrwlock) for Linux threads: `qrwlock` in tables.
#[cfg(feature = "family")]
pub type Qrwlock = overlock_family::rw::Qrwlock<Linux>;

/// [`RwSem`](overlock_family::sleep::RwSem) for Linux threads: `rwsem` in tables.
#[cfg(feature = "family")]
pub type RwSem = overlock_family::sleep::RwSem<Linux>;

/// [`RwSemNone`](overlock_family::sleep::RwSemNone) for Linux threads: `rwsem_none` in tables.
#[cfg(feature = "family")]
pub type RwSemNone = overlock_family::sleep::RwSemNone<Linux>;

/// [`RwSemCounted`](overlock_family::sleep::RwSemCounted) for Linux threads: `rwsem_count` in
/// tables.
#[cfg(feature = "family")]
pub type RwSemCounted = overlock_family::sleep::RwSemCounted<Linux>;
