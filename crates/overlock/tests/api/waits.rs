//! Waits that end before the lock is free, condition variables with more than a `MutexGuard`,
//! permits; on real threads.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use overlock::lock::Lock;
use overlock::*;

const SHORT: Duration = Duration::from_millis(10);

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// The first attempt in `lock_cancellable`, and the token that it passes on.
#[test]
fn a_waiter_is_cancelled_and_the_lock_goes_on() {
    let lock = Mutex::new(0);
    let cancel = CancelToken::new();
    assert!(lock.lock_cancellable(&cancel).is_ok());
    let held = lock.lock();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| lock.lock_cancellable(&cancel).err());
        until(|| lock.is_contended());
        cancel.cancel();
        assert_eq!(waiter.join().unwrap(), Some(Cancelled));
    });
    assert_eq!(lock.lock_cancellable(&cancel).err(), Some(Cancelled));
    drop(held);
    // Tries once, with any state of the token.
    *lock.lock_cancellable(&cancel).unwrap() += 1;
    assert_eq!(lock.into_inner(), 1);
    assert_eq!(Cancelled.to_string(), "the wait was cancelled");
}

/// Fails where a function that has a guard by reference cannot pass on a reference to that.
#[test]
fn a_condition_takes_a_reference_to_a_guard_in_any_depth() {
    fn waits(changed: &Condvar, mut guard: &mut MutexGuard<'_, u32>) {
        assert!(changed.wait_for(guard, SHORT).timed_out());
        assert!(changed.wait_for(&mut guard, SHORT).timed_out());
        let is_one = |value: &mut u32| *value == 1;
        assert!(
            changed
                .wait_while_for(&mut guard, is_one, SHORT)
                .timed_out()
        );
    }
    waits(&Condvar::new(), &mut Mutex::new(1).lock());
}

/// One token for several locks, and a condition variable.
#[test]
fn one_token_ends_many_waits() {
    let locks = [Mutex::new(0), Mutex::new(0)];
    let (changed, idle, cancel) = (Condvar::new(), Mutex::new(0), CancelToken::new());
    let held = locks.each_ref().map(|lock| lock.lock());
    thread::scope(|scope| {
        let waiters = locks
            .each_ref()
            .map(|lock| scope.spawn(|| lock.lock_cancellable(&cancel).is_err()));
        let sleeper = scope.spawn(|| {
            let mut guard = idle.lock();
            *guard = 1;
            changed.wait_cancellable(&mut guard, &cancel)
        });
        until(|| *idle.lock() == 1 && locks.iter().all(|lock| lock.is_contended()));
        cancel.cancel();
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
        assert_eq!(sleeper.join().unwrap(), Err(Cancelled));
    });
    drop(held);
}

/// The result of `wait_limited` in `wait_cancellable`.
#[test]
fn a_notification_wins_over_a_later_cancellation() {
    let (lock, changed, cancel) = (Mutex::new(0), Condvar::new(), CancelToken::new());
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut guard = lock.lock();
            *guard = 1;
            changed.wait_cancellable(&mut guard, &cancel)
        });
        until(|| *lock.lock() == 1);
        let guard = lock.lock();
        assert!(changed.notify_one());
        cancel.cancel();
        drop(guard);
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_condvar_takes_any_guard() {
    let changed = Condvar::new();
    let lock = Arc::new(SpinLock::new(0));
    let mut guard = lock.lock_arc();
    assert!(changed.wait_for(&mut guard, SHORT).timed_out());
    drop(guard);

    let lock = Lock::from_raw(spin::Mcs::new(), 0);
    let mut guard = lock.lock();
    assert!(changed.wait_for(&mut guard, SHORT).timed_out());
    assert!(
        changed
            .wait_while_for(&mut guard, |data| *data == 0, SHORT)
            .timed_out()
    );
    *guard += 1;
    drop(guard);
    assert_eq!(lock.into_inner(), 1);
}

