//! The mutual-exclusion locks whose waiters sleep, on real threads: they exclude and make progress,
//! waiters give up in time, 10,000 waiters at one lock are all served, and threads come and go.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Pair;
use crate::serial;
use crate::watch::{self, ThreadState};
use overlock::System;
use overlock::sleep::{RawLock, RawTimedLock};
use overlock_core::Platform;
use overlock_core::platform::Pause;

const SECTIONS: u64 = 1_000;
const THREADS: usize = 12;
const TRAFFIC: Duration = Duration::from_millis(200);
const DEADLINES_NS: u64 = 300_000;
const CROWD: usize = 10_000;
const SMALL_STACK: usize = 64 << 10;
const CHURN: u64 = 4_000;
const AT_A_TIME: u64 = 8;

/// Fails where it returns at once.
#[test]
fn a_delay_takes_its_time() {
    let begin = Instant::now();
    System::pause(Pause::Delay(2_000_000));
    assert!(begin.elapsed() >= Duration::from_millis(2));
}

fn assert_idle<L: RawLock>(lock: &L) {
    assert!(!lock.is_locked() && !lock.is_contended(), "{}", L::NAME);
}

/// Holders that lose their CPU inside; fast paths, attempts and waits.
fn excludes<L: RawLock>() {
    let pair = &Pair::<L>::new();
    let start = &Barrier::new(4);
    thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                start.wait();
                for done in 0..SECTIONS {
                    let token = match (done + thread) % 3 {
                        0 => pair.lock.try_lock(),
                        _ => None,
                    };
                    let token = token.unwrap_or_else(|| pair.lock.lock());
                    pair.section(token, || {
                        if done % 50 == thread {
                            thread::sleep(Duration::from_micros(60)); // the others go to sleep
                        }
                    });
                }
            });
        }
    });
    assert_eq!(pair.count(), 4 * SECTIONS);
    assert_idle(&pair.lock);
}

/// Many threads with and without deadlines; then they leave one after another, and no other thread
/// makes up for a lost wake-up.
fn gets_on<L: RawTimedLock>() {
    let _serial = serial();
    // Leaked: if a thread is stuck the test ends before it does.
    let pair: &'static Pair<L> = Box::leak(Box::new(Pair::new()));
    let states: &'static [ThreadState; THREADS] = Box::leak(Box::default());
    let work = move |number: usize| {
        let state = &states[number];
        let begin = Instant::now();
        for iteration in number as u64.. {
            if begin.elapsed() > TRAFFIC {
                break;
            }
            let limited = iteration % 3 == 0;
            state.waits(limited);
            let token = if limited {
                let end = System::now().plus_nanos(iteration * 7919 % DEADLINES_NS);
                let token = pair.lock.lock_until(end);
                let early = token.is_none() && System::now() < end;
                assert!(!early, "{} gave up early", L::NAME);
                token
            } else {
                Some(pair.lock.lock())
            };
            if let Some(token) = token {
                state.is_inside();
                pair.section(token, || {
                    if iteration % 64 == 0 {
                        thread::yield_now();
                    }
                });
            }
            state.is_outside();
        }
    };
    let threads = (0..THREADS).map(|number| thread::spawn(move || work(number)));
    watch::join(L::NAME, states, threads.collect());
    assert!(pair.count() > 0);
    assert_idle(&pair.lock);
}

fn gives_up_in_time<L: RawTimedLock>() {
    let lock = &L::create().unwrap();
    let token = lock.lock();
    thread::scope(|scope| {
        scope.spawn(move || {
            for wait in [0, 1, 20].map(Duration::from_millis) {
                let start = Instant::now();
                assert!(lock.lock_until(System::now().plus(wait)).is_none());
                assert!(start.elapsed() >= wait, "{} gave up early", L::NAME);
                assert!(start.elapsed() < wait + Duration::from_secs(60));
            }
        });
    });
    // SAFETY: the token is of this lock and this thread.
    unsafe { lock.unlock(token) };
    assert_idle(lock);
    let token = lock.lock_until(overlock_core::Instant::from_nanos(0));
    assert!(token.is_some(), "tries once, even after the deadline");
}

/// As many waiters as there may be threads: each is served once.
fn serves_a_crowd<L: RawLock>() {
    let _serial = serial();
    let pair = &Pair::<L>::new();
    let waiting = &AtomicUsize::new(0);
    let token = pair.lock.lock();
    thread::scope(|scope| {
        let mut crowd = 0;
        while crowd < CROWD {
            let waiter = thread::Builder::new().stack_size(SMALL_STACK);
            let waiter = waiter.spawn_scoped(scope, move || {
                waiting.fetch_add(1, Ordering::Relaxed);
                let token = pair.lock.lock();
                pair.section(token, || {});
            });
            if waiter.is_err() {
                break; // the limit of this machine
            }
            crowd += 1;
        }
        assert!(crowd >= 1_000, "{crowd} threads are too few for this test");
        while waiting.load(Ordering::Relaxed) < crowd {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(20));
        assert!(pair.lock.is_contended());
        pair.section(token, || {});
        waiting.store(crowd + 1, Ordering::Relaxed);
    });
    assert_eq!(pair.count(), waiting.load(Ordering::Relaxed) as u64);
    assert_idle(&pair.lock);
}

/// Threads lock once and exit: their nodes become free again.
fn survives_churn<L: RawLock>() {
    let _serial = serial();
    let pair = &Pair::<L>::new();
    for _ in 0..CHURN / AT_A_TIME {
        thread::scope(|scope| {
            for _ in 0..AT_A_TIME {
                scope.spawn(|| {
                    let token = pair.lock.lock();
                    pair.section(token, thread::yield_now);
                });
            }
        });
    }
    assert_eq!(pair.count(), CHURN);
    assert_idle(&pair.lock);
}

macro_rules! tests {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$(
        mod $name {
            #[test]
            fn excludes() {
                super::excludes::<::overlock_family::sleep::$lock<::overlock::System>>();
            }

            #[test]
            fn gets_on() {
                super::gets_on::<::overlock_family::sleep::$lock<::overlock::System>>();
            }

            #[test]
            fn gives_up_in_time() {
                super::gives_up_in_time::<::overlock_family::sleep::$lock<::overlock::System>>();
            }

            #[test]
            fn serves_a_crowd() {
                super::serves_a_crowd::<::overlock_family::sleep::$lock<::overlock::System>>();
            }

            #[test]
            fn survives_churn() {
                super::survives_churn::<::overlock_family::sleep::$lock<::overlock::System>>();
            }
        }
    )*};
}

/// In a module: one of the locks has the name of the crate.
mod each {
    use super::*;

    ::overlock_family::sleep_locks!(tests);
}
