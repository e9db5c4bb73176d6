//! The scheduler in scenes computed by hand.

mod balance;

use rand::SeedableRng;

use super::*;
use crate::machine::tests::plain;

const CFS: Scheduler = Scheduler {
    latency: Time::ms(12),
    granularity: Time::ms(2),
    wakeup: Time::ms(3),
    request: None,
    tick: Time::ms(1),
    switch: Time::ZERO,
    migration: Time::ZERO,
    worth: Time::us(500),
    balance: (Time::ms(4), Time::ms(64)),
    placement: Placement::Pack,
};

const EEVDF: Scheduler = Scheduler {
    request: Some(Time::ms(3)),
    ..CFS
};

fn machine(sockets: usize, cores: usize, threads: usize) -> Machine {
    Machine {
        sockets,
        cores,
        threads,
        ..plain()
    }
}

/// No vCPU has had CPU time, and all timers tick at whole milliseconds.
fn schedule(rules: Scheduler, machine: &Machine, vcpus: usize) -> Schedule {
    let mut schedule = Schedule::new(machine, rules, vcpus, &mut Random::seed_from_u64(1));
    schedule
        .tasks
        .iter_mut()
        .for_each(|task| task.vruntime = Time::ZERO);
    schedule
        .cpus
        .iter_mut()
        .for_each(|cpu| cpu.phase = Time::ZERO);
    schedule
}

/// Queues vCPUs on one CPU, with these CPU times, and with EEVDF these deadlines, in microseconds.
fn one_cpu(rules: Scheduler, tasks: &[(u64, u64)]) -> Schedule {
    let mut schedule = schedule(rules, &machine(1, 1, 1), tasks.len());
    for (task, &(vruntime, deadline)) in schedule.tasks.iter_mut().zip(tasks) {
        (task.vruntime, task.deadline) = (Time::us(vruntime), Time::us(deadline));
    }
    schedule
}

/// Preempts what runs on CPU 0 at each of these times, in microseconds. This vCPU is next.
fn turns(schedule: &mut Schedule, turns: &[(u64, usize)]) {
    for &(at, vcpu) in turns {
        schedule.preempt(Time::us(at), 0);
        let pick = schedule.pick(Time::us(at), 0).expect("a vCPU is queued");
        assert_eq!(pick.vcpu, vcpu, "at {at}");
    }
}

/// CPUs 0 to 5 are the first threads of the cores of two sockets, 6 to 11 the second ones.
#[test]
fn vcpus_begin_apart_or_together() {
    for (placement, cpus) in [
        (Placement::Spread, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]),
        (Placement::Pack, std::array::from_fn(|cpu| cpu)),
    ] {
        let rules = Scheduler { placement, ..CFS };
        let schedule = schedule(rules, &machine(2, 3, 2), 12);
        assert_eq!(std::array::from_fn(|vcpu| schedule.cpu(vcpu)), cpus);
    }
}

/// With CFS the vCPU with the least CPU time is next; with EEVDF the one with the earliest deadline
/// of those that are eligible, for which the mean of the CPU times counts. Fails where another one
/// is chosen, or `preempt` does not charge for the slice or renew the request.
#[test]
fn the_vcpu_that_is_owed_time_is_next() {
    let mut fair = one_cpu(CFS, &[(3_000, 0), (1_000, 0), (2_000, 0)]);
    // After these they have had 3.0, 2.5 and 2.9 ms.
    turns(&mut fair, &[(0, 1), (1_500, 2), (2_400, 1)]);
    assert_eq!(fair.waiting(0), 2);
    let mut eligible = one_cpu(EEVDF, &[(3_000, 3_500), (1_000, 5_000), (2_000, 4_000)]);
    turns(&mut eligible, &[(0, 2), (1_000, 1)]);
}

/// With CFS 12 ms for three are 4 ms each, and for eight the shortest slice, 2 ms; with EEVDF a
/// request takes 3 ms. The tick after that ends it; exactly at a tick is in time. Fails where
/// slices end between ticks, or a tick late or early.
#[test]
fn slices_end_with_a_tick() {
    for (rules, vcpus, begin, phase, end) in [
        (CFS, 1, 0, 0, None),
        (CFS, 3, 300, 0, Some(5_000)),
        (CFS, 3, 300, 400, Some(4_400)),
        (CFS, 3, 300, 300, Some(4_300)),
        (CFS, 8, 0, 0, Some(2_000)),
        (EEVDF, 1, 0, 0, None),
        (EEVDF, 3, 300, 0, Some(4_000)),
        (EEVDF, 8, 300, 0, Some(4_000)),
    ] {
        let mut schedule = one_cpu(rules, &vec![(0, 3_000); vcpus]);
        schedule.cpus[0].phase = Time::us(phase);
        assert_eq!(schedule.slice_end(0), None);
        turns(&mut schedule, &[(begin, 0)]);
        assert_eq!(schedule.slice_end(0), end.map(Time::us));
    }
    // The next request begins where the last one has ended. One that is alone begins one after the
    // other, so that one that wakes does not find its deadline over.
    let mut alone = one_cpu(EEVDF, &[(0, 3_000), (0, 3_000)]);
    turns(&mut alone, &[(300, 0), (4_000, 1)]);
    assert_eq!(alone.tasks[0].deadline, Time::us(6_700));
    let mut alone = one_cpu(EEVDF, &[(0, 3_000), (0, 3_000)]);
    turns(&mut alone, &[(0, 0)]);
    alone.leave(Time::ZERO, 0);
    turns(&mut alone, &[(0, 1)]);
    assert_eq!(alone.wake(Time::ms(50), 0, None), Placed::Queued(0));
    assert_eq!(alone.slice_end(0), Some(Time::ms(53)));
}