/// Many more threads than CPUs, sections that lose the CPU, waiters that give up.
#[test]
fn counts_under_overcommit() {
    const THREADS: usize = if cfg!(miri) { 3 } else { 32 };
    const TIMES: usize = if cfg!(miri) { 20 } else { 3_000 };
    let lock = SpinLock::new((0_usize, 0_usize));
    let cancelled = CancelToken::new();
    cancelled.cancel();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (lock, cancelled) = (&lock, &cancelled);
            scope.spawn(move || {
                for i in 0..TIMES {
                    let mut guard = match (i + thread) % 7 {
                        0 => lock
                            .try_lock_for(Duration::from_micros(50))
                            .unwrap_or_else(|| lock.lock()),
                        1 => lock
                            .lock_cancellable(cancelled)
                            .unwrap_or_else(|_| lock.lock()),
                        _ => lock.lock(),
                    };
                    guard.0 += 1;
                    if i % 1000 == 0 {
                        thread::yield_now();
                    }
                    guard.1 += 1;
                    assert_eq!(guard.0, guard.1);
                    if i % 100 == 0 {
                        MutexGuard::bump(&mut guard);
                        MutexGuard::unlock_fair(guard);
                    }
                }
            });
        }
    });
    assert_eq!(lock.lock().0, THREADS * TIMES);
    assert!(!lock.is_contended());
}

/// `Permit`'s `drop` returns as many permits as were taken; none after `forget`.
#[test]
fn permits_are_handed_out_and_come_back() {
    static SEMAPHORE: Semaphore = Semaphore::new(3);
    let one = SEMAPHORE.acquire();
    let two = SEMAPHORE.acquire_many(2);
    assert_eq!((Permit::permits(&one), Permit::permits(&two)), (1, 2));
    assert!(std::ptr::eq(Permit::semaphore(&one), &SEMAPHORE));
    assert!(SEMAPHORE.try_acquire().is_none() && SEMAPHORE.try_acquire_many(2).is_none());
    let start = Instant::now();
    assert!(SEMAPHORE.try_acquire_for(SHORT).is_none());
    assert!(start.elapsed() >= SHORT);
    let end = Instant::now() + SHORT;
    assert!(SEMAPHORE.try_acquire_until(end).is_none());
    assert!(Instant::now() >= end);
    assert!(SEMAPHORE.try_acquire_many_for(2, SHORT).is_none());
    assert!(SEMAPHORE.try_acquire_many_until(2, end).is_none());
    drop(one);
    assert_eq!(
        format!("{SEMAPHORE:?}"),
        "Semaphore { available_permits: 1, .. }"
    );
    assert!(SEMAPHORE.try_acquire_until(end).is_some());
    drop(two);
    assert!(SEMAPHORE.try_acquire_many_for(3, Duration::ZERO).is_some());
    Permit::forget(SEMAPHORE.acquire_many(2));
    assert_eq!(SEMAPHORE.available_permits(), 1);
    SEMAPHORE.add_permits(2);
    assert_eq!(SEMAPHORE.available_permits(), 3);
}

#[test]
fn a_permit_is_waited_for_cancelled_and_sent() {
    let semaphore = Semaphore::new(1);
    let cancel = CancelToken::new();
    let permit = semaphore.acquire();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| semaphore.acquire_cancellable(&cancel).err());
        until(|| semaphore.is_contended());
        cancel.cancel();
        assert_eq!(waiter.join().unwrap(), Some(Cancelled));
        let waiter = scope.spawn(|| drop(semaphore.acquire()));
        until(|| semaphore.is_contended());
        scope.spawn(move || drop(permit));
        waiter.join().unwrap();
    });
    assert_eq!(semaphore.available_permits(), 1);
    assert!(semaphore.acquire_cancellable(&cancel).is_ok(), "tries once");
}

/// parking_lot's panics here.
#[test]
fn a_condvar_serves_two_mutexes_at_once() {
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 300 };
    let locks = [Mutex::new(0), Mutex::new(0)];
    let changed = Condvar::new();
    thread::scope(|scope| {
        for waiter in 0..4 {
            let (lock, changed) = (&locks[waiter % 2], &changed);
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    changed.wait_while(&mut lock.lock(), |now| *now < round);
                }
            });
        }
        for round in 1..=ROUNDS {
            let mut guards = locks.each_ref().map(|lock| lock.lock());
            for guard in &mut guards {
                **guard = round;
            }
            changed.notify_all();
            drop(guards);
        }
    });
}
