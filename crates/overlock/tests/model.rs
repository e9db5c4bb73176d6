//! The types in tests under loom and shuttle: what a program's own tests see of them.
//!
//!     RUSTFLAGS='--cfg loom' cargo test -p overlock --features loom --test model
//!     RUSTFLAGS='--cfg shuttle' cargo test -p overlock --features shuttle --test model
#![cfg(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

#[cfg(all(loom, feature = "loom"))]
use loom as checker;
use overlock::*;
#[cfg(not(all(loom, feature = "loom")))]
use shuttle as checker;

use checker::sync::atomic::AtomicUsize;
use checker::sync::atomic::Ordering::Relaxed;
use checker::thread::spawn;

fn explore(test: impl Fn() + Send + Sync + 'static) {
    #[cfg(all(loom, feature = "loom"))]
    loom::model(test);
    #[cfg(not(all(loom, feature = "loom")))]
    shuttle::check_random(test, 500);
}

/// Whether some execution fails, and says this.
fn fails(with: &str, test: impl Fn() + Send + Sync + 'static) {
    let failed = catch_unwind(AssertUnwindSafe(|| explore(test))).expect_err("all passed");
    let said = failed.downcast_ref::<String>().cloned();
    let said = said.or_else(|| failed.downcast_ref::<&str>().map(|said| said.to_string()));
    let said = said.unwrap_or_default();
    assert!(said.to_lowercase().contains(with), "it says: {said}");
}

/// Relaxed accesses: the lock orders them, or the checker finds an execution where it does not.
#[test]
fn a_mutex_excludes_and_orders() {
    explore(|| {
        let count = Arc::new((Mutex::new(()), AtomicUsize::new(0)));
        let add = |count: &(Mutex<()>, AtomicUsize)| {
            let _held = count.0.lock();
            let seen = count.1.load(Relaxed);
            count.1.store(seen + 1, Relaxed);
        };
        let other = Arc::clone(&count);
        let thread = spawn(move || add(&other));
        add(&count);
        thread.join().unwrap();
        assert_eq!(count.1.load(Relaxed), 2);
    });
}

#[test]
fn two_locks_in_two_orders_are_a_deadlock() {
    fails("deadlock", || {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let other = Arc::clone(&locks);
        let thread = spawn(move || {
            let _second = other.1.lock();
            let _first = other.0.lock();
        });
        {
            let _first = locks.0.lock();
            let _second = locks.1.lock();
        }
        thread.join().unwrap();
    });
}

#[test]
fn a_reader_that_reads_again_is_a_deadlock_and_a_recursive_one_is_none() {
    let test = |again: for<'a> fn(&'a RwLock<u32>) -> RwLockReadGuard<'a, u32>| {
        move || {
            let lock = Arc::new(RwLock::new(0));
            let other = Arc::clone(&lock);
            let thread = spawn(move || *other.write() += 1);
            {
                let outer = lock.read();
                assert_eq!(*outer, *again(&lock));
            }
            thread.join().unwrap();
            assert_eq!(*lock.read(), 1);
        }
    };
    fails("deadlock", test(RwLock::read));
    explore(test(RwLock::read_recursive));
}

#[test]
fn an_upgrade_sees_no_other_writer_in_between() {
    explore(|| {
        let lock = Arc::new(RwLock::new(0));
        let add = |lock: &RwLock<u32>| {
            let seen = lock.upgradable_read();
            let before = *seen;
            *RwLockUpgradableReadGuard::upgrade(seen) = before + 1;
        };
        let other = Arc::clone(&lock);
        let thread = spawn(move || add(&other));
        add(&lock);
        thread.join().unwrap();
        assert_eq!(*lock.read(), 2);
    });
}

#[test]
fn a_notification_without_a_change_is_lost() {
    let test = |changes: bool| {
        move || {
            let shared = Arc::new((Mutex::new(false), Condvar::new()));
            let other = Arc::clone(&shared);
            let thread = spawn(move || {
                *other.0.lock() = changes;
                other.1.notify_one();
            });
            let mut set = shared.0.lock();
            if !*set {
                shared.1.wait(&mut set);
            }
            drop(set);
            thread.join().unwrap();
        }
    };
    explore(test(true));
    fails("deadlock", test(false));
}

#[test]
fn a_limit_passes_where_nobody_lets_go() {
    explore(|| {
        let lock = Arc::new(Mutex::new(()));
        let held = lock.lock();
        let other = Arc::clone(&lock);
        let long = Duration::from_secs(1000);
        let thread = spawn(move || other.try_lock_for(long).is_none());
        assert!(thread.join().unwrap());
        let mut held = held;
        assert!(Condvar::new().wait_for(&mut held, long).timed_out());
    });
}

#[test]
fn a_cancelled_wait_ends() {
    explore(|| {
        let lock = Arc::new((Mutex::new(()), CancelToken::new()));
        let held = lock.0.lock();
        let other = Arc::clone(&lock);
        let thread = spawn(move || other.0.lock_cancellable(&other.1).is_err());
        lock.1.cancel();
        assert!(thread.join().unwrap());
        drop(held);
    });
}

#[test]
fn the_owner_alone_locks_again() {
    explore(|| {
        let lock = Arc::new(ReentrantMutex::new(()));
        let (outer, inner) = (lock.lock(), lock.lock());
        let other = Arc::clone(&lock);
        let thread = spawn(move || other.try_lock().is_none());
        assert!(thread.join().unwrap());
        drop((outer, inner));
    });
}

#[test]
fn a_value_is_made_once_and_seen_whole() {
    explore(|| {
        let value = Arc::new((OnceLock::new(), AtomicUsize::new(0)));
        let make = |value: &(OnceLock<usize>, AtomicUsize)| {
            *value.0.get_or_init(|| {
                value.1.store(value.1.load(Relaxed) + 1, Relaxed);
                7
            })
        };
        let other = Arc::clone(&value);
        let thread = spawn(move || make(&other));
        assert_eq!((make(&value), value.1.load(Relaxed)), (7, 1));
        assert_eq!(thread.join().unwrap(), 7);
    });
}

#[test]
fn a_barrier_has_one_leader_and_a_semaphore_its_permits() {
    explore(|| {
        let shared = Arc::new((Barrier::new(2), Semaphore::new(1), AtomicUsize::new(0)));
        let meet = |(barrier, semaphore, inside): &(Barrier, Semaphore, AtomicUsize)| {
            let leads = barrier.wait().is_leader();
            let _permit = semaphore.acquire();
            assert_eq!(inside.fetch_add(1, Relaxed), 0);
            inside.fetch_sub(1, Relaxed);
            leads
        };
        let other = Arc::clone(&shared);
        let thread = spawn(move || meet(&other));
        let leads = meet(&shared);
        assert_ne!(leads, thread.join().unwrap());
    });
}

/// Each execution finds it free, also after one that has ended with it held.
#[test]
fn a_lock_in_a_static_begins_anew() {
    static LOCK: Mutex<u32> = Mutex::new(0);
    explore(|| {
        let thread = spawn(|| *LOCK.lock() += 1);
        thread.join().unwrap();
        std::mem::forget(LOCK.lock());
    });
    let elsewhere = std::thread::spawn(|| fails("models of one test", || drop(LOCK.lock())));
    elsewhere.join().unwrap();
}
