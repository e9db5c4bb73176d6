//! Figures of locks by name. One test, since they belong to the whole process.
#![cfg(feature = "stat")]

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use overlock::stat::{self, Figures, Kind};
use overlock::{
    Condvar, FairMutex, Mutex, MutexGuard, RecursiveRwLock, ReentrantMutex, RwLock,
    RwLockUpgradableReadGuard, RwLockWriteGuard, SendMutex, SendRwLock, const_mutex,
};

static POOL: Mutex<u64> = Mutex::named("pool", 0);
static INDEX: RwLock<u64> = RwLock::named("index", 0);

const THREADS: u64 = 4;
const ROUNDS: u64 = 5_000;

fn figures(name: &str, kind: Kind) -> Figures {
    let locks = stat::report().locks;
    let found = locks
        .into_iter()
        .find(|lock| lock.name == name && lock.kind == kind);
    found.unwrap_or_else(|| panic!("{name} is not there:\n{}", stat::report()))
}

#[test]
fn figures_are_those_of_the_acquisitions_and_waits() {
    // docs/use/types.md has the difference.
    assert_eq!(size_of::<Mutex<u64>>() - 2 * size_of::<u64>(), 72);
    *POOL.lock() += 1;
    assert!(stat::report().locks.is_empty(), "counted before it was on");
    *POOL.lock() = 0;
    stat::enable(true);

    // All acquisitions are counted, contended or not.
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    *POOL.lock() += 1;
                    match round % 4 {
                        0 => *INDEX.write() += 1,
                        _ => _ = *INDEX.read(),
                    }
                }
            });
        }
    });
    let pool = figures("pool", Kind::Mutex);
    assert_eq!(
        (pool.acquisitions, *POOL.lock()),
        (THREADS * ROUNDS, THREADS * ROUNDS)
    );
    assert!(pool.waits <= pool.acquisitions && pool.gave_up == 0);
    assert!(pool.p50 <= pool.p90 && pool.p90 <= pool.p99 && pool.p99 <= pool.p999);
    assert!(pool.p999 <= pool.longest_wait && pool.longest_wait <= pool.waited);
    assert!(pool.holds > 0 && pool.longest_hold <= pool.held);
    let writes = figures("index", Kind::Write);
    assert_eq!(
        (writes.acquisitions, *INDEX.read()),
        (THREADS * ROUNDS / 4, THREADS * ROUNDS / 4)
    );
    assert_eq!(
        figures("index", Kind::Read).acquisitions,
        THREADS * ROUNDS * 3 / 4 + 1
    );

    // A wait has its length, and one that gives up is told apart.
    const HELD: Duration = Duration::from_millis(30);
    stat::reset();
    let held = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = POOL.lock();
            held.wait();
            // However late the other one gets a CPU, it tries in vain, and then waits for so long.
            held.wait();
            while !POOL.is_contended() {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(HELD);
            drop(guard);
        });
        held.wait();
        let tries = [
            POOL.try_lock().is_none(),
            POOL.try_lock_for(Duration::from_millis(1)).is_none(),
        ];
        held.wait();
        *POOL.lock() += 1;
        assert_eq!(tries, [true; 2]);
    });
    let pool = figures("pool", Kind::Mutex);
    assert_eq!((pool.acquisitions, pool.waits, pool.gave_up), (2, 2, 1));
    assert!(
        pool.longest_wait >= HELD / 2 && pool.p99 == pool.longest_wait,
        "{pool:?}"
    );
    // The one that gave up may have been the longer one, where it got no CPU.
    assert!(pool.p50 >= Duration::from_millis(1), "{pool:?}");

    // A release and an acquisition in one call are no acquisition of their own.
    stat::reset();
    let changed = Condvar::new();
    thread::scope(|scope| {
        let mut guard = POOL.lock();
        *guard = 0;
        scope.spawn(|| {
            *POOL.lock() = 1;
            changed.notify_one();
        });
        changed.wait_while(&mut guard, |value| *value == 0);
        MutexGuard::bump(&mut guard);
        MutexGuard::unlocked(&mut guard, || ());
        assert!(MutexGuard::mutex(&guard).is_locked());
        let upgraded = RwLockUpgradableReadGuard::upgrade(INDEX.upgradable_read());
        drop(RwLockWriteGuard::downgrade(upgraded));
        assert!(!INDEX.is_locked());
    });
    assert_eq!(figures("pool", Kind::Mutex).acquisitions, 2);
    assert_eq!(figures("index", Kind::Write).acquisitions, 1);
    assert_eq!(figures("index", Kind::Read).acquisitions, 0);

    // A lock without a name is called by its line, and a lock that is gone stays known.
    stat::reset();
    for _ in 0..3 {
        let (other, line) = (Mutex::new(0), line!());
        *other.lock() += 1;
        *other.lock() += 1;
        let name = format!("of {}:{line}", file!());
        assert_eq!(figures(&name, Kind::Mutex).acquisitions % 2, 0);
    }
    let report = stat::report().to_string();
    let line = report.lines().find(|line| line.starts_with("of "));
    let words: Vec<_> = line.unwrap_or(&report).split_whitespace().collect();
    assert_eq!(words[2..5], ["mutex", "6", "0"], "{report}");

    // So is one that is made by a name of parking_lot 0.12.
    let (old, line) = (const_mutex(0), line!());
    *old.lock() += 1;
    let name = format!("of {}:{line}", file!());
    assert_eq!(figures(&name, Kind::Mutex).acquisitions, 1);

    // The other types have names too. An acquisition that is sent ends where it is released.
    static FAIR: FairMutex<u64> = FairMutex::named("fair", 0);
    static NESTED: ReentrantMutex<u64> = ReentrantMutex::named("nested", 0);
    static AGAIN: RecursiveRwLock<u64> = RecursiveRwLock::named("again", 0);
    static SENT: SendMutex<u64> = SendMutex::named("sent", 0);
    static SHARED: SendRwLock<u64> = SendRwLock::named("shared", 0);
    stat::reset();
    *FAIR.lock() += 1;
    assert_eq!(*NESTED.lock(), *NESTED.lock());
    assert_eq!(*AGAIN.read(), *AGAIN.read());
    drop(SHARED.write());
    drop(SHARED.read());
    let first = SENT.lock();
    // An acquisition after a wait is recorded. Here it ends.
    drop(thread::scope(|scope| {
        let waiter = scope.spawn(|| SENT.lock());
        while !SENT.is_contended() {
            thread::sleep(Duration::from_millis(1));
        }
        drop(first);
        waiter.join().unwrap()
    }));
    assert_ne!(figures("sent", Kind::Mutex).holds, 0);
    for (name, kind, count) in [
        ("fair", Kind::Mutex, 1),
        ("nested", Kind::Mutex, 1),
        ("again", Kind::Read, 2),
        ("sent", Kind::Mutex, 2),
        ("shared", Kind::Write, 1),
        ("shared", Kind::Read, 1),
    ] {
        assert_eq!(figures(name, kind).acquisitions, count, "{name}");
    }

    // Off again. A guard that was acquired before is none of another's.
    stat::reset();
    let guard = POOL.lock();
    stat::enable(false);
    drop(guard);
    *POOL.lock() += 1;
    stat::enable(true);
    *POOL.lock() += 1;
    let pool = figures("pool", Kind::Mutex);
    assert_eq!(pool.acquisitions, 2);
    stat::enable(false);
}
