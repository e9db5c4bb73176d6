//! The mutex's counters count what happened. Alone in its binary, and one test: the counters are
//! those of the whole process.
#![cfg(all(feature = "stat_raw", not(miri)))]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use overlock::Linux;
use overlock::sleep::{KernelMutex as Mutex, RawFairLock, RawLock, RawTimedLock};
use overlock::stat::{self, Event};
use overlock_core::Platform;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const GIVE_UP: Duration = Duration::from_secs(120);

fn count(event: Event) -> u64 {
    stat::snapshot().count(event)
}

/// Waits for it.
fn happens(what: &str, mut happened: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < GIVE_UP, "{what}");
    }
}

/// The first two CPUs that this process may use.
fn two_cpus() -> Option<[CpuSet; 2]> {
    let all = sched_getaffinity(None).unwrap();
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu));
    let mut next = || {
        let mut one = CpuSet::new();
        one.set(cpus.next()?);
        Some(one)
    };
    Some([next()?, next()?])
}

/// With a deadline, so that it ends even if the other thread has failed.
fn lock_once(lock: &Mutex, limit: Duration) {
    if lock.lock_until(Linux::now().plus(limit)).is_some() {
        // SAFETY: this thread has locked it.
        unsafe { lock.unlock(()) };
    }
}

#[test]
fn what_happens_is_counted() {
    stat::enable(true);
    let lock = &Mutex::new();
    lock_once(lock, GIVE_UP);
    let counted = Event::ALL.iter().find(|event| count(**event) > 0);
    assert_eq!(counted, None, "the fast paths count nothing");

    lock.lock();
    thread::scope(|scope| {
        scope.spawn(|| lock_once(lock, 2 * GIVE_UP));
        happens("sleeps", || count(Event::MutexSleep) > 0);
        // SAFETY: this thread has locked it.
        unsafe { lock.unlock_fair(()) };
    });
    for event in [Event::MutexOptFail, Event::MutexSleep, Event::MutexHandoff] {
        assert_eq!(count(event), 1, "{}", event.name());
    }
    assert_eq!(count(Event::PvKickUnlock), 1);
    assert_eq!(count(Event::MutexOptLock), 0);

    let Some([here, there]) = two_cpus() else {
        return; // nobody spins while the owner runs
    };
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(move || {
            sched_setaffinity(None, &there).unwrap();
            while !stop.load(Ordering::Relaxed) {
                lock_once(lock, Duration::from_millis(100));
            }
        });
        let _stop = OnDrop(stop);
        sched_setaffinity(None, &here).unwrap();
        happens("spins", || {
            lock.lock();
            happens("comes", || lock.is_contended());
            // SAFETY: this thread has locked it.
            unsafe { lock.unlock(()) };
            count(Event::MutexOptLock) > 0
        });
    });
}

/// Sets what it refers to.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
