//! Callers that do not want to go on.

use std::rc::Rc;

use super::*;

/// Bodies that end when they are asked to, after so many looks of the caller; when the last one
/// ended, and what is left of what each had on its stack and returned.
fn interrupted(looks: u32, vcpus: usize, step: Time, ends: bool) -> (Time, usize) {
    let (machine, asked, last) = (machine(1, 1), Cell::new(0), Cell::new(Time::ZERO));
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
        asked.set(asked.get() + 1);
        asked.get() < looks
    };
    let stuck = run(&setup, body, go_on).expect_err("interrupted");
    assert_eq!((stuck, asked.get()), (Stuck::Interrupted, looks));
    (last.get(), Rc::strong_count(&shared) - 1)
}

/// The clock moves on without events where nobody else wants anything. Fails where `pass` does not
/// regard `look`.
#[test]
fn a_run_with_few_events_can_be_interrupted() {
    let (end, left) = interrupted(10, 1, Time::us(10), true);
    assert!(end >= Time::ms(10) && end < Time::ms(11), "{end}");
    assert_eq!(left, 0);
}

/// All of them get to their ends, whoever has the CPU when the caller says no; nothing is left on
/// their stacks. Fails where the simulation is dropped there and then.
#[test]
fn those_that_are_interrupted_end() {
    let (end, left) = interrupted(20, 3, Time::us(7), true);
    assert!(end >= Time::ms(20) && end < Time::ms(50), "{end}");
    assert_eq!(left, 0);
}

/// Nobody waits for ever for those that do not.
#[test]
fn those_that_do_not_end_are_given_up() {
    let (end, left) = interrupted(3, 2, Time::us(50), false);
    assert_eq!((end, left), (Time::ZERO, 2));
}
