// Included by parking_lot_api.rs: `FairMutex`, `RecursiveRwLock`, and names of raw locks.

use std::sync::{Barrier, OnceLock};

use crate::caller::{Caller, until};

#[test]
fn a_fair_mutex() {
    static LOCK: api::FairMutex<u32> = api::FairMutex::new(1);
    let mut guard: api::FairMutexGuard<'_, u32> = LOCK.lock();
    *guard += 1;
    assert!(LOCK.is_locked() && LOCK.try_lock().is_none());
    assert!(LOCK.try_lock_for(SHORT).is_none());
    assert!(LOCK.try_lock_until(Instant::now()).is_none());
    assert!(api::FairMutexGuard::unlocked(&mut guard, || LOCK.try_lock().is_some()));
    api::FairMutexGuard::bump(&mut guard);
    let mapped: api::MappedFairMutexGuard<'_, u32> = api::FairMutexGuard::map(guard, |data| data);
    assert_eq!(format!("{mapped} {mapped:?}"), "2 2");
    drop(mapped);
    assert_eq!(format!("{LOCK:?}"), "Mutex { data: 2 }");
    // SAFETY: the raw lock is only looked at.
    let _raw: &api::RawFairMutex = unsafe { LOCK.raw() };
    api::FairMutexGuard::unlock_fair(LOCK.lock());
    assert!(!LOCK.is_locked());
}

/// The unlock hands the lock off: nobody gets it between the owner and the sleeper.
#[test]
fn a_fair_mutex_is_handed_off_at_each_release() {
    let lock = &api::FairMutex::new(1);
    let (sleeper, has_seen) = (&OnceLock::new(), &Barrier::new(2));
    thread::scope(|scope| {
        let guard = lock.lock();
        scope.spawn(|| {
            let _ = sleeper.set(Caller::here());
            let _guard = lock.lock();
            has_seen.wait();
        });
        let sleeps = until(sleeper, Caller::is_asleep);
        drop(guard);
        let refused = lock.try_lock().is_none();
        has_seen.wait();
        assert!(sleeps && refused);
    });
}

#[test]
fn a_recursive_lock_is_read_again_while_a_writer_waits() {
    let lock = &api::RecursiveRwLock::new(1);
    let writer = &OnceLock::new();
    thread::scope(|scope| {
        let outer: api::RecursiveRwLockReadGuard<'_, u32> = lock.read();
        scope.spawn(|| {
            let _ = writer.set(Caller::here());
            *lock.write() += 1;
        });
        assert!(until(writer, Caller::is_asleep));
        assert_eq!(*lock.read() + *outer, 2);
        assert!(lock.try_read().is_some());
        assert!(lock.try_read_for(SHORT).is_some());
        assert!(lock.try_read_until(Instant::now()).is_some());
    });
    assert_eq!(*lock.read(), 2);
    let writer: api::RecursiveRwLockWriteGuard<'_, u32> = lock.write();
    assert!(lock.try_read().is_none() && lock.is_locked_exclusive());
    assert!(lock.try_read_for(SHORT).is_none());
    let upgradable: api::RecursiveRwLockUpgradableReadGuard<'_, u32> =
        api::RecursiveRwLockWriteGuard::downgrade_to_upgradable(writer);
    assert!(lock.try_read().is_some() && lock.try_upgradable_read().is_none());
    let writer = api::RecursiveRwLockUpgradableReadGuard::upgrade(upgradable);
    let mut mapped: api::MappedRecursiveRwLockWriteGuard<'_, u32> =
        api::RecursiveRwLockWriteGuard::map(writer, |data| data);
    *mapped += 1;
    drop(mapped);
    let mapped: api::MappedRecursiveRwLockReadGuard<'_, u32> =
        api::RecursiveRwLockReadGuard::map(lock.read(), |data| data);
    assert_eq!(*mapped, 3);
    drop(mapped);
    // SAFETY: the raw lock is only looked at.
    let _raw: &api::RawRwLockRecursive = unsafe { lock.raw() };
    assert!(!lock.is_locked());
}

/// Programs that name lock_api through this crate.
#[cfg(feature = "lock_api")]
#[test]
fn lock_api_by_this_name() {
    use api::lock_api::{self, GetThreadId, RawCondvar, RawCondvarTimed, RawMutexTimed};
    static LOCK: lock_api::Mutex<api::RawMutex, u32> = lock_api::Mutex::new(1);
    static CHANGED: lock_api::Condvar<api::RawCondvar> = lock_api::Condvar::new();
    fn timed<C: RawCondvar + RawCondvarTimed>(_: &C)
    where
        C::RawMutex: RawMutexTimed,
    {
    }
    timed(CHANGED.raw());
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut guard = LOCK.lock();
            CHANGED.wait_while(&mut guard, |data| *data == 1);
            *guard
        });
        assert!(CHANGED.wait_for(&mut LOCK.lock(), SHORT).timed_out());
        *LOCK.lock() = 2;
        CHANGED.notify_all();
        assert_eq!(waiter.join().unwrap(), 2);
    });
    let fair = lock_api::Mutex::<api::RawFairMutex, _>::new(1);
    assert_eq!(*fair.lock(), 1);
    let recursive = lock_api::RwLock::<api::RawRwLockRecursive, _>::new(1);
    assert_eq!(*recursive.read() + *recursive.read(), 2);
    let reentrant = lock_api::ReentrantMutex::<api::RawMutex, api::RawThreadId, _>::new(1);
    assert_eq!(*reentrant.lock() + *reentrant.lock(), 2);
    let id = <api::RawThreadId as GetThreadId>::INIT;
    let other = thread::spawn(|| <api::RawThreadId as GetThreadId>::INIT.nonzero_thread_id());
    assert_ne!(id.nonzero_thread_id(), other.join().unwrap());
}
