//! `deadlock`: who waits for whom, by the types. Threads of a deadlock end with their process.

use std::sync::Barrier;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use overlock::deadlock::{self, DeadlockedThread, check_deadlock};
use overlock::lockdep::{self, ClassId, How, Site};
use overlock::{
    Condvar, FairMutex, Mutex, RecursiveRwLock, ReentrantMutex, RwLock, RwLockUpgradableReadGuard,
    SendMutex,
};

use crate::alone;
use crate::alone::DEADLOCK;

/// Waits until a condition holds; a test that fails should not hang.
#[track_caller]
fn until(mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < end, "in vain");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The deadlock that is about to happen.
#[track_caller]
fn deadlock() -> Vec<DeadlockedThread> {
    let mut found = Vec::new();
    until(|| {
        found = check_deadlock();
        !found.is_empty()
    });
    assert_eq!(found.len(), 1);
    assert!(check_deadlock().is_empty(), "returned again");
    found.remove(0)
}

fn spawn(f: impl FnOnce() + Send + 'static) -> ThreadId {
    thread::spawn(f).thread().id()
}

static A: Mutex<u32> = Mutex::new(0);
static B: FairMutex<u32> = FairMutex::new(0);
static DATA: RwLock<u32> = RwLock::new(0);
static BOTH: Barrier = Barrier::new(2);

#[test]
fn the_threads_of_a_deadlock_and_their_places_are_returned_once() {
    alone!(|| {
        assert!(check_deadlock().is_empty());
        let one = spawn(|| {
            let _a = A.lock();
            BOTH.wait();
            let _b = B.lock();
        });
        let other = spawn(|| {
            let _b = B.lock();
            BOTH.wait();
            let _a = A.lock();
        });
        let threads = deadlock();
        let mut ids: Vec<_> = threads.iter().map(DeadlockedThread::thread_id).collect();
        ids.sort_by_key(|id| *id == other);
        assert_eq!(ids, [one, other]);
        for thread in &threads {
            let frames = format!("{:?}", thread.backtrace());
            assert!(frames.contains("lock"), "{frames}");
        }
        // A thread that waits for them is none of them.
        spawn(|| drop(A.lock()));
        until(|| A.is_contended());
        assert!(check_deadlock().is_empty());
    });
}

#[test]
fn so_is_a_thread_that_waits_for_itself() {
    alone!(|| {
        let one = spawn(|| {
            let _a = A.lock();
            let _again = A.lock();
        });
        assert_eq!(deadlock()[0].thread_id(), one);
        spawn(|| {
            let _reader = DATA.read();
            let _writer = DATA.write();
        });
        assert_eq!(deadlock().len(), 1);
    });
}

#[test]
fn a_reader_waits_for_a_writer_that_came_before() {
    static HELD: Barrier = Barrier::new(2);
    alone!(|| {
        spawn(|| {
            let _reader = DATA.read();
            HELD.wait();
            HELD.wait();
            let _a = A.lock();
        });
        HELD.wait();
        spawn(|| drop(DATA.write()));
        until(|| DATA.is_contended());
        spawn(|| {
            let _a = A.lock();
            HELD.wait();
            let _reader = DATA.read();
        });
        assert_eq!(deadlock().len(), 3);
    });
}

#[test]
fn an_upgradable_reader_does_not_wait_for_readers() {
    static HELD: Barrier = Barrier::new(2);
    let said = alone!(|| {
        let upgradable = DATA.upgradable_read();
        let waiter = thread::spawn(|| {
            let _a = A.lock();
            let _other = DATA.upgradable_read();
        });
        until(|| DATA.is_contended());
        let reader = thread::spawn(|| {
            let _reader = DATA.read();
            HELD.wait();
            let _a = A.lock();
        });
        HELD.wait();
        until(|| A.is_contended());
        assert!(check_deadlock().is_empty());
        drop(upgradable);
        waiter.join().unwrap();
        reader.join().unwrap();
    });
    assert!(!said.titles().contains(&DEADLOCK), "{}", said.0);
}

#[test]
fn an_upgrade_waits_for_readers_that_wait_for_it() {
    alone!(|| {
        spawn(|| {
            let reader = DATA.upgradable_read();
            BOTH.wait();
            // The other thread waits first.
            until(|| DATA.is_contended());
            let _writer = RwLockUpgradableReadGuard::upgrade(reader);
        });
        spawn(|| {
            let _reader = DATA.read();
            BOTH.wait();
            let _upgradable = DATA.upgradable_read();
        });
        assert_eq!(deadlock().len(), 2);
    });
}

