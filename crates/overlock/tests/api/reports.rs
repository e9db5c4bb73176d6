//! Programs of public reports about other lock libraries: each hung, crashed or panicked there.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use overlock::*;

/// On a busy machine, too, such a program ends much earlier.
const STUCK: Duration = Duration::from_secs(120);

/// Fails, instead of hanging, where `program` does not end.
fn ends(program: impl FnOnce() + Send + 'static) {
    let running = thread::spawn(program);
    let start = Instant::now();
    while !running.is_finished() {
        assert!(start.elapsed() < STUCK, "the program hangs");
        thread::sleep(Duration::from_millis(1));
    }
    if let Err(panic) = running.join() {
        std::panic::resume_unwind(panic);
    }
}

/// parking_lot#37, #114, #203: the thread's own data of the lock were gone already.
#[test]
fn destructors_of_thread_locals_wait_for_locks() {
    static COUNT: Mutex<u32> = Mutex::new(0);
    static SHARED: RwLock<u32> = RwLock::new(0);
    static CHANGED: Condvar = Condvar::new();
    static PERMITS: Semaphore = Semaphore::new(1);

    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            let mut count = COUNT.lock();
            *count += 1;
            CHANGED.wait_for(&mut count, Duration::from_millis(1));
            CHANGED.notify_all();
            drop(count);
            *SHARED.write() += 1;
            assert!(*SHARED.read() > 0);
            let _permit = PERMITS.acquire();
            thread::yield_now();
        }
    }
    thread_local!(static LAST: Last = const { Last });

    // A library's data of a thread go before or after those of the program, as they came.
    for lock_first in [false, true] {
        ends(move || {
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(move || {
                        if lock_first {
                            *COUNT.lock() += 0;
                        }
                        LAST.with(|_| ());
                        *COUNT.lock() += 0;
                    });
                }
            });
        });
    }
    // A scope ends before its threads' destructors have.
    let start = Instant::now();
    while *SHARED.read() < 16 {
        assert!(start.elapsed() < STUCK);
        thread::yield_now();
    }
    assert_eq!(*COUNT.lock(), 16);
}

/// rust#121949: Windows' own lock left all but one reader asleep.
#[test]
fn all_readers_get_in_after_a_writer() {
    ends(|| {
        for _ in 0..100 {
            let (lock, together) = (RwLock::new(()), Barrier::new(5));
            let writer = lock.write();
            thread::scope(|scope| {
                for _ in 0..5 {
                    scope.spawn(|| {
                        let _reader = lock.read();
                        together.wait();
                    });
                }
                drop(writer);
            });
        }
    });
}

/// parking_lot#212: the inner `read` waits for the writer, and that one for the outer.
#[test]
fn readers_read_again_beside_a_writer() {
    ends(|| {
        let (lock, named) = (RecursiveRwLock::new(0), RwLock::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let (outer, outer_named) = (lock.read(), named.read());
                    assert_eq!(*lock.read(), *outer);
                    assert_eq!(*named.read_recursive(), *outer_named);
                }
            });
            scope.spawn(|| {
                for _ in 0..2000 {
                    *lock.write() += 1;
                    *named.write() += 1;
                }
            });
        });
    });
}

/// parking_lot#101, #392, #489: an upgrade waits only for readers that are there, also the second
/// one by the same guard.
#[test]
fn upgrades_end_beside_readers() {
    ends(|| {
        let lock = RwLock::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..3000).for_each(|_| assert!(*lock.read() <= 800)));
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let mut guard = lock.upgradable_read();
                        let before = *guard;
                        guard.with_upgraded(|value| *value += 1);
                        guard.with_upgraded(|value| *value += 1);
                        assert_eq!(*guard, before + 2);
                    }
                });
            }
        });
        assert_eq!(lock.into_inner(), 800);
    });
}

/// parking_lot#29: a lock was handed off to a thread that nobody woke.
#[test]
fn fair_unlocks_and_conditions_pass_a_turn() {
    ends(|| {
        let (turn, changed) = (Mutex::new(0), Condvar::new());
        thread::scope(|scope| {
            for thread in 0..4 {
                let (turn, changed) = (&turn, &changed);
                scope.spawn(move || {
                    for _ in 0..250 {
                        let mut guard = turn.lock();
                        changed.wait_while(&mut guard, |turn| *turn % 4 != thread);
                        *guard += 1;
                        changed.notify_all();
                        MutexGuard::unlock_fair(guard);
                    }
                });
            }
        });
        assert_eq!(turn.into_inner(), 1000);
    });
}

/// glibc's bugs 13165 and 25847: a thread that began to wait after the notification took it, or
/// nobody did.
#[test]
fn notifications_are_for_those_that_waited_before() {
    ends(|| {
        let (state, changed) = (Mutex::new([0_u32; 2]), Condvar::new());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    // Each wake-up uses up one notification, and the thread waits again at once.
                    let mut guard = state.lock();
                    loop {
                        guard[0] += 1;
                        changed.wait(&mut guard);
                        guard[1] += 1;
                        if guard[1] > 2000 {
                            return;
                        }
                    }
                });
            }
            let mut sent = 0;
            while sent < 2004 {
                let guard = state.lock();
                // Waiters that no notification before has been for.
                let waiting = guard[0] - sent;
                drop(guard);
                for _ in 0..waiting {
                    assert!(changed.notify_one(), "a waiter is not in the list");
                    sent += 1;
                }
                thread::yield_now();
            }
        });
        assert_eq!(state.into_inner(), [2004; 2]);
    });
}

/// glibc's bugs 23844 and 23861: attempts took the lock in a phase for others, who then slept on.
#[test]
fn attempts_leave_nobody_asleep() {
    const THREADS: u64 = 6;
    ends(|| {
        let lock = RwLock::new(0_u64);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let lock = &lock;
                scope.spawn(move || {
                    for turn in 0..2000 {
                        match (turn * 7 + thread * 3) % 4 {
                            0 => drop(lock.read()),
                            1 => drop(lock.try_read()),
                            2 => *lock.write() += 1,
                            _ => drop(lock.try_write().map(|mut value| *value += 1)),
                        }
                    }
                });
            }
        });
        assert!(lock.into_inner() >= THREADS * 500);
    });
}

/// nuttx#10752: the work of one waits for a thread that runs another's.
#[test]
fn one_initialisation_waits_for_another() {
    ends(|| {
        let (outer, inner) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
        let [outer_of_other, inner_of_other] = [&outer, &inner].map(Arc::clone);
        let other = thread::spawn(move || {
            inner_of_other.get_or_init(|| 1);
            *outer_of_other.wait()
        });
        let value = *outer.get_or_init(|| *inner.wait() + 1);
        assert_eq!([value, other.join().unwrap()], [2; 2]);
    });
}
