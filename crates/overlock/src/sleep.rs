//! Every mutual-exclusion lock of the family whose waiters sleep, for threads.
//!
//! Their states and bounds: [`overlock_core::sleep`]. They protect data inside `lock_api::Mutex`
//! (feature `lock_api`), or are used by hand through [`RawLock`] and the traits
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
//! `KernelMutex` is `overlock_family::sleep::KernelMutex`, after the kernel's `struct mutex`. It
//! and its variants need the feature `family`.

pub use overlock_core::Instant;
pub use overlock_core::raw::{
    ConstLock, RawCancelLock, RawFairLock, RawFork, RawLock, RawTimedLock,
};

use crate::System;

/// [`Overlock`](overlock_core::sleep::Overlock) for threads: `overlock` in tables.
pub type Overlock = overlock_core::sleep::Overlock<System>;

/// [`KernelMutex`](overlock_family::sleep::KernelMutex) for threads: `kernel_mutex` in tables.
#[cfg(feature = "family")]
pub type KernelMutex = overlock_family::sleep::KernelMutex<System>;

/// [`KernelMutexInside`](overlock_family::sleep::KernelMutexInside) for threads:
/// `kernel_mutex_inside` in tables.
#[cfg(feature = "family")]
pub type KernelMutexInside = overlock_family::sleep::KernelMutexInside<System>;

/// [`KernelMutexNone`](overlock_family::sleep::KernelMutexNone) for threads:
/// `kernel_mutex_none` in tables.
#[cfg(feature = "family")]
pub type KernelMutexNone = overlock_family::sleep::KernelMutexNone<System>;
