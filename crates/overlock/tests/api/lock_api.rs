//! The traits of lock_api for raw locks, 0.5 and 0.4: they do what their names say, and exist for
//! the locks that should have them.
#![cfg(feature = "lock_api")]

use std::sync::OnceLock;
use std::time::Duration;

use crate::caller::{Caller, until};
use overlock::{Linux, RawMutex, RawRwLock, rw, sleep, spin};
use overlock_core::raw::{
    RawFairLock, RawFairRwLock, RawTimedLock, RawTimedRwLock, RawUpgradeRwLock,
};
use overlock_core::{Instant, Platform};

const SHORT: Duration = Duration::from_millis(5);

fn soon() -> Instant {
    Linux::now().plus(SHORT)
}

/// Holds up to the moment by which an earlier wait must have ended.
fn takes_time<V>(f: impl FnOnce() -> V) -> V {
    let start = std::time::Instant::now();
    let value = f();
    assert!(start.elapsed() >= SHORT);
    value
}

#[test]
fn a_mutex_over_every_lock() {
    macro_rules! try_all {
        ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => { $(try_all!(@ $lock, $kind);)* };
        (@ $lock:ident, fallible) => {};
        (@ $lock:ident, $kind:ident) => {
            let lock = lock_api::Mutex::<spin::$lock, _>::new(1);
            *lock.lock() += 1;
            let guard = lock.try_lock().unwrap();
            assert!(lock.is_locked() && lock.try_lock().is_none());
            drop(guard);
            assert_eq!(lock.into_inner(), 2);
        };
    }
    overlock_family::spin_locks!(try_all);
}

#[test]
fn a_mutex_with_limits_and_fairness() {
    fn works<R>()
    where
        R: lock_api::RawMutexTimed<Duration = Duration, Instant = Instant> + lock_api::RawMutexFair,
    {
        let lock = lock_api::Mutex::<R, _>::new(1);
        let mut guard = lock.try_lock_for(Duration::ZERO).unwrap();
        assert!(takes_time(|| lock.try_lock_for(SHORT)).is_none());
        assert!(takes_time(|| lock.try_lock_until(soon())).is_none());
        lock_api::MutexGuard::bump(&mut guard);
        assert!(lock.is_locked());
        *guard += 1;
        lock_api::MutexGuard::unlock_fair(guard);
        assert!(!lock.is_locked());
    }
    works::<RawMutex>();
    works::<sleep::KernelMutex>();
}

#[test]
fn an_rwlock_over_every_lock() {
    macro_rules! try_all {
        ($($name:ident: $module:ident::$lock:ident, $can:ident;)*) => {$(
            let lock = lock_api::RwLock::<rw::$lock, _>::new(1);
            let reader = lock.read();
            assert_eq!(*reader + *lock.try_read().unwrap(), 2);
            assert!(lock.is_locked() && !lock.is_locked_exclusive() && lock.try_write().is_none());
            drop(reader);
            let mut writer = lock.write();
            *writer += 1;
            assert!(lock.is_locked_exclusive() && lock.try_read().is_none());
            drop(writer);
            assert_eq!(*lock.try_write().unwrap(), 2);
        )*};
    }
    overlock_family::rw_locks!(try_all);
}

