//! Every public name of parking_lot 0.12.5 and 0.13.0, with the form in which programs write it.
//! One that is missing here does not compile.

use std::any::type_name;

use overlock as parking_lot;
use parking_lot::lock_api::{
    self, GetThreadId, RawCondvarTimed, RawMutexFair, RawMutexTimed, RawRwLockDowngrade,
    RawRwLockFair, RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade,
    RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};

/// Names types, and does no more.
macro_rules! types {
    ($($type:ty),+ $(,)?) => { [$(type_name::<$type>()),+] };
}

#[test]
fn types() {
    let names = types![
        parking_lot::Mutex<u8>,
        parking_lot::MutexGuard<'static, u8>,
        parking_lot::MappedMutexGuard<'static, u8>,
        parking_lot::FairMutex<u8>,
        parking_lot::FairMutexGuard<'static, u8>,
        parking_lot::MappedFairMutexGuard<'static, u8>,
        parking_lot::ReentrantMutex<u8>,
        parking_lot::ReentrantMutexGuard<'static, u8>,
        parking_lot::MappedReentrantMutexGuard<'static, u8>,
        parking_lot::RwLock<u8>,
        parking_lot::RwLockReadGuard<'static, u8>,
        parking_lot::RwLockWriteGuard<'static, u8>,
        parking_lot::RwLockUpgradableReadGuard<'static, u8>,
        parking_lot::MappedRwLockReadGuard<'static, u8>,
        parking_lot::MappedRwLockWriteGuard<'static, u8>,
        parking_lot::RecursiveRwLock<u8>,
        parking_lot::RecursiveRwLockReadGuard<'static, u8>,
        parking_lot::RecursiveRwLockWriteGuard<'static, u8>,
        parking_lot::RecursiveRwLockUpgradableReadGuard<'static, u8>,
        parking_lot::MappedRecursiveRwLockReadGuard<'static, u8>,
        parking_lot::MappedRecursiveRwLockWriteGuard<'static, u8>,
        parking_lot::Condvar,
        parking_lot::WaitTimeoutResult,
        parking_lot::Once,
        parking_lot::OnceState,
    ];
    assert!(names.iter().all(|name| name.starts_with("overlock")));
}

#[test]
fn arc_guards() {
    use parking_lot::{RawMutex, RawRwLock, RawThreadId};

    let names = types![
        parking_lot::ArcMutexGuard<RawMutex, u8>,
        parking_lot::ArcReentrantMutexGuard<RawMutex, RawThreadId, u8>,
        parking_lot::ArcRwLockReadGuard<RawRwLock, u8>,
        parking_lot::ArcRwLockUpgradableReadGuard<RawRwLock, u8>,
        parking_lot::ArcRwLockWriteGuard<RawRwLock, u8>,
    ];
    assert_eq!(names.len(), 5);
}

#[test]
fn constructors() {
    static MUTEX: parking_lot::Mutex<u8> = parking_lot::const_mutex(1);
    static FAIR: parking_lot::FairMutex<u8> = parking_lot::const_fair_mutex(2);
    static NESTED: parking_lot::ReentrantMutex<u8> = parking_lot::const_reentrant_mutex(3);
    static RWLOCK: parking_lot::RwLock<u8> = parking_lot::const_rwlock(4);
    static CONDVAR: parking_lot::Condvar = parking_lot::Condvar::new();
    static ONCE: parking_lot::Once = parking_lot::Once::new();

    static OLD_MUTEX: parking_lot::Mutex<u8> =
        parking_lot::Mutex::const_new(<parking_lot::RawMutex as lock_api::RawMutex>::INIT, 5);
    static OLD_RWLOCK: parking_lot::RwLock<u8> =
        parking_lot::RwLock::const_new(<parking_lot::RawRwLock as lock_api::RawRwLock>::INIT, 6);
    static OLD_NESTED: parking_lot::ReentrantMutex<u8> = parking_lot::ReentrantMutex::const_new(
        <parking_lot::RawMutex as lock_api::RawMutex>::INIT,
        parking_lot::RawThreadId::INIT,
        7,
    );

    assert_eq!(
        *OLD_MUTEX.lock() + *OLD_RWLOCK.read() + *OLD_NESTED.lock(),
        18
    );
    let _: &parking_lot::RawCondvar = CONDVAR.raw();
    let reader = parking_lot::RwLockReadGuard::map(OLD_RWLOCK.read(), |data| data);
    let refused =
        parking_lot::MappedRwLockReadGuard::try_map_or_else(reader, |_| Err::<&u8, _>(()));
    assert!(refused.is_err());
    assert_eq!(*MUTEX.lock() + *FAIR.lock(), 3);
    assert_eq!(*NESTED.lock() + *RWLOCK.read(), 7);
    assert!(!CONDVAR.notify_one());
    ONCE.call_once(|| {});
    assert_eq!(ONCE.state(), parking_lot::OnceState::Done);
    let states = [
        parking_lot::OnceState::New,
        parking_lot::OnceState::Poisoned,
        parking_lot::OnceState::InProgress,
    ];
    assert!(!states.contains(&ONCE.state()));
}

fn mutex<R: lock_api::RawMutex + RawMutexTimed + RawMutexFair>() {}
fn rwlock<R>()
where
    R: lock_api::RawRwLock + RawRwLockTimed + RawRwLockFair + RawRwLockDowngrade,
    R: RawRwLockUpgrade + RawRwLockUpgradeTimed + RawRwLockUpgradeFair + RawRwLockUpgradeDowngrade,
{
}
fn condvar<R: lock_api::RawCondvar<RawMutex = parking_lot::RawMutex> + RawCondvarTimed>() {}
fn sent<T: Send>() {}

#[test]
fn raw_locks() {
    mutex::<parking_lot::RawMutex>();
    mutex::<parking_lot::RawFairMutex>();
    rwlock::<parking_lot::RawRwLock>();
    rwlock::<parking_lot::RawRwLockRecursive>();
    condvar::<parking_lot::RawCondvar>();
    assert_ne!(parking_lot::RawThreadId.nonzero_thread_id().get(), 0);
}

/// parking_lot's feature `send_guard`, by types.
#[test]
fn raw_locks_whose_guards_are_sent() {
    mutex::<overlock::RawSendMutex>();
    rwlock::<overlock::RawSendRwLock>();
    sent::<lock_api::MutexGuard<'static, overlock::RawSendMutex, u8>>();
    sent::<lock_api::RwLockReadGuard<'static, overlock::RawSendRwLock, u8>>();
    sent::<lock_api::RwLockWriteGuard<'static, overlock::RawSendRwLock, u8>>();
    sent::<lock_api::RwLockUpgradableReadGuard<'static, overlock::RawSendRwLock, u8>>();

    let lock: lock_api::Mutex<overlock::RawSendMutex, u8> = lock_api::Mutex::new(0);
    let guard = lock.lock();
    std::thread::scope(|scope| _ = scope.spawn(move || drop(guard)));
    assert!(lock.try_lock().is_some());
}

#[cfg(feature = "deadlock_detection")]
#[test]
fn deadlocks() {
    type Deadlocks = Vec<Vec<overlock::deadlock::DeadlockedThread>>;

    let deadlocks: Deadlocks = parking_lot::deadlock::check_deadlock();
    for thread in deadlocks.iter().flatten() {
        let _: std::thread::ThreadId = thread.thread_id();
        println!("{:#?}", thread.backtrace());
    }
}
