//! EEVDF: eligibility, virtual deadlines, lag.

use super::*;

pub(super) const RULES: Scheduler = Scheduler {
    request: Some(Time::ms(3)),
    ..super::RULES
};

/// Queues vCPUs on one CPU, with these CPU times and deadlines in microseconds.
fn one_cpu(tasks: &[(u64, u64)]) -> Schedule {
    let mut schedule = schedule_by(RULES, &machine(1, 1, 1), tasks.len());
    for (task, &(vruntime, deadline)) in schedule.tasks.iter_mut().zip(tasks) {
        task.vruntime = Time::us(vruntime);
        task.deadline = Time::us(deadline);
    }
    schedule
}

/// The mean is 2 ms, so vCPU 0 is not eligible. Fails where `earliest` takes the earliest deadline
/// of all, or the least CPU time.
#[test]
fn the_eligible_vcpu_with_the_earliest_deadline_is_next() {
    let mut schedule = one_cpu(&[(3_000, 3_500), (1_000, 5_000), (2_000, 4_000)]);
    assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(2));
    // It is not eligible after a millisecond; vCPU 0 is not yet.
    schedule.preempt(Time::ms(1), 0);
    assert_eq!(pick(&mut schedule, Time::ms(1), 0), Some(1));
}

/// A request that begins at 0.3 ms ends at 3.3, so at the tick at 4. Then the next one begins.
/// Fails where the slice depends on the number of vCPUs, or `preempt` does not renew a request.
#[test]
fn a_slice_ends_with_the_request() {
    let mut schedule = one_cpu(&[(0, 3_000), (0, 3_000), (0, 3_000)]);
    assert_eq!(pick(&mut schedule, Time::us(300), 0), Some(0));
    assert_eq!(schedule.slice_end(0), Some(Time::ms(4)));
    schedule.preempt(Time::ms(4), 0);
    assert_eq!(schedule.tasks[0].deadline, Time::us(6_700));
    assert_eq!(pick(&mut schedule, Time::ms(4), 0), Some(1));
}

/// A vCPU that is alone begins one request after another, so that one that wakes does not find its
/// deadline over. Fails where `charge` does not renew it.
#[test]
fn requests_of_a_vcpu_that_is_alone_follow_each_other() {
    let mut schedule = one_cpu(&[(0, 3_000), (0, 3_000)]);
    pick(&mut schedule, Time::ZERO, 0);
    schedule.leave(Time::ZERO, 0);
    pick(&mut schedule, Time::ZERO, 0);
    assert_eq!(schedule.wake(Time::ms(50), 0, None), Placed::Queued(0));
    assert_eq!(schedule.slice_end(0), Some(Time::ms(53)));
}

/// vCPU 0 sleeps after it has run for this long, while vCPU 1 is queued with none. So it has half
/// of that as its lag, and keeps it: it is as far behind again when it wakes, 6 ms at most. Fails
/// where a sleep ends the lag, or does not limit it.
#[test]
fn a_sleeper_keeps_its_lag() {
    for (ran, lag) in [(0, 0), (2_000, -1_000), (40_000, -6_000)] {
        let mut schedule = one_cpu(&[(0, 3_000), (0, 90_000)]);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
        schedule.leave(Time::us(ran), 0);
        assert_eq!(schedule.tasks[0].lag, lag * 1_000_000);
        assert_eq!(pick(&mut schedule, Time::us(ran), 0), Some(1));
        schedule.wake(Time::us(ran), 0, None);
        let [sleeper, other] = [0, 1].map(|vcpu| schedule.tasks[vcpu].vruntime.as_ps() as i64);
        assert_eq!(other - sleeper, 2 * lag * 1_000_000);
    }
}

/// vCPU 1 wakes without lag while vCPU 0 has this deadline and lag. It preempts a vCPU that is not
/// eligible. Fails where the running vCPU is not protected while it is eligible, or always.
#[test]
fn a_waking_vcpu_preempts_one_that_is_not_eligible() {
    for (lag, placed) in [(0, Placed::Queued(0)), (1, Placed::Preempts(0))] {
        let mut schedule = one_cpu(&[(0, 3_000), (0, 9_000)]);
        assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
        schedule.cpus[0].queue.clear();
        schedule.tasks[1].lag = lag;
        assert_eq!(schedule.wake(Time::ms(2), 1, None), placed);
    }
}

/// A vCPU that yields lets those with earlier deadlines run first; one that is yielded to runs
/// first if it is eligible. Fails where `skips` leaves the deadline, or `next` is never taken.
#[test]
fn a_yield_postpones_the_deadline() {
    let mut schedule = one_cpu(&[(0, 3_000), (0, 4_000), (0, 5_000)]);
    assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
    schedule.skips(0);
    schedule.preempt(Time::ZERO, 0);
    assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(1));
    assert_eq!(schedule.yield_to(1, 0), Some(0));
    schedule.preempt(Time::ZERO, 0);
    assert_eq!(pick(&mut schedule, Time::ZERO, 0), Some(0));
}

/// On its new CPU a vCPU has the lag and the rest of the request that it had. Fails where `pull`
/// compares it with the least CPU time.
#[test]
fn a_vcpu_that_moves_keeps_its_lag() {
    let mut schedule = schedule_by(RULES, &machine(1, 2, 1), 4);
    let times = [(10, 13), (50, 53), (12, 14), (50, 53)];
    for (task, (vruntime, deadline)) in schedule.tasks.iter_mut().zip(times) {
        task.vruntime = Time::ms(vruntime);
        task.deadline = Time::ms(deadline);
    }
    // vCPUs 0 and 2 are on CPU 0; CPU 1 runs vCPU 1.
    schedule.cpus[1].queue.clear();
    schedule.cpus[1].current = Some(1);
    assert!(schedule.pull(Time::ZERO, 1, 1));
    let task = &schedule.tasks[2];
    assert_eq!((task.cpu, task.vruntime), (1, Time::ms(52)));
    assert_eq!(task.deadline, Time::ms(54));
}
