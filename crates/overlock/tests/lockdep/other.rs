//! Mistakes with one class: recursion, sleep, ends of threads, and deadlocks that happen.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use overlock::{Condvar, Mutex, MutexGuard, RecursiveRwLock, RwLock, lockdep};

use crate::alone;
use crate::alone::{AGAIN, DEADLOCK, EXIT, ORDER, SLEEP};

const READ_AGAIN: &str = "possible deadlock of a reader with itself: a writer may come between";

static A: Mutex<u32> = Mutex::named("A", 0);
static B: Mutex<u32> = Mutex::named("B", 0);

/// Waits for so many reports; a test that fails should not hang.
fn until_reports(count: usize) {
    let end = Instant::now() + Duration::from_secs(20);
    while lockdep::reports() < count && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_thread_that_waits_for_itself_is_reported_before_it_does() {
    let said = alone!(|| {
        std::thread::spawn(|| {
            let _a = A.lock();
            let _again = A.lock();
        });
        until_reports(1);
    });
    assert_eq!(said.titles().first(), Some(&AGAIN), "{}", said.0);
}

#[test]
fn trying_what_one_holds_is_no_mistake() {
    let said = alone!(|| {
        let _a = A.lock();
        assert!(A.try_lock().is_none());
        assert!(A.try_lock_for(Duration::from_millis(1)).is_none());
    });
    said.is(&[]);
}

#[test]
fn a_reader_within_a_reader_is_reported_though_it_gets_through() {
    let said = alone!(|| {
        let lock = RwLock::new(0);
        let _one = lock.read();
        let _other = lock.read();
    });
    said.is(&[READ_AGAIN]);
}

#[test]
fn a_reader_within_a_reader_of_a_recursive_lock_is_no_mistake() {
    let said = alone!(|| {
        let (lock, plain) = (RecursiveRwLock::new(0), RwLock::new(0));
        let _guards = (lock.read(), plain.read());
        let _others = (lock.read(), plain.read_recursive());
        let limit = Duration::from_millis(1);
        let _timed = (
            lock.try_read_for(limit),
            plain.try_read_recursive_for(limit),
        );
    });
    said.is(&[]);
}

#[test]
fn an_upgradable_reader_that_reads_waits_for_no_more_than_a_writer_that_comes_between() {
    let said = alone!(|| {
        let lock = RwLock::new(0);
        let _one = lock.upgradable_read();
        let _passes = lock.read_recursive();
        assert_eq!(lockdep::reports(), 0);
        let _other = lock.read();
    });
    said.is(&[READ_AGAIN]);
}

#[test]
fn what_is_held_at_a_threads_end_is_reported() {
    let said = alone!(|| {
        let thread = std::thread::spawn(|| std::mem::forget(A.lock()));
        thread.join().unwrap();
        let thread = std::thread::spawn(|| drop(B.lock()));
        thread.join().unwrap();
    });
    said.is(&[EXIT]);
    said.has("(A){exclusive}");
}

#[test]
fn a_wait_for_a_condition_with_another_lock_held_is_a_warning_and_so_is_its_order() {
    let said = alone!(|| {
        let condition = Condvar::new();
        let short = Duration::from_millis(1);
        condition.wait_for(&mut A.lock(), short);
        assert_eq!(lockdep::warnings(), 0);
        let mut a = A.lock();
        let _b = B.lock();
        condition.wait_for(&mut a, short);
        assert_eq!((lockdep::warnings(), lockdep::reports()), (1, 1));
    });
    said.is(&[SLEEP, ORDER]);
}

#[test]
fn a_deadlock_is_reported_by_the_thread_that_completes_it() {
    let said = alone!(|| {
        let meet: &'static Barrier = Box::leak(Box::new(Barrier::new(2)));
        for [first, second] in [[&A, &B], [&B, &A]] {
            std::thread::spawn(move || {
                let _first = first.lock();
                meet.wait();
                let _second = second.lock();
            });
        }
        // The order of the two, and the deadlock.
        until_reports(2);
    });
    let mut titles = said.titles();
    titles.sort();
    assert_eq!(titles, [DEADLOCK, ORDER], "{}", said.0);
    let report = said.0.split(DEADLOCK).nth(1).unwrap();
    assert_eq!(report.matches("has waited for").count(), 2, "{report}");
    for lock in ["(A){exclusive}", "(B){exclusive}"] {
        // One thread wants it, the other holds it.
        assert_eq!(report.matches(lock).count(), 2, "{report}");
    }
}

#[test]
fn contention_is_no_deadlock() {
    let said = alone!(|| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let mut a = A.lock();
                        *a += 1;
                        *B.lock() += 1;
                    }
                });
            }
        });
        assert!(!lockdep::check_deadlock());
        assert_eq!((*A.lock(), *B.lock()), (80_000, 80_000));
    });
    said.is(&[]);
}

#[test]
fn a_guard_that_is_mapped_or_ended_by_other_means_is_released() {
    let said = alone!(|| {
        for _ in 0..2 {
            drop(MutexGuard::map(A.lock(), |number| number));
            MutexGuard::unlock_fair(A.lock());
            MutexGuard::into_token(A.lock());
            // SAFETY: the token, which is nothing, of the guard that is gone.
            unsafe { A.force_unlock(()) };
            let mut guard = A.lock();
            MutexGuard::bump(&mut guard);
            drop(guard);
        }
        lockdep::sleeps(0, lockdep::Site::here());
    });
    said.is(&[]);
}

#[test]
fn the_child_of_a_fork_goes_on_alone() {
    let said = alone!(|| {
        let lock = B.lock();
        // SAFETY: the child only takes locks of its own, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            eprintln!("child {}", std::process::id());
            drop(A.lock());
            drop(lock);
            let _a = A.lock();
            drop(B.lock());
            // SAFETY: ends the child.
            unsafe { libc::_exit(lockdep::reports() as i32) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert!(libc::WIFEXITED(status));
        assert_eq!(libc::WEXITSTATUS(status), 1);
    });
    said.is(&[ORDER]);
    // The thread has another id there.
    let child = said.0.lines().find_map(|line| line.strip_prefix("child "));
    said.has(&format!("/{} is trying", child.unwrap()));
}
