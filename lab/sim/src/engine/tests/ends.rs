//! The end of a simulation, and its measured time.

use super::*;

/// Fails where `pass` ignores `next_check`: the clock advances without events if one vCPU runs.
#[test]
fn a_simulation_can_be_interrupted() {
    for vcpus in [1, 3] {
        let (machine, host, checks, last) = (machine(1, 1), host(), Cell::new(0), Cell::new(0));
        let mut setup = setup(&machine, &host, vcpus);
        setup.stop_after = Time::ms(100_000);
        let body = |_| {
            while checks.get() < 20 {
                work(Time::us(10));
                last.set(now().as_ns() / 1_000_000);
            }
        };
        let go_on = || checks.replace(checks.get() + 1) < 9;
        let stuck = run(&setup, body, go_on).expect_err("interrupted");
        assert_eq!((stuck, checks.get()), (Stuck::Interrupted, 10));
        assert!((9..=11).contains(&last.get()), "{last:?}");
    }
}

/// Fails where a vCPU may be told to stop in a simulation that was not stopped, or where the locks'
/// events after the stop count: one each 10,000 ns, from 11,100 on.
#[test]
fn what_is_told_to_stop_has_been_stopped() {
    let (machine, host) = (machine(1, 1), host());
    let mut setup = setup(&machine, &host, 1);
    for (stop_after, events) in [(35_000, 3), (101_100, 9), (101_102, 10), (200_000, 10)] {
        setup.stop_after = Time::ns(stop_after);
        let body = |_| {
            for _ in 0..10 {
                work(Time::us(10));
                Sim::event(LockEvent::LockPending, 1);
            }
            stopped()
        };
        let outcome = run(&setup, body, || true).unwrap();
        assert_eq!(outcome.results, [outcome.stopped], "{stop_after}");
        assert_eq!(outcome.lock_events[LockEvent::LockPending as usize], events);
    }
}

/// Two vCPUs share a CPU, and work three times as long as they may. Fails where the figures go on
/// after the stop.
#[test]
fn figures_end_at_the_stop() {
    let (machine, host) = (machine(1, 1), host());
    let mut setup = setup(&machine, &host, 2);
    setup.stop_after = Time::ms(10);
    let outcome = run(&setup, |_| work(Time::ms(15)), || true).unwrap();
    assert_eq!((outcome.elapsed, outcome.stopped), (Time::ms(10), true));
    assert_eq!(outcome.account().total(), Time::ms(20));
    assert_eq!(outcome.account().on_cpu(), Time::ms(10));
    let is_lost = |mark: &Mark, until| mark.what == What::Preempted && mark.at <= until;
    let lost = |until| marks(&outcome, |mark| is_lost(mark, until));
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
    let (warm_up, count) = (Time::ms(4), 5);
    (setup.stop_after, setup.windows) = (Time::ms(20), Some(Windows { warm_up, count }));
    for (in_pairs, window) in [(false, Time::ms(4)), (true, Time::ms(8))] {
        let body = |_| {
            let mut performed = 0;
            while !stopped() {
                work(Time::us(10));
                let is_even = (now().as_ns() / 4_000_000).is_multiple_of(2);
                performed += u64::from(!in_pairs || is_even);
                has_performed(performed);
            }
        };
        let outcome = run(&setup, body, || true).unwrap();
        let measured = outcome.measured.as_ref().expect("it has windows");
        let is_in_time = (Time::ms(12)..Time::ms(14)).contains(&measured.warm_up);
        assert!(measured.is_settled() && is_in_time, "{measured:?}");
        assert_eq!(measured.window, window);
        let is_right = |count: &u64| count.abs_diff(400) < 20;
        assert!(measured.operations.iter().all(is_right), "{measured:?}");
        assert_eq!(
            outcome.elapsed,
            window.times(measured.operations.len() as u64)
        );
        assert_eq!(outcome.account().total(), outcome.elapsed.times(2));
    }
}
