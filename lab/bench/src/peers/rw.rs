//! The reader-writer locks that people use today.

use crate::wrap::rw_locks;

/// The panic message of a poisoned lock.
const POISONED: &str = "a worker panicked while it held the lock";

rw_locks! {
    /// `std::sync::RwLock`, poisoning included.
    Std(std::sync::RwLock<()>),
        std::sync::RwLockReadGuard<'a, ()>, std::sync::RwLockWriteGuard<'a, ()>,
        |l| l.read().expect(POISONED), |l| l.write().expect(POISONED);
    /// `parking_lot` 0.13's `RwLock`.
    ParkingLot(parking_lot::RwLock<()>),
        parking_lot::RwLockReadGuard<'a, ()>, parking_lot::RwLockWriteGuard<'a, ()>,
        |l| l.read(), |l| l.write();
    /// `parking_lot` 0.12's `RwLock`.
    ParkingLot012(parking_lot_012::RwLock<()>),
        parking_lot_012::RwLockReadGuard<'a, ()>, parking_lot_012::RwLockWriteGuard<'a, ()>,
        |l| l.read(), |l| l.write();
    /// `crossbeam`'s `ShardedLock`, poisoning included.
    Sharded(crossbeam_utils::sync::ShardedLock<()>),
        crossbeam_utils::sync::ShardedLockReadGuard<'a, ()>, crossbeam_utils::sync::ShardedLockWriteGuard<'a, ()>,
        |l| l.read().expect(POISONED), |l| l.write().expect(POISONED);
    /// `usync`'s `RwLock`.
    Usync(usync::RwLock<()>),
        usync::RwLockReadGuard<'a, ()>, usync::RwLockWriteGuard<'a, ()>,
        |l| l.read(), |l| l.write();
}
