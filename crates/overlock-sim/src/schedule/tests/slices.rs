//! Who runs on a CPU, and for how long.

use super::*;

/// Whoever has had least comes first, and stays until somebody else has had less. Fails where
/// `choose` takes another, or `preempt` does not charge for the turn.
#[test]
fn the_one_that_had_least_is_next() {
    let mut schedule = one_cpu(&[3_000, 1_000, 2_000]);
    assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(1));
    schedule.preempt(Time::us(1_500), 0);
    assert_eq!(pick(&mut schedule, Time::us(1_500), 0), Some(2));
    schedule.preempt(Time::us(2_400), 0);
    // Now they have had 3.0, 2.5 and 2.9 ms.
    assert_eq!(pick(&mut schedule, Time::us(2_400), 0), Some(1));
    assert_eq!(schedule.waiting(0), 2);
}

/// 12 ms for three are 4 ms each: from 0.3 ms to 4.3, so to the tick at 5. Fails where slices end
/// between ticks, or a tick late or early.
#[test]
fn slices_end_with_a_tick() {
    let mut schedule = one_cpu(&[0; 3]);
    assert_eq!(schedule.slice_end(0), None);
    schedule.pick(Time::us(300), 0);
    assert_eq!(schedule.slice_end(0), Some(Time::ms(5)));
    schedule.cpus[0].phase = Time::us(400);
    assert_eq!(schedule.slice_end(0), Some(Time::us(4_400)));
    // Exactly at a tick is in time.
    schedule.cpus[0].phase = Time::us(300);
    assert_eq!(schedule.slice_end(0), Some(Time::us(4_300)));
}

/// 12 ms for eight would be 1.5 ms each, but nobody gets less than 2. Alone one goes on for as long
/// as it likes.
#[test]
fn slices_have_a_least_length() {
    let mut schedule = one_cpu(&[0; 8]);
    schedule.pick(Time::ZERO, 0);
    assert_eq!(schedule.slice_end(0), Some(Time::ms(2)));
    let mut alone = one_cpu(&[0]);
    alone.pick(Time::ZERO, 0);
    assert_eq!(alone.slice_end(0), None);
}

/// vCPU 1 sleeps from the beginning; its neighbour has had so much when it wakes. Sleep earns half
/// a round, 6 ms, so the sleeper is never further behind. Fails where whoever wakes preempts
/// always, never, or at the bound.
#[test]
fn wakers_preempt_those_that_had_much_more() {
    let scenes = [
        (Time::us(3_000), false),
        (Time::us(3_001), true),
        (Time::ms(100), true),
    ];
    for (ran, preempts) in scenes {
        let mut schedule = one_cpu(&[1, 0]);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(1));
        schedule.leave(Time::ZERO, 0);
        schedule.tasks[0].had = Time::ZERO;
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
        let placed = match preempts {
            true => Placed::Preempts(0),
            false => Placed::Queued(0),
        };
        assert_eq!(schedule.wake(ran, 1, None), placed, "{ran}");
        let behind = schedule.tasks[0].had - schedule.tasks[1].had;
        assert_eq!(behind, ran.min(Time::ms(6)));
    }
}

/// Whoever asked to be skipped waits for the next one, but not twice, and not where that one has
/// had more than 3 ms more. Fails where `choose` does not look at the bound, or does not forget.
#[test]
fn who_asks_to_be_skipped_lets_the_next_one_go_first() {
    for (had, next) in [(4_000, 1), (4_001, 0)] {
        let mut schedule = one_cpu(&[1_000, had]);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
        schedule.skips(0);
        schedule.preempt(Time::ZERO, 0);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(next));
        schedule.preempt(Time::ZERO, 0);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
    }
}

/// As above, for one that has been asked for.
#[test]
fn who_was_asked_for_goes_first_where_that_is_fair() {
    for (had, next) in [(4_000, 2), (4_001, 1)] {
        let mut schedule = one_cpu(&[1_000, 1_100, had]);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
        assert_eq!(schedule.yield_to(0, 2), Some(0));
        schedule.preempt(Time::ZERO, 0);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(next));
        schedule.preempt(Time::ZERO, 0);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
    }
}

/// Nobody waits behind vCPU 1, so it goes on, and does not let anybody pass later on. Fails where
/// `yield_to` leaves the skip behind.
#[test]
fn a_yield_that_gives_nothing_up_is_forgotten() {
    let mut schedule = schedule(&machine(1, 2, 1), 3);
    assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
    assert_eq!(pick(&mut schedule, Time::ZERO, 1), Some(1));
    // vCPU 2 waits for CPU 0, behind vCPU 0.
    assert_eq!(schedule.yield_to(1, 2), Some(0));
    let buddies = (schedule.cpus[1].skip, schedule.cpus[0].next);
    assert_eq!(buddies, (None, Some(2)));
    // Who runs already cannot be helped.
    assert_eq!(schedule.yield_to(0, 1), None);
}

/// While the host has the CPU, nobody gets it; whoever wakes waits.
#[test]
fn nobody_runs_on_a_reserved_cpu() {
    let mut schedule = one_cpu(&[0; 2]);
    schedule.pick(Time::ZERO, 0);
    schedule.leave(Time::ZERO, 0);
    schedule.reserve(0, true);
    assert_eq!(pick(&mut schedule, Time::ZERO, 0), None);
    assert!(!schedule.is_idle(0));
    assert_eq!(schedule.wake(Time::ZERO, 0, None), Placed::Queued(0));
    schedule.reserve(0, false);
    assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
}

/// A vCPU that comes back to the CPU where it was the last costs no switch.
#[test]
fn who_ran_last_need_not_be_switched_to() {
    let mut schedule = one_cpu(&[0, 5_000]);
    assert!(!schedule.pick(Time::ZERO, 0).unwrap().same);
    schedule.preempt(Time::us(1), 0);
    assert!(schedule.pick(Time::us(1), 0).unwrap().same);
    schedule.preempt(Time::ms(9), 0);
    assert!(!schedule.pick(Time::ms(9), 0).unwrap().same);
}
