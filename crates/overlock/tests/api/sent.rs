//! Locks whose guards go to other threads: every operation there, and the data's own bounds.

use std::cell::Cell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use overlock::{
    Condvar, SendMutex, SendMutexGuard, SendRwLock, SendRwLockUpgradableReadGuard,
    SendRwLockWriteGuard,
};

/// Runs `f` on another thread.
fn elsewhere<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(f).join().unwrap())
}

#[test]
fn a_mutex_is_released_by_another_thread() {
    let lock = Arc::new(SendMutex::named("sent", Cell::new(1)));
    let guard = lock.lock();
    elsewhere(move || {
        guard.set(2);
        drop(guard);
    });
    let guard = lock.lock_arc();
    elsewhere(move || drop(guard));
    let part = SendMutexGuard::map(lock.lock(), |cell| cell.get_mut());
    elsewhere(move || drop(part));
    let guard = lock.lock();
    elsewhere(move || SendMutexGuard::unlock_fair(guard));
    let mut guard = lock.lock();
    elsewhere(|| {
        SendMutexGuard::unlocked(&mut guard, || lock.lock().set(3));
        drop(guard);
    });
    assert_eq!(lock.try_lock().map(|cell| cell.get()), Some(3));
}

#[test]
fn its_waiters_are_woken_by_the_thread_that_releases() {
    let lock = SendMutex::new(0);
    let guard = lock.lock();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| *lock.lock() += 1);
        while !lock.is_contended() {
            thread::sleep(Duration::from_millis(1));
        }
        scope.spawn(move || drop(guard));
        waiter.join().unwrap();
    });
    assert_eq!(lock.into_inner(), 1);
}

#[test]
fn a_condition_is_waited_for_by_another_thread() {
    let (lock, ready) = (SendMutex::new(false), Condvar::new());
    let mut guard = lock.lock();
    thread::scope(|scope| {
        let ready = &ready;
        let waiter = scope.spawn(move || {
            ready.wait_while(&mut guard, |ready| !*ready);
            *guard
        });
        *lock.lock() = true;
        ready.notify_all();
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn a_reader_writer_lock_is_released_and_changed_by_another_thread() {
    let lock = SendRwLock::new(1);
    let reader = lock.read();
    let other = lock.read_recursive();
    elsewhere(move || drop((reader, other)));
    let writer: SendRwLockWriteGuard<u32> = lock.write();
    let reader = elsewhere(move || SendRwLockWriteGuard::downgrade(writer));
    assert!(lock.try_write().is_none());
    elsewhere(move || drop(reader));
    let upgradable: SendRwLockUpgradableReadGuard<u32> = lock.upgradable_read();
    let writer = elsewhere(move || SendRwLockUpgradableReadGuard::upgrade(upgradable));
    elsewhere(move || drop(writer));
    assert!(lock.try_write().is_some());
}
