//! Mistakes with a single class: recursion, sleeps, exits of threads; and actual deadlocks.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use overlock::{Condvar, Mutex, MutexGuard, RwLock, lockdep};

use crate::alone;
use crate::alone::{AGAIN, DEADLOCK, EXIT, ORDER, READ_AGAIN, SLEEP};

static A: Mutex<u32> = Mutex::named("A", 0);
static B: Mutex<u32> = Mutex::named("B", 0);

/// Waits for this many reports; a test that fails should not hang.
fn until_reports(count: usize) {
    let end = Instant::now() + Duration::from_secs(20);
    while lockdep::reports() < count && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_self_deadlock_is_reported_before_the_wait() {
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
fn a_trylock_of_a_held_lock_is_not_reported() {
    let said = alone!(|| {
        let _a = A.lock();
        assert!(A.try_lock().is_none());
        assert!(A.try_lock_for(Duration::from_millis(1)).is_none());
    });
    said.is(&[]);
}

#[test]
fn a_nested_reader_is_reported_even_if_it_succeeds() {
    let said = alone!(|| {
        let lock = RwLock::new(0);
        let _one = lock.read();
        let _other = lock.read();
    });
    said.is(&[READ_AGAIN]);
}

#[test]
fn locks_held_at_a_threads_exit_are_reported() {
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
fn waits_for_conditions_with_another_lock_held_are_reported() {
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
        // The inversion, and the deadlock.
        until_reports(2);
    });
    let mut titles = said.titles();
    titles.sort();
    assert_eq!(titles, [DEADLOCK, ORDER], "{}", said.0);
    let report = said.0.split(DEADLOCK).nth(1).unwrap();
    assert_eq!(report.matches("has waited for").count(), 2, "{report}");
    for lock in ["(A){exclusive}", "(B){exclusive}"] {
        // One thread waits for it, the other holds it.
        assert_eq!(report.matches(lock).count(), 2, "{report}");
    }
}

#[test]
fn contention_is_not_reported_as_a_deadlock() {
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
fn mapped_and_forced_guards_are_released() {
    let said = alone!(|| {
        for _ in 0..2 {
            drop(MutexGuard::map(A.lock(), |number| number));
            MutexGuard::unlock_fair(A.lock());
            MutexGuard::into_token(A.lock());
            // SAFETY: the token, a unit, of the guard above.
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
fn a_child_of_fork_keeps_its_own_records_only() {
    let said = alone!(|| {
        let lock = B.lock();
        // SAFETY: the child only takes its own locks, and exits.
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
    // The child's thread has another id.
    let child = said.0.lines().find_map(|line| line.strip_prefix("child "));
    said.has(&format!("/{} is trying", child.unwrap()));
}
