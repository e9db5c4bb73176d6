//! `Once`, `OnceLock`, `Barrier`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use overlock::{Barrier, Once, OnceLock};

/// Long enough for threads to go to sleep, mostly.
const SHORT: Duration = Duration::from_millis(5);

#[test]
fn what_is_done_once() {
    static ONCE: Once = Once::new();
    let times = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                ONCE.call_once(|| {
                    thread::yield_now();
                    times.fetch_add(1, Relaxed);
                });
                assert_eq!(times.load(Relaxed), 1);
            });
        }
    });
    assert!(ONCE.is_completed());
}

/// `OnceLock` sets its value by `call_once_force`: with `call_once` the second attempt panics.
#[test]
fn a_panic_does_not_count() {
    let cell = OnceLock::new();
    let panics = AssertUnwindSafe(|| cell.get_or_init(|| panic!("as a test")));
    assert!(catch_unwind(panics).is_err());
    assert_eq!(cell.get(), None);
    assert_eq!(cell.get_or_init(|| 1), &1);
}

/// Threads wait for a value that is not set in the end: one of them tries, the others wait on.
/// `OnceLock` forces, to set its value and to wait.
#[test]
fn a_panic_is_not_heard_of_by_those_that_wait() {
    static CELL: OnceLock<u32> = OnceLock::new();
    static RUNNING: AtomicU32 = AtomicU32::new(0);
    let fails = thread::spawn(|| {
        CELL.get_or_init(|| {
            RUNNING.store(1, Relaxed);
            thread::sleep(SHORT);
            panic!("as a test")
        });
    });
    while RUNNING.load(Relaxed) == 0 {
        thread::yield_now();
    }
    let waits = [(); 2].map(|()| thread::spawn(|| CELL.wait()));
    let tries = [(); 2].map(|()| thread::spawn(|| CELL.get_or_init(|| 1)));
    assert!(fails.join().is_err());
    // First those that do not wait for ever if this goes wrong.
    for value in tries.into_iter().chain(waits) {
        assert_eq!(value.join().unwrap(), &1);
    }
}

/// The `drop` of `OnceLock`, and the reset in `take`.
#[test]
fn a_value_is_set_once_and_dropped_once() {
    let value = Rc::new(1);
    let mut cell = OnceLock::new();
    assert_eq!(format!("{cell:?}"), "OnceLock(<uninit>)");
    assert!(cell.set(Rc::clone(&value)).is_ok());
    assert!(cell.set(Rc::new(2)).is_err_and(|value| *value == 2));
    assert_eq!(cell.get(), Some(&value));
    assert_eq!(cell.clone(), cell);
    assert_eq!(format!("{cell:?}"), "OnceLock(1)");
    assert_eq!(Rc::strong_count(&value), 2);
    drop(cell.take());
    assert_eq!(Rc::strong_count(&value), 1);
    assert_eq!(cell, OnceLock::default());
    cell = OnceLock::from(Rc::clone(&value));
    *cell.get_mut().unwrap() = Rc::clone(&value);
    assert_eq!(Rc::strong_count(&value), 2);
    assert_eq!(cell.into_inner(), Some(Rc::clone(&value)));
    drop(OnceLock::from(Rc::clone(&value)));
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn nobody_passes_a_barrier_alone() {
    const ROUNDS: u32 = if cfg!(miri) { 2 } else { 20 };
    let threads: usize = 3; // as in std
    let barrier = Barrier::new(threads);
    let came = AtomicU32::new(0);
    let leaders = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    came.fetch_add(1, Relaxed);
                    leaders.fetch_add(barrier.wait().is_leader().into(), Relaxed);
                    assert!(came.load(Relaxed) >= 3 * round);
                }
            });
        }
    });
    assert_eq!(leaders.into_inner(), ROUNDS);
    assert_eq!(format!("{barrier:?}"), "Barrier { .. }");
}

/// Fails where the upper half of the number is lost: then the barrier is for none.
#[test]
fn a_barrier_for_more_threads_than_there_can_be_lets_nobody_pass() {
    let more = 1_usize.checked_shl(32).unwrap_or(usize::MAX);
    let barrier = &*Box::leak(Box::new(Barrier::new(more)));
    let waiter = thread::spawn(|| barrier.wait());
    thread::sleep(Duration::from_millis(20));
    assert!(!waiter.is_finished());
}