#[test]
fn an_rwlock_with_all_that_there_is() {
    use lock_api::{RwLockUpgradableReadGuard as Upgradable, RwLockWriteGuard as Writer};
    let lock = lock_api::RwLock::<RawRwLock, _>::new(1);
    let reader = Writer::downgrade(lock.try_write_for(SHORT).unwrap());
    assert!(takes_time(|| lock.try_write_for(SHORT)).is_none());
    assert!(takes_time(|| lock.try_write_until(soon())).is_none());
    assert_eq!(
        *lock.try_read_for(SHORT).unwrap() + *lock.try_read_until(soon()).unwrap(),
        2
    );
    let upgradable = lock.upgradable_read();
    assert!(lock.try_upgradable_read().is_none());
    assert!(takes_time(|| lock.try_upgradable_read_for(SHORT)).is_none());
    assert!(takes_time(|| lock.try_upgradable_read_until(soon())).is_none());
    let Err(upgradable) = Upgradable::try_upgrade(upgradable) else {
        unreachable!()
    };
    let Err(upgradable) = takes_time(|| Upgradable::try_upgrade_for(upgradable, SHORT)) else {
        unreachable!()
    };
    drop(reader);
    let upgradable = Writer::downgrade_to_upgradable(Upgradable::upgrade(upgradable));
    let writer = Upgradable::try_upgrade_until(upgradable, soon())
        .ok()
        .unwrap();
    assert!(takes_time(|| lock.try_read_for(SHORT)).is_none());
    assert!(takes_time(|| lock.try_read_until(soon())).is_none());
    let mut upgradable = Writer::downgrade_to_upgradable(writer);
    upgradable.with_upgraded(|data| *data += 1);
    drop(Upgradable::downgrade(upgradable));
    assert!(!lock.is_locked());
}

#[test]
fn an_rwlock_with_fairness() {
    use lock_api::{
        RwLockReadGuard as Reader, RwLockUpgradableReadGuard as Upgradable,
        RwLockWriteGuard as Writer,
    };
    let lock = lock_api::RwLock::<RawRwLock, _>::new(1);
    let mut reader = lock.read();
    Reader::bump(&mut reader);
    assert!(lock.try_write().is_none());
    Reader::unlock_fair(reader);
    let mut writer = lock.write();
    Writer::bump(&mut writer);
    assert!(lock.is_locked_exclusive());
    Writer::unlock_fair(writer);
    let mut upgradable = lock.upgradable_read();
    Upgradable::bump(&mut upgradable);
    assert!(lock.try_upgradable_read().is_none());
    Upgradable::unlock_fair(upgradable);
    assert!(!lock.is_locked());
}

/// Each of them lets a waiting writer in, and the guard is that of another acquisition afterwards:
/// `bump_shared` and its kind, and the token that `renew` keeps.
#[test]
fn a_bump_lets_a_writer_in() {
    fn lets_in<R, G>(lock: &lock_api::RwLock<R, u32>, guard: G, bump: impl FnOnce(&mut G))
    where
        R: lock_api::RawRwLock + overlock_core::raw::RawRwLock,
        G: std::ops::Deref<Target = u32>,
    {
        let before = *guard;
        let writer = &OnceLock::new();
        std::thread::scope(|scope| {
            // Dropped if this panics, or the writer would wait for ever.
            let mut guard = guard;
            scope.spawn(|| {
                let _ = writer.set(Caller::here());
                *lock.write() += 1;
            });
            assert!(until(writer, Caller::is_asleep));
            bump(&mut guard);
            assert_eq!(*guard, before + 1);
        });
        assert!(!lock.is_locked());
    }
    let lock = lock_api::RwLock::<RawRwLock, _>::new(1);
    lets_in(&lock, lock.read(), lock_api::RwLockReadGuard::bump);
    lets_in(&lock, lock.write(), lock_api::RwLockWriteGuard::bump);
    let bump = lock_api::RwLockUpgradableReadGuard::bump;
    lets_in(&lock, lock.upgradable_read(), bump);
}

/// The traits follow from the locks' own traits.
#[test]
fn traits_where_they_are_due() {
    fn timed<R: RawTimedLock + lock_api::RawMutexTimed>() {}
    fn fair<R: RawFairLock + lock_api::RawMutexFair>() {}
    fn timed_rw<R: RawTimedRwLock + lock_api::RawRwLockTimed>() {}
    fn upgrade<R: RawUpgradeRwLock + lock_api::RawRwLockUpgradeTimed>() {}
    fn fair_rw<R: RawFairRwLock + lock_api::RawRwLockUpgradeFair>() {}
    timed::<sleep::Overlock>();
    timed::<spin::Unfair>();
    fair::<sleep::Overlock>();
    timed_rw::<rw::OverlockRw>();
    upgrade::<rw::OverlockRw>();
    fair_rw::<rw::OverlockRw>();
}