/// vCPU 1 sleeps from the beginning; the other has had this much CPU time when it wakes. A sleeper
/// gains half of a period, 6 ms, at most. Fails where wakers preempt always, never, or exactly at
/// the bound.
#[test]
fn wakers_preempt_vcpus_with_much_more_cpu_time() {
    for (ran, placed, behind) in [
        (3_000, Placed::Queued(0), 3_000),
        (3_001, Placed::Preempts(0), 3_001),
        (100_000, Placed::Preempts(0), 6_000),
    ] {
        let mut schedule = one_cpu(CFS, &[(1, 0), (0, 0)]);
        turns(&mut schedule, &[(0, 1)]);
        schedule.leave(Time::ZERO, 0);
        schedule.tasks[0].vruntime = Time::ZERO;
        turns(&mut schedule, &[(0, 0)]);
        assert_eq!(schedule.wake(Time::us(ran), 1, None), placed, "{ran}");
        let ahead = schedule.tasks[0].vruntime - schedule.tasks[1].vruntime;
        assert_eq!(ahead, Time::us(behind));
    }
}

/// EEVDF: vCPU 0 sleeps after it has run for this long, while vCPU 1 is queued with none. So it has
/// half of that as its lag, and keeps it: it is as far behind again when it wakes, 6 ms at most.
/// Fails where a sleep ends the lag, or does not limit it.
#[test]
fn a_sleeper_keeps_its_lag() {
    for (ran, lag) in [(0, 0), (2_000, -1_000), (40_000, -6_000)] {
        let mut schedule = one_cpu(EEVDF, &[(0, 3_000), (0, 90_000)]);
        turns(&mut schedule, &[(0, 0)]);
        schedule.leave(Time::us(ran), 0);
        assert_eq!(schedule.tasks[0].lag, lag * 1_000_000);
        turns(&mut schedule, &[(ran, 1)]);
        schedule.wake(Time::us(ran), 0, None);
        let [sleeper, other] = [0, 1].map(|vcpu| schedule.tasks[vcpu].vruntime.as_ps() as i64);
        assert_eq!(other - sleeper, 2 * lag * 1_000_000);
    }
}

/// EEVDF: vCPU 1 wakes while vCPU 0, which has none, runs. It preempts a vCPU that is not eligible.
/// Fails where the running vCPU is not protected while it is eligible, or always.
#[test]
fn a_waking_vcpu_preempts_one_that_is_not_eligible() {
    for (lag, placed) in [(0, Placed::Queued(0)), (1, Placed::Preempts(0))] {
        let mut schedule = one_cpu(EEVDF, &[(0, 3_000), (0, 9_000)]);
        turns(&mut schedule, &[(0, 0)]);
        schedule.cpus[0].queue.clear();
        schedule.tasks[1].lag = lag;
        assert_eq!(schedule.wake(Time::ms(2), 1, None), placed);
    }
}

/// A vCPU that yields lets the next one run first, and one that was yielded to runs first, but only
/// once. With CFS only if that one has had at most 3 ms more; with EEVDF if it is eligible. Fails
/// where `choose` ignores the bound or does not forget the yield, or `skips` leaves the deadline.
#[test]
fn a_vcpu_that_yields_lets_another_one_run_first() {
    for (vruntime, skipped, yielded_to) in [(4_000, 2, 2), (4_001, 0, 1)] {
        let mut yields = one_cpu(CFS, &[(1_000, 0), (9_000, 0), (vruntime, 0)]);
        turns(&mut yields, &[(0, 0)]);
        yields.skips(0);
        turns(&mut yields, &[(0, skipped), (0, 0)]);
        let mut yields = one_cpu(CFS, &[(1_000, 0), (1_100, 0), (vruntime, 0)]);
        turns(&mut yields, &[(0, 0)]);
        assert_eq!(yields.yield_to(0, 2), Some(0));
        turns(&mut yields, &[(0, yielded_to), (0, 0)]);
    }
    let mut yields = one_cpu(EEVDF, &[(0, 3_000), (0, 4_000), (0, 5_000)]);
    turns(&mut yields, &[(0, 0)]);
    yields.skips(0);
    turns(&mut yields, &[(0, 1)]);
    assert_eq!(yields.yield_to(1, 0), Some(0));
    turns(&mut yields, &[(0, 0)]);
}

/// No vCPU is queued behind vCPU 1, so it goes on, and its yield has no effect later on. Fails
/// where `yield_to` leaves the skip behind.
#[test]
fn a_yield_without_effect_is_forgotten() {
    let mut schedule = schedule(CFS, &machine(1, 2, 1), 3);
    turns(&mut schedule, &[(0, 0)]);
    assert_eq!(schedule.pick(Time::ZERO, 1).map(|pick| pick.vcpu), Some(1));
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
    let mut schedule = one_cpu(CFS, &[(0, 0); 2]);
    turns(&mut schedule, &[(0, 0)]);
    schedule.leave(Time::ZERO, 0);
    schedule.reserve(0, true);
    assert_eq!(schedule.pick(Time::ZERO, 0), None);
    assert!(!schedule.is_idle(0));
    assert_eq!(schedule.wake(Time::ZERO, 0, None), Placed::Queued(0));
    schedule.reserve(0, false);
    turns(&mut schedule, &[(0, 0)]);
}

/// A vCPU that runs again on the CPU where it was the last costs no context switch.
#[test]
fn the_last_vcpu_of_a_cpu_needs_no_switch() {
    let mut schedule = one_cpu(CFS, &[(0, 0), (5_000, 0)]);
    let same = [0, 1, 9_000].map(|at| {
        schedule.preempt(Time::us(at), 0);
        schedule.pick(Time::us(at), 0).unwrap().same
    });
    assert_eq!(same, [false, true, false]);
}
