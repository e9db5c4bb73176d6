//! Interruptions by the caller, and the stop.

use std::rc::Rc;

use super::*;
use crate::trace::What;

use overlock_core::stat::Event as LockEvent;

/// Runs bodies until the caller interrupts at its `checks`th check; they end then if `ends`.
/// Returns when the last one ended, and the number of bodies whose stack or result still exists.
fn interrupted(checks: u32, vcpus: usize, step: Time, ends: bool) -> (Time, usize) {
    let (machine, calls, last) = (machine(1, 1), Cell::new(0), Cell::new(Time::ZERO));
    let shared = Rc::new(());
    let mut setup = setup(&machine, &HOST, vcpus);
    setup.stop_after = Time::ms(100_000);
    let body = |_| {
        let kept = Rc::clone(&shared);
        while !(stopped() && ends) {
            work(step);
        }
        last.set(now());
        kept
    };
    let go_on = || {
        calls.set(calls.get() + 1);
        calls.get() < checks
    };
    let stuck = run(&setup, body, go_on).expect_err("interrupted");
    assert_eq!((stuck, calls.get()), (Stuck::Interrupted, checks));
    (last.get(), Rc::strong_count(&shared) - 1)
}

/// The clock advances without events if only one vCPU runs. Fails where `pass` ignores
/// `next_check`.
#[test]
fn a_run_with_few_events_can_be_interrupted() {
    let (end, left) = interrupted(10, 1, Time::us(10), true);
    assert!(end >= Time::ms(10) && end < Time::ms(11), "{end}");
    assert_eq!(left, 0);
}

/// All bodies end, whichever vCPU has the CPU at the interruption; no values remain on their
/// stacks. Fails where the simulation is dropped at once.
#[test]
fn interrupted_bodies_end() {
    let (end, left) = interrupted(20, 3, Time::us(7), true);
    assert!(end >= Time::ms(20) && end < Time::ms(50), "{end}");
    assert_eq!(left, 0);
}

/// The simulation ends although the bodies do not.
#[test]
fn bodies_that_do_not_end_are_abandoned() {
    let (end, left) = interrupted(3, 2, Time::us(50), false);
    assert_eq!((end, left), (Time::ZERO, 2));
}

/// Fails where a vCPU may be told to stop in a simulation that was not stopped.
#[test]
fn what_is_told_to_stop_has_been_stopped() {
    let machine = machine(1, 1);
    for stop_after in [100_000, 101_100, 101_102, 101_103, 200_000].map(Time::ns) {
        let mut setup = setup(&machine, &HOST, 1);
        setup.stop_after = stop_after;
        let body = |_| {
            work(Time::us(100));
            stopped()
        };
        let outcome = run(&setup, body, || true).unwrap();
        assert_eq!(outcome.results, [outcome.stopped], "{stop_after}");
    }
}

/// Fails where events after the stop count.
#[test]
fn lock_events_end_at_the_stop() {
    let machine = machine(1, 1);
    let mut setup = setup(&machine, &HOST, 1);
    setup.stop_after = Time::us(35);
    let body = |_| {
        for _ in 0..9 {
            work(Time::us(10));
            lock_event(LockEvent::LockPending, 1);
        }
    };
    let outcome = run(&setup, body, || true).unwrap();
    assert_eq!(outcome.lock_events.count(LockEvent::LockPending), 3);
}

/// Two vCPUs share a CPU, and work three times as long as they may. Fails where the figures go on
/// after the stop.
#[test]
fn figures_end_at_the_stop() {
    let machine = machine(1, 1);
    let mut setup = setup(&machine, &HOST, 2);
    (setup.stop_after, setup.trace) = (Time::ms(10), true);
    let all = run(&setup, |_| work(Time::ms(4)), || true).unwrap();
    assert!(!all.stopped);
    let outcome = run(&setup, |_| work(Time::ms(15)), || true).unwrap();
    assert_eq!((outcome.elapsed, outcome.stopped), (Time::ms(10), true));
    let account = outcome.account();
    assert_eq!(account.total(), Time::ms(20));
    assert_eq!(account.on_cpu(), Time::ms(10));
    let lost = outcome
        .trace
        .iter()
        .filter(|mark| mark.what == What::Preempted);
    let in_time = lost.clone().filter(|mark| mark.at <= outcome.elapsed);
    assert_eq!(outcome.counts.preemptions, in_time.count() as u64);
    assert!(outcome.counts.preemptions < lost.count() as u64);
}
