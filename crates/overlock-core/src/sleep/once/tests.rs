use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU8;

use super::OnceState::{Done, InProgress, New, Poisoned};
use super::*;
use crate::platform::FutexPlatform;
use crate::toy::stage::{Actor, actor};
use crate::toy::{Point, SLOTS, Toy, as_thread, at, left};

type OnceRef = &'static Once<Toy>;

fn leak() -> OnceRef {
    Box::leak(Box::new(Once::new()))
}

/// A `Once` with a run in progress, which the test ends: it drops a [`runner`].
fn leak_running() -> OnceRef {
    Box::leak(Box::new(Once::with_state(AtomicU8::new(InProgress as u8))))
}

fn runner(once: OnceRef, end: OnceState) -> Runner<'static, Toy> {
    Runner {
        once,
        found: New,
        end,
    }
}

/// Stops inside the work, so that the script can go on.
fn work() {
    Toy::light_barrier();
}

fn caller(number: usize, once: OnceRef) -> Actor {
    actor(number, move || once.call_once(work))
}

/// A forced caller that must find this state.
fn forcer(number: usize, once: OnceRef, found: OnceState) -> Actor {
    actor(number, move || {
        once.call_once_force(|state| {
            assert_eq!(state, found);
            work();
        })
    })
}

/// A caller that must find it done.
fn idler(number: usize, once: OnceRef) -> Actor {
    actor(number, move || {
        once.call_once(|| unreachable!("done twice"))
    })
}

fn panics(f: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
}

/// A caller that panics in its work.
fn failer(number: usize, once: OnceRef) -> Actor {
    actor(number, move || {
        panics(|| {
            once.call_once_force(|_| {
                work();
                resume_unwind(Box::new("in vain"));
            });
        });
    })
}

#[test]
fn callers_sleep_while_a_run_is_in_progress() {
    let once = leak();
    assert_eq!(once.state(), New);
    let runner = caller(1, once);
    let [two, three] = [2, 3].map(|number| idler(number, once));
    let four = actor(4, || once.call_once_force(|_| unreachable!("done twice")));
    runner.to(Point::Light);
    two.sleep();
    three.sleep();
    four.sleep();
    assert!(!once.is_done());
    assert_eq!(once.state(), InProgress);
    runner.end();
    assert!(once.is_done());
    assert_eq!(once.state(), Done);
    two.end();
    three.end();
    four.end();
    idler(5, once).end();
    once.call_once_force(|_| unreachable!("done twice"));
    once.wait();
}

/// Fails where `become_runner` ignores `force`, and where a runner's `end` begins as "new".
#[test]
fn only_forced_calls_run_after_a_panic() {
    let once = leak();
    failer(1, once).end();
    assert_eq!(once.state(), Poisoned);
    assert!(!once.is_done());
    panics(|| once.call_once(|| ()));
    panics(|| once.wait());
    let second = failer(2, once);
    second.to(Point::Light);
    assert_eq!(once.state(), InProgress);
    second.end();
    assert_eq!(once.state(), Poisoned);
    forcer(3, once, Poisoned).end();
    assert_eq!(once.state(), Done);
    idler(4, once).end();
    forcer(5, leak(), New).end();
}

/// Fails ("lost wake-up") where a runner that panics does not wake all (its `take_all`).
#[test]
fn sleepers_learn_of_a_panic() {
    let once = leak();
    let first = failer(1, once);
    first.to(Point::Light);
    let waits = actor(2, || panics(|| once.wait()));
    let calls = actor(3, || panics(|| once.call_once(|| ())));
    let second = forcer(4, once, Poisoned);
    let third = actor(5, || once.call_once_force(|_| unreachable!("done twice")));
    let stays = actor(6, || once.wait_force());
    for sleeper in [&waits, &calls, &second, &third, &stays] {
        sleeper.sleep();
    }
    first.end();
    waits.end();
    calls.end();
    second.to(Point::Light);
    third.sleep();
    stays.sleep();
    second.end();
    third.end();
    stays.end();
}

/// Two forced callers are woken, and a newcomer is quicker. Fails where `sleep_while` does not
/// check again.
#[test]
fn a_newcomer_may_be_quicker_than_a_woken_caller() {
    let once = leak_running();
    let sleeper = actor(1, || once.call_once_force(|_| unreachable!("done twice")));
    sleeper.sleep();
    drop(runner(once, Poisoned));
    let newcomer = forcer(2, once, Poisoned);
    newcomer.to(Point::Light);
    sleeper.sleep();
    newcomer.end();
    sleeper.end();
}

/// Fails where `wait_slow` does not sleep on "new", or returns while a run is in progress.
#[test]
fn waits_begin_no_run() {
    let once = leak();
    let [one, two] = [actor(1, || once.wait()), actor(2, || once.wait_force())];
    one.sleep();
    two.sleep();
    assert_eq!(once.state(), New);
    let runner = caller(3, once);
    runner.to(Point::Light);
    let four = actor(4, || once.wait());
    four.sleep();
    runner.end();
    one.end();
    two.end();
    four.end();
}

/// Fails where `wait_slow` returns on "poisoned" although `force` is set.
#[test]
fn a_forced_wait_sleeps_on_a_poisoned_state() {
    let once = leak();
    failer(1, once).end();
    let waits = actor(2, || once.wait_force());
    waits.sleep();
    forcer(3, once, Poisoned).end();
    waits.end();
}

#[test]
fn a_thread_without_a_node_backs_off_and_checks_again() {
    let once = leak_running();
    at(Point::Halt, move || drop(runner(once, Done)));
    as_thread(SLOTS, || once.call_once(|| unreachable!("done twice")));
    assert_eq!(left(), 0);
}

#[test]
fn it_can_begin_done() {
    let once = Once::<Toy>::with_state(AtomicU8::new(Done as u8));
    once.call_once(|| unreachable!("done before"));
    once.wait();
    assert!(once.is_done());
}

#[test]
fn states_are_distinct() {
    for state in [New, Poisoned, InProgress, Done] {
        assert_eq!(OnceState::of(state as u8), state);
        assert_eq!(
            (state.is_poisoned(), state.poisoned()),
            (state == Poisoned, state == Poisoned)
        );
        assert_eq!(
            (state.is_completed(), state.done()),
            (state == Done, state == Done)
        );
    }
}

#[test]
fn eight_bytes() {
    assert_eq!(size_of::<Once<Toy>>(), 8);
}
