//! Reading again what the thread reads, and the names that only parking_lot 0.12 has.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use overlock::*;

use crate::caller::{Caller, until};

const SHORT: Duration = Duration::from_millis(5);

/// A writer waits: each `read` would wait for it, and it for the first guard.
#[test]
fn a_reader_reads_again_while_a_writer_waits() {
    let lock = &Arc::new(RwLock::new(1));
    let writer = &OnceLock::new();
    thread::scope(|scope| {
        let outer = lock.read();
        scope.spawn(|| {
            let _ = writer.set(Caller::here());
            *lock.write() += 1;
        });
        assert!(until(writer, Caller::is_asleep));
        assert!(lock.try_read().is_none(), "the writer comes first");
        assert_eq!(*lock.read_recursive() + *outer, 2);
        assert_eq!(*lock.try_read_recursive().unwrap(), 1);
        assert_eq!(*lock.try_read_recursive_for(SHORT).unwrap(), 1);
        assert_eq!(*lock.try_read_recursive_until(Instant::now()).unwrap(), 1);
        assert_eq!(*lock.read_arc_recursive(), 1);
        assert_eq!(*lock.try_read_recursive_arc().unwrap(), 1);
        assert_eq!(*lock.try_read_arc_recursive_for(SHORT).unwrap(), 1);
        let late = lock.try_read_arc_recursive_until(Instant::now());
        assert_eq!(*late.unwrap(), 1);
    });
    assert_eq!(*lock.read(), 2);
}

/// Fails where the reader that has made room comes back before the writer.
#[test]
fn a_bump_of_the_only_reader_lets_the_writer_in() {
    let lock = &RecursiveRwLock::new(1);
    let writer = &OnceLock::new();
    thread::scope(|scope| {
        let mut outer = lock.read();
        let mut inner = lock.read();
        scope.spawn(|| {
            let _ = writer.set(Caller::here());
            *lock.write() += 1;
        });
        assert!(until(writer, Caller::is_asleep));
        // It would wait for the writer, which waits for the other guard.
        RecursiveRwLockReadGuard::bump(&mut inner);
        assert_eq!(*outer, 1);
        drop(inner);
        RecursiveRwLockReadGuard::bump(&mut outer);
        assert_eq!(*outer, 2);
    });
}

#[test]
fn a_recursive_reader_waits_for_the_thread_that_writes() {
    let lock = &Arc::new(RwLock::new(1));
    let mut writer = lock.write();
    assert!(lock.try_read_recursive().is_none() && lock.try_read_recursive_arc().is_none());
    let start = Instant::now();
    assert!(lock.try_read_recursive_for(SHORT).is_none());
    assert!(lock.try_read_arc_recursive_for(SHORT).is_none());
    assert!(start.elapsed() >= 2 * SHORT);
    let end = Instant::now() + SHORT;
    assert!(lock.try_read_recursive_until(end).is_none() && Instant::now() >= end);
    assert!(lock.try_read_arc_recursive_until(end).is_none());
    let reader = &OnceLock::new();
    thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let _ = reader.set(Caller::here());
            *lock.read_recursive()
        });
        let waits = until(reader, Caller::is_asleep);
        *writer += 1;
        drop(writer);
        assert!(waits && reads.join().unwrap() == 2);
    });
}

/// Correct code, since a reader waits for writers alone: one thread has the upgradable share and
/// waits for a reader, and another one waits for the share, for longer than it may be bypassed.
#[test]
fn a_reader_does_not_wait_for_upgradable_readers() {
    let lock = &RwLock::new(1);
    let second = &OnceLock::new();
    thread::scope(|scope| {
        let mut first = lock.upgradable_read();
        scope.spawn(|| {
            let _ = second.set(Caller::here());
            drop(lock.upgradable_read());
        });
        assert!(until(second, Caller::is_asleep));
        for _ in 0..2 {
            // Wakes the second one, which finds the share taken again, and its patience at an end.
            let writer = RwLockUpgradableReadGuard::upgrade(first);
            first = RwLockWriteGuard::downgrade_to_upgradable(writer);
            assert!(until(second, Caller::is_asleep));
        }
        let reads = scope.spawn(|| lock.try_read_for(Duration::from_secs(600)).is_some());
        assert!(reads.join().unwrap());
    });
}

#[test]
fn constructors_by_the_names_of_0_12() {
    static MUTEX: Mutex<u32> = const_mutex(1);
    static FAIR: FairMutex<u32> = const_fair_mutex(2);
    static REENTRANT: ReentrantMutex<Cell<u32>> = const_reentrant_mutex(Cell::new(3));
    static RWLOCK: RwLock<u32> = const_rwlock(4);
    let sum = *MUTEX.lock() + *FAIR.lock() + REENTRANT.lock().get() + *RWLOCK.read();
    assert_eq!(sum, 10);
}

/// Waiters of a condition variable are moved to the fair lock.
#[test]
fn a_condvar_waits_with_a_fair_mutex() {
    let (lock, turn) = (&FairMutex::new(0), &Condvar::new());
    thread::scope(|scope| {
        for me in 0..4 {
            scope.spawn(move || {
                for _ in 0..50 {
                    let mut next = lock.lock();
                    turn.wait_while(&mut next, |next| *next % 4 != me);
                    *next += 1;
                    turn.notify_all();
                }
            });
        }
    });
    assert_eq!(*lock.lock(), 200);
}

/// A child has no other threads than the one that locked: the lock is still its own.
#[test]
#[cfg(target_os = "linux")]
fn a_reentrant_mutex_stays_its_owners_in_a_child_of_fork() {
    let lock = ReentrantMutex::new(1);
    let guard = lock.lock();
    // SAFETY: the child calls nothing but the lock and `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_mine = lock.try_lock().is_some();
        drop(guard);
        let is_free = !lock.is_locked();
        // SAFETY: no preconditions.
        unsafe { libc::_exit(if is_mine && is_free { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for the write.
    let reaped = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((reaped, status), (child, 0));
}
