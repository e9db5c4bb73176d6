//! Interruptions by the caller, and the stop.

use std::rc::Rc;

use super::*;
use overlock_core::stat::Event as LockEvent;

/// The caller interrupts at its `checks`th check, one for each millisecond, though the clock
/// advances without events if only one vCPU runs. Bodies that look end then, whichever has the CPU,
/// and leave no values on their stacks; others are abandoned. Fails where `pass` ignores
/// `next_check`, or where the simulation is dropped at once.
#[test]
fn a_simulation_can_be_interrupted() {
    for (checks, vcpus, step, ends) in [(10, 1, 10, true), (20, 3, 7, true), (3, 2, 50, false)] {
        let (machine, host, calls, last) = (machine(1, 1), host(), Cell::new(0), Cell::new(0));
        let shared = Rc::new(());
        let mut setup = setup(&machine, &host, vcpus);
        setup.stop_after = Time::ms(100_000);
        let body = |_| {
            let kept = Rc::clone(&shared);
            while !(stopped() && ends) {
                work(Time::us(step));
            }
            last.set(now().as_ns() / 1_000_000);
            kept
        };
        let go_on = || {
            calls.set(calls.get() + 1);
            calls.get() < checks
        };
        let stuck = run(&setup, body, go_on).expect_err("interrupted");
        assert_eq!((stuck, calls.get()), (Stuck::Interrupted, checks));
        let most = checks + 30 * u64::from(vcpus > 1);
        assert!(!ends || (checks..=most).contains(&last.get()), "{last:?}");
        let left = if ends { 0 } else { vcpus };
        assert_eq!(Rc::strong_count(&shared) - 1, left);
    }
}

/// Fails where a vCPU may be told to stop in a simulation that was not stopped, or where the locks'
/// events after the stop count: one each 10,000 ns, from 11,100 on.
#[test]
fn what_is_told_to_stop_has_been_stopped() {
    let (machine, host) = (machine(1, 1), host());
    for (stop_after, events) in [
        (35_000, 3),
        (100_000, 9),
        (101_100, 9),
        (101_102, 10),
        (101_103, 10),
        (200_000, 10),
    ] {
        let mut setup = setup(&machine, &host, 1);
        setup.stop_after = Time::ns(stop_after);
        let body = |_| {
            for _ in 0..10 {
                work(Time::us(10));
                lock_event(LockEvent::LockPending, 1);
            }
            stopped()
        };
        let outcome = run(&setup, body, || true).unwrap();
        assert_eq!(outcome.results, [outcome.stopped], "{stop_after}");
        assert_eq!(outcome.lock_events.count(LockEvent::LockPending), events);
    }
}

/// Two vCPUs share a CPU, and work three times as long as they may. Fails where the figures go on
/// after the stop.
#[test]
fn figures_end_at_the_stop() {
    let (machine, host) = (machine(1, 1), host());
    let mut setup = setup(&machine, &host, 2);
    setup.stop_after = Time::ms(10);
    assert!(!simulate(&machine, &host, 2, |_| work(Time::ms(4))).stopped);
    let outcome = run(&setup, |_| work(Time::ms(15)), || true).unwrap();
    assert_eq!((outcome.elapsed, outcome.stopped), (Time::ms(10), true));
    assert_eq!(outcome.account().total(), Time::ms(20));
    assert_eq!(outcome.account().on_cpu(), Time::ms(10));
    let lost = |until| {
        marks(&outcome, |mark| {
            mark.what == What::Preempted && mark.at <= until
        })
    };
    assert_eq!(outcome.counts.preemptions, lost(outcome.elapsed));
    assert!(outcome.counts.preemptions < lost(Time::MAX));
}

/// Two vCPUs share a CPU in slices of 4 ms: both have had it twice after 12. Five windows of 4 ms
/// have 400 operations of 10 us each then. If every second one has none, they are merged in pairs.
/// Fails where the warm-up counts or ends early, or where windows that do not agree are the last.
#[test]
fn figures_are_of_the_time_after_the_warm_up() {
    let (machine, host) = (machine(1, 1), host());
    let mut setup = setup(&machine, &host, 2);
    setup.stop_after = Time::ms(20);
    setup.windows = Some(Windows {
        warm_up: Time::ms(4),
        count: 5,
    });
    for (pairs, window, each) in [(false, 4, 400), (true, 8, 400)] {
        let body = |_| {
            let mut performed = 0;
            while !stopped() {
                work(Time::us(10));
                let is_even = (now().as_ns() / 4_000_000).is_multiple_of(2);
                performed += u64::from(!pairs || is_even);
                has_performed(performed);
            }
        };
        let outcome = run(&setup, body, || true).unwrap();
        let measured = outcome.measured.as_ref().expect("it has windows");
        assert!(measured.is_settled(), "{measured:?}");
        assert!(
            (Time::ms(12)..Time::ms(14)).contains(&measured.warm_up),
            "{measured:?}"
        );
        assert_eq!(measured.window, Time::ms(window));
        let operations = &measured.operations;
        assert!(
            operations.iter().all(|count| count.abs_diff(each) < 20),
            "{measured:?}"
        );
        assert_eq!(
            outcome.elapsed,
            measured.window.times(operations.len() as u64)
        );
        assert_eq!(outcome.account().total(), outcome.elapsed.times(2));
    }
}

/// A body's panic reaches the caller, whose thread can simulate again. Fails where the thread still
/// counts as the vCPU's. Locks are made and dropped there, so nobody is woken.
#[test]
fn a_panic_ends_the_simulation() {
    let panics = || {
        simulate(&machine(1, 1), &host(), 2, |vcpu| {
            assert!(vcpu == 0, "as intended")
        })
    };
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(current(), None);
    kick(0x1000);
    kick_all(0x1000);
    simulate(&machine(1, 1), &host(), 2, |_| ());
}
