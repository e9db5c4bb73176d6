//! The size of every named type: results/sizes.md says the same, and a change here is a change of
//! the interface.
// With these features a lock stores its place of creation.
#![cfg(all(
    target_pointer_width = "64",
    not(any(feature = "lockdep", feature = "stat"))
))]

use std::mem::{needs_drop, size_of};
use std::sync::atomic::AtomicU8;

use overlock::lock::Lock;
use overlock::{spin, *};

/// A type for each row of the file. Nothing is allocated, so nothing is dropped.
macro_rules! sizes {
    ($($size:literal: $($type:ty),+;)*) => {$($(
        assert_eq!(size_of::<$type>(), $size, stringify!($type));
    )+)*};
}

#[test]
fn locks() {
    sizes! {
        4: Mutex<()>, SpinLock<()>;
        8: Mutex<u8>, Mutex<u32>;
        16: Mutex<u64>, Mutex<Box<u64>>;
        4: RtMutex<()>;
        8: RtMutex<u8>, RtMutex<u32>;
        16: RtMutex<u64>;
        4: FairMutex<()>, SendMutex<()>;
        16: ReentrantMutex<()>;
        24: ReentrantMutex<u8>, ReentrantMutex<u64>;
        8: RwLock<()>, RecursiveRwLock<()>, SendRwLock<()>;
        12: RwLock<u8>, RwLock<u32>;
        16: RwLock<u64>;
        4: Lock<spin::Ticket, ()>, Lock<spin::Queued, ()>, Lock<spin::Hybrid, ()>;
        8: Lock<spin::Ticket, u8>, Lock<spin::Queued, u32>;
        16: Lock<spin::Hybrid, u64>;
        8: Lock<spin::Mcs, ()>, Lock<spin::Hemlock, ()>;
        12: Lock<spin::Mcs, u8>, Lock<spin::Hemlock, u32>;
        16: Lock<spin::Mcs, u64>, Lock<spin::Hemlock, u64>;
    }
}

#[test]
fn the_others() {
    sizes! {
        4: CancelToken;
        8: Condvar;
        8: Once;
        12: Semaphore, OnceLock<u32>, PerCpuRwLock<()>;
        16: OnceLock<u64>, PerCpuRwLock<u32>;
        20: Barrier;
        24: PerCpuRwLock<u64>;
    }
}

/// The page's lines on other crates, for comparison.
#[test]
fn other_crates() {
    sizes! {
        1: parking_lot::Mutex<()>;
        8: parking_lot::RwLock<()>, std::sync::Mutex<()>;
        12: std::sync::RwLock<()>;
    }
}

#[test]
fn guards() {
    sizes! {
        8: MutexGuard<'_, u64>, SpinLockGuard<'_, u64>, RtMutexGuard<'_, u64>, ArcMutexGuard<RawMutex, u64>;
        16: MappedMutexGuard<'_, u8>, MappedRwLockReadGuard<'_, u8>, PerCpuRwLockReadGuard<'_, u64>;
        8: RwLockReadGuard<'_, u64>, ArcRwLockReadGuard<RawRwLock, u64>;
        8: RwLockWriteGuard<'_, u64>, RwLockUpgradableReadGuard<'_, u64>;
        8: ArcRwLockWriteGuard<RawRwLock, u64>, ArcRwLockUpgradableReadGuard<RawRwLock, u64>;
        8: ReentrantMutexGuard<'_, u64>, FairMutexGuard<'_, u64>;
        16: MappedReentrantMutexGuard<'_, u8>, MappedRwLockWriteGuard<'_, u8>, Permit<'_>;
        0: Cancelled;
        1: WaitTimeoutResult, BarrierWaitResult;
    }
}

/// A guard in an `Option`, as the `try_` methods return it, costs nothing more.
#[test]
fn options_of_guards() {
    sizes! {
        8: Option<MutexGuard<'_, u64>>, Result<MutexGuard<'_, u64>, Cancelled>, Option<RwLockWriteGuard<'_, u64>>;
        8: Option<RwLockReadGuard<'_, u64>>;
        16: Option<PerCpuRwLockReadGuard<'_, u64>>, Option<MappedMutexGuard<'_, u8>>, Option<Permit<'_>>;
        16: Option<MappedRwLockReadGuard<'_, u8>>;
    }
}

#[test]
fn locks_own_nothing() {
    assert!(!needs_drop::<Mutex<AtomicU8>>());
    assert!(!needs_drop::<RwLock<AtomicU8>>());
    assert!(!needs_drop::<PerCpuRwLock<AtomicU8>>());
    assert!(!needs_drop::<Condvar>());
}
