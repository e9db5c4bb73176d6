//! parking_lot 0.12's interface, over the locks of overlock.
//!
//! A program that cannot change its dependencies' sources takes this crate in the place of theirs:
//!
//! ```toml
//! [patch.crates-io]
//! parking_lot = { path = "../overlock/compat/parking_lot-0.12" }
//! ```
//!
//! The types are lock_api's, as in parking_lot. `parking_lot_core` stays what it is.

mod condvar;
#[path = "../../common/locks.rs"]
mod locks;
#[path = "../../common/once.rs"]
mod once;
mod raw_mutex;
mod raw_rwlock;
#[path = "../../common/thread_id.rs"]
mod thread_id;

#[cfg(feature = "deadlock_detection")]
#[path = "../../common/deadlock.rs"]
pub mod deadlock;
#[cfg(not(feature = "deadlock_detection"))]
#[path = "../../common/no_deadlock.rs"]
mod deadlock;

#[cfg(all(feature = "send_guard", feature = "deadlock_detection"))]
compile_error!("deadlock_detection counts what a thread holds, so its guards cannot be sent");

#[cfg(feature = "send_guard")]
type GuardMarker = lock_api::GuardSend;
#[cfg(not(feature = "send_guard"))]
type GuardMarker = lock_api::GuardNoSend;

pub use ::lock_api;
#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};

pub use condvar::{Condvar, WaitTimeoutResult};
pub use once::{Once, OnceState};
pub use raw_mutex::{RawFairMutex, RawMutex};
pub use raw_rwlock::RawRwLock;
pub use thread_id::RawThreadId;

/// A mutual-exclusion lock.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// The guard of a [`Mutex`].
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// The guard of a part of a [`Mutex`]'s data.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A mutual-exclusion lock whose every unlock hands it off to a waiter.
pub type FairMutex<T> = lock_api::Mutex<RawFairMutex, T>;
/// The guard of a [`FairMutex`].
pub type FairMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawFairMutex, T>;
/// The guard of a part of a [`FairMutex`]'s data.
pub type MappedFairMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawFairMutex, T>;

/// A mutual-exclusion lock that its holder may lock again.
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;
/// The guard of a [`ReentrantMutex`].
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;
/// The guard of a part of a [`ReentrantMutex`]'s data.
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// A reader-writer lock.
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// A reader's guard of a [`RwLock`].
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// The writer's guard of a [`RwLock`].
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// The upgradable reader's guard of a [`RwLock`].
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;
/// A reader's guard of a part of a [`RwLock`]'s data.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// The writer's guard of a part of a [`RwLock`]'s data.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// [`Mutex::new`](lock_api::Mutex::new), by an older name.
pub const fn const_mutex<T>(data: T) -> Mutex<T> {
    Mutex::from_raw(<RawMutex as lock_api::RawMutex>::INIT, data)
}

/// [`FairMutex`]'s `new`, by an older name.
pub const fn const_fair_mutex<T>(data: T) -> FairMutex<T> {
    FairMutex::from_raw(<RawFairMutex as lock_api::RawMutex>::INIT, data)
}

/// [`ReentrantMutex`]'s `new`, by an older name.
pub const fn const_reentrant_mutex<T>(data: T) -> ReentrantMutex<T> {
    ReentrantMutex::from_raw(<RawMutex as lock_api::RawMutex>::INIT, RawThreadId, data)
}

/// [`RwLock`]'s `new`, by an older name.
pub const fn const_rwlock<T>(data: T) -> RwLock<T> {
    RwLock::from_raw(<RawRwLock as lock_api::RawRwLock>::INIT, data)
}
