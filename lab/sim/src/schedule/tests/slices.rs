//! Slices: which vCPU runs on a CPU, and for how long.

use super::*;

/// The vCPU with the least CPU time runs until another has less. Fails where `choose` takes
/// another, or `preempt` does not charge for the slice.
#[test]
fn the_vcpu_with_the_least_cpu_time_is_next() {
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

/// 12 ms for eight would be 1.5 ms each, but the shortest slice is 2 ms. A single vCPU has no slice
/// end.
#[test]
fn slices_have_a_minimum_length() {
    let mut schedule = one_cpu(&[0; 8]);
    schedule.pick(Time::ZERO, 0);
    assert_eq!(schedule.slice_end(0), Some(Time::ms(2)));
    let mut alone = one_cpu(&[0]);
    alone.pick(Time::ZERO, 0);
    assert_eq!(alone.slice_end(0), None);
}

/// vCPU 1 sleeps from the beginning; the other has had this much CPU time when it wakes. A sleeper
/// gains half of a period, 6 ms, at most. Fails where wakers preempt always, never, or exactly at
/// the bound.
#[test]
fn wakers_preempt_vcpus_with_much_more_cpu_time() {
    let scenes = [
        (Time::us(3_000), false),
        (Time::us(3_001), true),
        (Time::ms(100), true),
    ];
    for (ran, preempts) in scenes {
        let mut schedule = one_cpu(&[1, 0]);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(1));
        schedule.leave(Time::ZERO, 0);
        schedule.tasks[0].vruntime = Time::ZERO;
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
        let placed = match preempts {
            true => Placed::Preempts(0),
            false => Placed::Queued(0),
        };
        assert_eq!(schedule.wake(ran, 1, None), placed, "{ran}");
        let behind = schedule.tasks[0].vruntime - schedule.tasks[1].vruntime;
        assert_eq!(behind, ran.min(Time::ms(6)));
    }
}

/// A vCPU that yields lets the next one run first, but only once, and only if that one has had at
/// most 3 ms more. Fails where `choose` ignores the bound, or does not forget the yield.
#[test]
fn a_vcpu_that_yields_lets_the_next_one_run_first() {
    for (vruntime, next) in [(4_000, 1), (4_001, 0)] {
        let mut schedule = one_cpu(&[1_000, vruntime]);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
        schedule.skips(0);
        schedule.preempt(Time::ZERO, 0);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(next));
        schedule.preempt(Time::ZERO, 0);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
    }
}

/// As above, for a vCPU that was yielded to.
#[test]
fn a_vcpu_that_was_yielded_to_runs_first_if_that_is_fair() {
    for (vruntime, next) in [(4_000, 2), (4_001, 1)] {
        let mut schedule = one_cpu(&[1_000, 1_100, vruntime]);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
        assert_eq!(schedule.yield_to(0, 2), Some(0));
        schedule.preempt(Time::ZERO, 0);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(next));
        schedule.preempt(Time::ZERO, 0);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
    }
}

/// No vCPU is queued behind vCPU 1, so it goes on, and its yield has no effect later on. Fails
/// where `yield_to` leaves the skip behind.
#[test]
fn a_yield_without_effect_is_forgotten() {
    let mut schedule = schedule(&machine(1, 2, 1), 3);
    assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
    assert_eq!(pick(&mut schedule, Time::ZERO, 1), Some(1));
    // vCPU 2 is queued for CPU 0, behind vCPU 0.
    assert_eq!(schedule.yield_to(1, 2), Some(0));
    let buddies = (schedule.cpus[1].skip, schedule.cpus[0].next);
    assert_eq!(buddies, (None, Some(2)));
    // A running vCPU cannot be yielded to.
    assert_eq!(schedule.yield_to(0, 1), None);
}

/// While the host uses the CPU, no vCPU runs on it; a waking one is queued.
#[test]
fn no_vcpu_runs_on_a_reserved_cpu() {
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

/// A vCPU that runs again on the CPU where it was the last costs no context switch.
#[test]
fn the_last_vcpu_of_a_cpu_needs_no_switch() {
    let mut schedule = one_cpu(&[0, 5_000]);
    assert!(!schedule.pick(Time::ZERO, 0).unwrap().same);
    schedule.preempt(Time::us(1), 0);
    assert!(schedule.pick(Time::us(1), 0).unwrap().same);
    schedule.preempt(Time::ms(9), 0);
    assert!(!schedule.pick(Time::ms(9), 0).unwrap().same);
}
