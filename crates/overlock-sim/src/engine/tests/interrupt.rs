//! Interruptions by the caller.

use std::rc::Rc;

use super::*;

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
