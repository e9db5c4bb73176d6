//! Every raw lock of the family with data, by the same source: exclusion, panics, condition
//! variables.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use ::overlock::Condvar;
use ::overlock::guard::Guard;
use ::overlock::lock::{Lock, LockGuard};
use ::overlock::rwlock::SharedLock;
use ::overlock_core::raw::{RawLock, RawRwLock};

/// Few: strictly fair locks lose a time slice whenever the next in line is not running, and other
/// tests cover exclusion.
const THREADS: usize = 2;
const TIMES: usize = if cfg!(miri) { 5 } else { 50 };

fn counts<R: RawLock>() {
    let lock = Lock::from_raw(R::create().expect("a ticket is left"), (0, 0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for i in 0..TIMES {
                    let mut guard = lock.lock();
                    guard.0 += 1;
                    if i % 10 == 0 {
                        thread::yield_now();
                    }
                    guard.1 += 1;
                    assert_eq!(guard.0, guard.1, "two threads were inside {}", R::NAME);
                }
            });
        }
    });
    assert_eq!(lock.into_inner().0, THREADS * TIMES);
}

fn is_released<R: RawLock>() {
    let lock = Lock::from_raw(R::create().expect("a ticket is left"), 1);
    let panics = std::panic::AssertUnwindSafe(|| {
        let _guard = lock.lock();
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    let mut part = LockGuard::map(lock.try_lock().unwrap(), |data| data);
    *part += 1;
    drop(part);
    let mut guard = lock.lock();
    Guard::unlocked(&mut guard, || *lock.lock() += 1);
    assert_eq!(*guard, 3);
}

/// Threads alternate: the condition variable releases and acquires every kind of lock with its
/// tokens.
fn waits<R: RawLock>() {
    const ROUNDS: usize = 3;
    let turn = Lock::from_raw(R::create().expect("a ticket is left"), 0);
    let passed = Condvar::new();
    thread::scope(|scope| {
        for me in 0..3 {
            let (turn, passed) = (&turn, &passed);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let mut guard = turn.lock();
                    passed.wait_while(&mut guard, |turn| *turn % 3 != me);
                    *guard += 1;
                    drop(guard);
                    passed.notify_all();
                }
            });
        }
    });
    assert_eq!(turn.into_inner(), 3 * ROUNDS);
}

fn reads_and_writes<R: RawRwLock>() {
    let lock = SharedLock::<R, _>::new((0, 0));
    let together = AtomicU32::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (lock, together) = (&lock, &together);
            scope.spawn(move || {
                for i in 0..TIMES {
                    if (i + thread) % 4 == 0 {
                        let mut writer = lock.write();
                        writer.0 += 1;
                        assert_eq!(
                            together.load(Relaxed),
                            0,
                            "readers beside a writer of {}",
                            R::NAME
                        );
                        if i % 10 == 0 {
                            thread::yield_now();
                        }
                        writer.1 += 1;
                    } else {
                        let reader = lock.read();
                        together.fetch_add(1, Relaxed);
                        assert_eq!(
                            reader.0,
                            reader.1,
                            "a reader beside a writer of {}",
                            R::NAME
                        );
                        together.fetch_sub(1, Relaxed);
                    }
                }
            });
        }
    });
    assert!(lock.into_inner().0 > 0);
}

macro_rules! spin {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$(
        mutual!($name: ::overlock_family::spin::$lock<::overlock::Linux>);
    )*};
}

macro_rules! sleep {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$(
        mutual!($name: ::overlock_family::sleep::$lock<::overlock::Linux>);
    )*};
}

macro_rules! mutual {
    ($name:ident: $lock:ty) => {
        mod $name {
            #[test]
            fn counts() {
                super::counts::<$lock>();
            }

            #[test]
            fn is_released() {
                super::is_released::<$lock>();
            }

            #[test]
            fn waits() {
                super::waits::<$lock>();
            }
        }
    };
}

macro_rules! shared {
    ($($name:ident: $module:ident::$lock:ident, $can:ident;)*) => {$(
        mod $name {
            #[test]
            fn reads_and_writes() {
                super::reads_and_writes::<::overlock_family::$module::$lock<::overlock::Linux>>();
            }
        }
    )*};
}

mutual!(rt_mutex: ::overlock::RawRtMutex);
::overlock_family::spin_locks!(spin);
::overlock_family::sleep_locks!(sleep);
::overlock_family::rw_locks!(shared);
