//! All types on any system: these tests ask nothing of it but threads and a clock.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use overlock::{
    Barrier, CancelToken, Condvar, Mutex, Once, OnceLock, Parker, PerCpuRwLock, RwLock, Semaphore,
    WwMutex, wait, wake_all, wake_one, ww_mutex,
};

/// More than most machines have CPUs.
const THREADS: u32 = 16;
const TURNS: u32 = if cfg!(miri) { 4 } else { 500 };
const SOON: Duration = Duration::from_millis(5);

/// Runs `body` in all threads, each with its number.
fn crowd(body: impl Fn(u32) + Sync) {
    let body = &body;
    thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || body(number));
        }
    });
}

#[test]
fn a_mutex_excludes_and_everybody_gets_on() {
    let count = Mutex::new(0);
    crowd(|number| {
        for turn in 0..TURNS {
            match (number + turn) % 3 {
                0 => *count.lock() += 1,
                1 => loop {
                    if let Some(mut count) = count.try_lock_for(SOON) {
                        *count += 1;
                        break;
                    }
                },
                _ => {
                    let mut guard = count.lock();
                    *guard += 1;
                    // A holder that has no CPU.
                    thread::yield_now();
                }
            }
        }
    });
    assert_eq!(count.into_inner(), THREADS * TURNS);
}

#[test]
fn a_limit_ends_a_wait_and_not_too_early() {
    let (mutex, rwlock, permits) = (Mutex::new(()), RwLock::new(()), Semaphore::new(1));
    let _held = (mutex.lock(), rwlock.write(), permits.acquire());
    thread::scope(|scope| {
        scope.spawn(|| {
            for ends in [
                (&|| mutex.try_lock_for(SOON).is_none()) as &dyn Fn() -> bool,
                &|| rwlock.try_read_for(SOON).is_none(),
                &|| rwlock.try_write_for(SOON).is_none(),
                &|| permits.try_acquire_for(SOON).is_none(),
            ] {
                let begin = Instant::now();
                assert!(ends());
                assert!(begin.elapsed() >= SOON);
            }
        });
    });
}

#[test]
fn a_cancelled_wait_ends() {
    let (mutex, cancel) = (Mutex::new(()), CancelToken::new());
    let held = mutex.lock();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| mutex.lock_cancellable(&cancel).is_err());
        thread::sleep(SOON);
        cancel.cancel();
        assert!(waiter.join().unwrap());
    });
    drop(held);
}

#[test]
fn writers_exclude_readers_and_readers_share() {
    let (pair, rare) = (RwLock::new((0, 0)), PerCpuRwLock::new((0, 0)));
    crowd(|number| {
        for turn in 0..TURNS {
            if (number + turn) % 8 == 0 {
                let mut pair = pair.write();
                pair.0 += 1;
                thread::yield_now();
                pair.1 += 1;
            } else {
                let pair = pair.read();
                assert_eq!(pair.0, pair.1);
            }
            if (number + turn) % 64 == 0 {
                let mut pair = rare.write();
                pair.0 += 1;
                thread::yield_now();
                pair.1 += 1;
            } else {
                let pair = rare.read();
                assert_eq!(pair.0, pair.1);
            }
        }
    });
    let readers = [pair.read(), pair.read()];
    assert!(pair.try_write().is_none());
    drop(readers);
}

#[test]
fn a_queue_of_condition_variables_loses_nothing() {
    const ROOM: usize = 4;
    let (queue, changed) = (Mutex::new(Vec::new()), [const { Condvar::new() }; 2]);
    let sum = AtomicU32::new(0);
    crowd(|number| {
        let is_producer = number % 2 == 0;
        for turn in 0..TURNS {
            let mut queue = queue.lock();
            if is_producer {
                changed[0].wait_while(&mut queue, |queue| queue.len() == ROOM);
                queue.push(turn);
                changed[1].notify_one();
            } else {
                changed[1].wait_while(&mut queue, |queue| queue.is_empty());
                sum.fetch_add(queue.pop().unwrap(), Relaxed);
                changed[0].notify_one();
            }
        }
    });
    assert_eq!(sum.into_inner(), THREADS / 2 * (0..TURNS).sum::<u32>());
}

#[test]
fn a_condition_variable_wakes_all_and_its_wait_has_a_limit() {
    let (open, opened) = (Mutex::new(false), Condvar::new());
    let ended = opened.wait_for(&mut open.lock(), SOON);
    assert!(ended.timed_out());
    let come = AtomicU32::new(0);
    crowd(|_| {
        let mut open = open.lock();
        if come.fetch_add(1, Relaxed) == THREADS - 1 {
            *open = true;
            opened.notify_all();
        }
        opened.wait_while(&mut open, |open| !*open);
    });
}

#[test]
fn a_semaphore_admits_as_many_as_it_has_permits() {
    let (permits, inside) = (Semaphore::new(3), AtomicU32::new(0));
    crowd(|_| {
        for _ in 0..TURNS / 4 {
            let _permit = permits.acquire();
            assert!(inside.fetch_add(1, Relaxed) < 3);
            thread::yield_now();
            inside.fetch_sub(1, Relaxed);
        }
    });
}

#[test]
fn a_barrier_waits_for_all_and_the_first_call_is_the_only_one() {
    let (meet, calls, once) = (
        Barrier::new(THREADS as usize),
        AtomicU32::new(0),
        Once::new(),
    );
    let (leaders, value) = (AtomicU32::new(0), OnceLock::new());
    crowd(|number| {
        for round in 1..=20 {
            if meet.wait().is_leader() {
                leaders.fetch_add(1, Relaxed);
            }
            meet.wait();
            assert_eq!(leaders.load(Relaxed), round);
        }
        once.call_once(|| _ = calls.fetch_add(1, Relaxed));
        value.get_or_init(|| {
            thread::yield_now();
            number
        });
    });
    assert_eq!(calls.into_inner(), 1);
    assert!(value.into_inner().unwrap() < THREADS);
}

#[test]
fn wound_and_wait_ends_what_would_be_a_deadlock() {
    static CLASS: ww_mutex::Class = ww_mutex::Class::new();
    let accounts = [100_i64; 4].map(|balance| WwMutex::new(&CLASS, balance));
    crowd(|number| {
        for turn in 0..TURNS / 8 {
            let from = (number + turn) as usize % 4;
            let to = (from + 1 + turn as usize % 3) % 4;
            let transfer = ww_mutex::acquire(&CLASS, |context| {
                let mut from = context.lock(&accounts[from])?;
                let mut to = context.lock(&accounts[to])?;
                *from -= 1;
                *to += 1;
                Ok(())
            });
            transfer.unwrap();
        }
    });
    let sum: i64 = accounts.into_iter().map(WwMutex::into_inner).sum();
    assert_eq!(sum, 400);
}

#[test]
fn words_and_parkers_wake() {
    let word = AtomicU32::new(0);
    crowd(|number| {
        if number == 0 {
            thread::sleep(SOON);
            word.store(1, Relaxed);
            wake_one(&word);
            wake_all(&word);
        }
        while word.load(Relaxed) == 0 {
            wait(&word, 0);
        }
    });
    let parker = Parker::new();
    let unparker = parker.unparker().clone();
    thread::scope(|scope| {
        scope.spawn(move || (0..TURNS).for_each(|_| unparker.unpark()));
        parker.park();
    });
    assert!(!parker.park_timeout(SOON) || !parker.park_timeout(SOON));
}
