//! Each slow acquisition is counted once, as queued or as stolen (or as pending), and fast ones not
//! at all. Alone in its binary: the counters are those of the whole process.
#![cfg(feature = "stat_raw")]

#[path = "common/caller.rs"]
mod caller;
mod common;
#[path = "common/watch.rs"]
mod watch;

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use caller::{Caller, until};
use common::Pair;
use overlock::spin::{Hybrid, RawLock};
use overlock::stat::{self, Event, Latency};
use overlock_core::facts::{HasFacts, Slow};
use watch::{ThreadState, join};

const WAITERS: usize = 4;
const ROUNDS: usize = 6;
/// By then the head of a paravirtual queue sleeps: 2^15 polls, a few ms.
const HEAD_SLEEPS: Duration = Duration::from_millis(20);
/// Duration of the exchange of a lock between two threads.
const TRAFFIC: Duration = Duration::from_millis(100);

/// Has `WAITERS` threads wait; one by one with `HEAD_SLEEPS` after the first, or all at once.
fn round<L: RawLock>(one_by_one: bool) {
    let pair: &'static Pair<L> = Box::leak(Box::new(Pair::new()));
    let states: &'static [ThreadState; WAITERS] = Box::leak(Box::default());
    let callers: &'static [OnceLock<Caller>; WAITERS] = Box::leak(Box::default());
    let wait = |caller| assert!(until(caller, Caller::is_waiting), "{}: no waiter", L::NAME);
    let token = pair.lock.try_lock().unwrap();
    let mut threads = Vec::new();
    for number in 0..WAITERS {
        threads.push(thread::spawn(move || {
            let state = &states[number];
            state.waits(false);
            let _ = callers[number].set(Caller::here());
            let token = pair.lock.lock();
            state.is_inside();
            pair.section(token, || {});
            state.is_outside();
        }));
        if one_by_one {
            wait(&callers[number]);
        }
        if one_by_one && number == 0 {
            thread::sleep(HEAD_SLEEPS);
        }
    }
    callers.iter().for_each(wait);
    pair.section(token, || {});
    join(L::NAME, states, threads);
}

fn slow_ones_are_counted_once<L: RawLock + HasFacts>() {
    stat::reset();
    for number in 0..ROUNDS {
        round::<L>(number % 2 == 0);
    }
    let now = stat::snapshot();
    let all = (ROUNDS * WAITERS) as u64;
    let [queued, stolen, pending] = [
        Event::LockSlowpath,
        Event::PvLockStealing,
        Event::LockPending,
    ]
    .map(|event| now.count(event));
    let counts = format!("{}: {queued} + {stolen} + {pending} of {all}", L::NAME);
    let (sum, absent) = match L::FACTS.slow {
        Slow::Uncounted => (all, queued + stolen + pending),
        Slow::Queued => (queued, stolen + pending),
        Slow::QueuedOrPending => (queued + pending, stolen),
        Slow::QueuedOrStolen => (queued + stolen, pending),
    };
    assert_eq!([sum, absent], [all, 0], "{counts}");
    if L::NAME == Hybrid::NAME {
        assert!(queued > 0 && stolen > 0, "{counts}");
    }
    if L::FACTS.slow == Slow::QueuedOrPending {
        // One for each time that the lock was held with nobody waiting.
        assert_eq!(pending, ROUNDS as u64, "{counts}");
    }
    assert_eq!(now.count(Event::LockNoNode), 0, "{}", L::NAME);
}

/// Two threads that meet in the lock now and then: no acquisition counts twice, and counters that
/// say the same in two ways agree.
fn traffic_adds_up<L: RawLock + HasFacts>() {
    stat::reset();
    let pair: &'static Pair<L> = Box::leak(Box::new(Pair::new()));
    let states: &'static [ThreadState; 2] = Box::leak(Box::default());
    let threads = states.iter().map(|state| {
        thread::spawn(move || {
            let begin = Instant::now();
            while begin.elapsed() < TRAFFIC {
                state.waits(false);
                let token = pair.lock.lock();
                state.is_inside();
                pair.section(token, || {});
                state.is_outside();
            }
        })
    });
    join(L::NAME, states, threads.collect());
    let now = stat::snapshot();
    let count = |event| now.count(event);
    let slow = [
        Event::LockSlowpath,
        Event::PvLockStealing,
        Event::LockPending,
    ];
    let slow: u64 = slow.into_iter().map(count).sum();
    let all: u64 = states.iter().map(ThreadState::done).sum();
    assert!(slow <= all, "{}: {slow} of {all}", L::NAME);
    if L::FACTS.slow == Slow::QueuedOrStolen {
        let latency = |latency| now.histogram(latency).count();
        let sleeps = count(Event::PvWaitHead) + count(Event::PvWaitNode);
        assert_eq!(latency(Latency::TimeBlocked), sleeps, "{}", L::NAME);
        let kicks = count(Event::PvKickUnlock);
        assert_eq!(latency(Latency::PvLatencyKick), kicks, "{}", L::NAME);
        let wakes = count(Event::PvKickWake);
        assert_eq!(latency(Latency::PvLatencyWake), wakes, "{}", L::NAME);
        assert!(wakes <= kicks && wakes <= sleeps, "{}", L::NAME);
    }
}

fn fast_ones_are_not_counted<L: RawLock>() {
    stat::reset();
    let pair = Pair::<L>::new();
    for _ in 0..100 {
        pair.section(pair.lock.lock(), || {});
    }
    let token = pair.lock.lock();
    assert!(pair.lock.try_lock().is_none());
    pair.section(token, || {});
    let now = stat::snapshot();
    let counted = Event::ALL.iter().find(|event| now.count(**event) > 0);
    assert_eq!(counted, None, "{}", L::NAME);
    assert_eq!(pair.count(), 101);
}

macro_rules! all_locks {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {
        fn every_lock() {
            $(
                fast_ones_are_not_counted::<overlock::spin::$lock>();
                slow_ones_are_counted_once::<overlock::spin::$lock>();
                traffic_adds_up::<overlock::spin::$lock>();
            )*
        }
    };
}

overlock_family::spin_locks!(all_locks);

#[test]
#[cfg_attr(miri, ignore = "Miri has no /proc")]
fn slow_acquisitions_are_queued_or_stolen() {
    stat::enable(true);
    every_lock();
}
