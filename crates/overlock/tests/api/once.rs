//! `Once`, `OnceLock`, `Barrier`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use overlock::{Barrier, Once, OnceLock};

/// Long enough for most threads to go to sleep.
const SHORT: Duration = Duration::from_millis(5);

#[test]
fn initialisation_runs_once() {
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
fn a_panic_does_not_complete_the_initialisation() {
    let cell = OnceLock::new();
    let panics = AssertUnwindSafe(|| cell.get_or_init(|| panic!("as a test")));
    assert!(catch_unwind(panics).is_err());
    assert_eq!(cell.get(), None);
    assert_eq!(cell.get_or_init(|| 1), &1);
}

/// Waiters for a value whose initialisation panics: one of them tries, the others keep waiting.
/// `OnceLock` retries, both to set its value and to wait.
#[test]
fn a_panic_does_not_reach_waiters() {
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
    // First those that do not wait for ever on a failure of this test.
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
fn no_thread_passes_a_barrier_alone() {
    const ROUNDS: u32 = if cfg!(miri) { 2 } else { 20 };
    let barrier = Barrier::new(3);
    let came = AtomicU32::new(0);
    let leaders = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
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