#[test]
fn an_upgraded_guard_keeps_readers_out_until_it_is_downgraded() {
    alone!(|| {
        let writer = RwLockUpgradableReadGuard::upgrade(DATA.upgradable_read());
        let upgradable = overlock::RwLockWriteGuard::downgrade_to_upgradable(writer);
        let writer = RwLockUpgradableReadGuard::upgrade(upgradable);
        let a = thread::spawn(|| {
            let _a = A.lock();
            BOTH.wait();
            let _reader = DATA.read();
        });
        BOTH.wait();
        until(|| DATA.is_contended());
        // It would wait for the reader, which waits for the writer.
        assert!(A.try_lock_for(Duration::from_millis(1)).is_none());
        assert!(check_deadlock().is_empty());
        drop(overlock::RwLockWriteGuard::downgrade_to_upgradable(writer));
        a.join().unwrap();
    });
}

/// A thread that holds `B` comes back from a wait for a condition to `A`, whose owner waits for
/// `B`. Before it `others` have waited for the condition.
fn comes_back(others: u32, wake: fn(&Condvar)) {
    static CHANGED: Condvar = Condvar::new();
    for waiting in 1..=others {
        spawn(|| {
            let mut a = A.lock();
            *a += 1;
            CHANGED.wait(&mut a);
        });
        until(|| *A.lock() == waiting);
    }
    let waiter = spawn(|| {
        let _b = B.lock();
        let mut a = A.lock();
        *a += 1;
        CHANGED.wait(&mut a);
    });
    until(|| *A.lock() > others);
    let owner = spawn(move || {
        let _a = A.lock();
        wake(&CHANGED);
        let _b = B.lock();
    });
    let threads = deadlock();
    let ids = || threads.iter().map(DeadlockedThread::thread_id);
    assert_eq!(threads.len(), 2);
    assert!(ids().any(|id| id == waiter) && ids().any(|id| id == owner));
}

#[test]
fn a_thread_that_comes_back_from_a_condition_waits_for_its_lock() {
    alone!(|| comes_back(0, |changed| assert!(changed.notify_one())));
}

/// Fails where those that are notified together wait for each other's turn unseen.
#[test]
fn so_do_all_that_come_back_together() {
    alone!(|| comes_back(4, |changed| assert_eq!(changed.notify_all(), 5)));
}

#[test]
fn a_limit_of_the_wait_for_the_condition_is_none_of_the_wait_for_its_lock() {
    static CHANGED: Condvar = Condvar::new();
    alone!(|| {
        spawn(|| {
            let _b = B.lock();
            let mut a = A.lock();
            *a += 1;
            while CHANGED
                .wait_for(&mut a, Duration::from_millis(1))
                .timed_out()
            {}
        });
        until(|| *A.lock() == 1);
        spawn(|| {
            let _a = A.lock();
            let _b = B.lock();
        });
        assert_eq!(deadlock().len(), 2);
    });
}

#[test]
fn a_wait_that_ends_by_itself_is_none() {
    alone!(|| {
        thread::scope(|scope| {
            let _a = A.lock();
            scope.spawn(|| {
                let _b = B.lock();
                BOTH.wait();
                let _a = A.lock();
            });
            BOTH.wait();
            until(|| A.is_contended());
            assert!(B.try_lock_for(Duration::from_millis(20)).is_none());
            assert!(check_deadlock().is_empty());
        });
    });
}

#[test]
fn locking_what_one_holds_is_allowed_where_the_type_allows_it() {
    let said = alone!(|| {
        static AGAIN: RecursiveRwLock<u32> = RecursiveRwLock::new(0);
        static NESTED: ReentrantMutex<u32> = ReentrantMutex::new(0);
        let outer = AGAIN.read();
        let writer = thread::spawn(|| drop(AGAIN.write()));
        until(|| AGAIN.is_contended());
        drop(AGAIN.read());
        let _twice = (NESTED.lock(), NESTED.lock());
        assert!(check_deadlock().is_empty());
        drop(outer);
        writer.join().unwrap();
    });
    said.is(&[]);
}

#[test]
fn a_guard_that_is_sent_is_held_by_no_thread() {
    let said = alone!(|| {
        static SENT: SendMutex<u32> = SendMutex::new(0);
        let (give, take) = std::sync::mpsc::channel();
        thread::spawn(move || give.send(SENT.lock()).unwrap())
            .join()
            .unwrap();
        let guard = take.recv().unwrap();
        drop(guard);
        assert_eq!(*SENT.lock(), 0);
    });
    said.is(&[]);
}

#[test]
fn locks_of_another_kind_take_part() {
    const OURS: usize = 0x1000;
    alone!(|| {
        let (none, how, site) = (ClassId::NONE, How::EXCLUSIVE, Site::NONE);
        lockdep::acquired(OURS, none, how, site);
        spawn(move || {
            let _a = A.lock();
            deadlock::begin_wait(OURS, none, how, site);
            BOTH.wait();
            loop {
                thread::park();
            }
        });
        BOTH.wait();
        let check = thread::spawn(deadlock);
        let main = thread::current().id();
        let waits = thread::spawn(move || {
            let threads = check.join().unwrap();
            assert!(threads.iter().any(|thread| thread.thread_id() == main));
            std::process::exit(0);
        });
        drop(waits);
        let _a = A.lock();
    });
}
