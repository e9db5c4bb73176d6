//! Load balancing: which vCPU runs on which CPU.

use super::*;
use crate::machine::Level;

/// One socket of cores with a thread each, of which all run their first vCPUs.
fn running(rules: Scheduler, cores: usize, vcpus: usize) -> Schedule {
    let mut schedule = schedule(rules, &machine(1, cores, 1), vcpus);
    for cpu in 0..cores {
        schedule.pick(Time::ZERO, cpu);
    }
    schedule
}

/// Queues more vCPUs for CPU 0.
fn queue(schedule: &mut Schedule, vruntime: &[u64]) {
    for &vruntime in vruntime {
        schedule.cpus[0].queue.push(schedule.tasks.len());
        schedule.tasks.push(Task {
            vruntime: Time::us(vruntime),
            ..Task::default()
        });
    }
}

/// CPUs 0 to 5 are the first threads of the cores of two sockets, 6 to 11 the second ones; they
/// become busy one after the other. Fails where `idle_near` does not count busy siblings, takes the
/// first idle thread though a core is idle, or searches other sockets than the sleeper's and the
/// waker's.
#[test]
fn a_sleeper_wakes_on_an_idle_core_nearby() {
    for (busy, by, idle) in [
        (0, None, Some(0)),
        (1, None, Some(1)),
        (2, None, Some(2)),
        (3, None, Some(6)),
        (7, None, Some(7)),
        (9, None, None),
        (9, Some(1), None),
        (4, Some(4), Some(4)),
        (9, Some(4), Some(9)),
        (11, Some(4), Some(11)),
    ] {
        let mut schedule = schedule(CFS, &machine(2, 3, 2), 1);
        schedule.cpus[0].queue.clear();
        (0..busy).for_each(|cpu| schedule.cpus[cpu].current = Some(0));
        assert_eq!(schedule.idle_near(0, by), idle, "{busy} {by:?}");
    }
    // Its own CPU, if that is idle, and whoever wakes it.
    let mut schedule = running(CFS, 4, 1);
    schedule.leave(Time::us(10), 0);
    let placed = schedule.wake(Time::us(35), 0, Some(2));
    assert_eq!(placed, Placed::Idle(0, Time::us(25)));
    // Another one, if its own is busy.
    let mut schedule = running(CFS, 2, 3);
    schedule.leave(Time::us(10), 1);
    schedule.leave(Time::us(10), 0);
    schedule.pick(Time::us(10), 0);
    let placed = schedule.wake(Time::us(35), 0, None);
    assert_eq!(placed, Placed::Idle(1, Time::us(25)));
}

/// Two clusters of two cores, with a cache each, or with one in common. CPUs 0 and 1 are busy.
/// Fails where `idle_near` searches sockets only.
#[test]
fn a_sleeper_wakes_near_its_last_level_cache() {
    for (last_level, idle) in [(Level::Cluster, None), (Level::Socket, Some(2))] {
        let machine = Machine {
            clusters: 2,
            last_level,
            ..machine(1, 4, 1)
        };
        let mut schedule = schedule(CFS, &machine, 2);
        assert!((0..2).all(|cpu| schedule.pick(Time::ZERO, cpu).is_some()));
        assert_eq!(schedule.idle_near(0, None), idle);
        assert_eq!(schedule.idle_near(0, Some(3)), Some(2));
    }
}

/// CPU 0 runs one vCPU and two are queued. Fails where an idle CPU does not search other queues, or
/// takes the next one to run, or pulls though it is usually idle for too short a time.
#[test]
fn an_idle_cpu_pulls_the_last_of_the_longest_queue() {
    let mut schedule = running(CFS, 3, 3);
    schedule.leave(Time::ZERO, 2);
    queue(&mut schedule, &[200, 100]);
    let pick = schedule.pick(Time::ZERO, 2).unwrap();
    assert_eq!((pick.vcpu, pick.moved), (3, true));
    assert_eq!((schedule.cpu(3), schedule.waiting(0)), (2, 1));
    schedule.leave(Time::ZERO, 2);
    schedule.cpus[2].mean_idle = Time::us(499);
    assert_eq!(schedule.pick(Time::ZERO, 2), None);
    schedule.cpus[2].mean_idle = Time::us(500);
    assert_eq!(schedule.pick(Time::ZERO, 2).map(|pick| pick.vcpu), Some(4));
}

/// Queues that differ by two are balanced, those that differ by one are not. Fails where `pull`
/// counts one more or less.
#[test]
fn queues_are_balanced_where_that_helps() {
    for (more, pulled) in [(1, false), (2, true), (3, true)] {
        let mut schedule = running(CFS, 2, 2);
        queue(&mut schedule, &vec![0; more]);
        assert_eq!(schedule.pull(Time::ZERO, 1, 2), pulled, "{more}");
        assert_eq!(schedule.waiting(1), usize::from(pulled));
    }
}

/// On its new CPU a vCPU keeps its lead over the others: with CFS over the least CPU time, with
/// EEVDF its lag and the rest of its request. Fails where `vruntime` is not converted, or EEVDF
/// compares it with the least CPU time.
#[test]
fn vruntime_is_relative_to_the_queue() {
    let mut schedule = running(CFS, 2, 2);
    schedule.tasks[0].vruntime = Time::ms(50);
    schedule.tasks[1].vruntime = Time::ms(1);
    schedule.preempt(Time::ZERO, 0);
    schedule.pick(Time::ZERO, 0);
    queue(&mut schedule, &[50_700]);
    schedule.leave(Time::ZERO, 1);
    assert!(schedule.pull(Time::ZERO, 1, 1));
    assert_eq!(schedule.tasks[2].vruntime, Time::us(1_700));

    let mut schedule = super::schedule(EEVDF, &machine(1, 2, 1), 4);
    let times = [(10, 13), (50, 53), (12, 14), (50, 53)];
    for (task, (vruntime, deadline)) in schedule.tasks.iter_mut().zip(times) {
        (task.vruntime, task.deadline) = (Time::ms(vruntime), Time::ms(deadline));
    }
    // vCPUs 0 and 2 are on CPU 0; CPU 1 runs vCPU 1.
    schedule.cpus[1].queue.clear();
    schedule.cpus[1].current = Some(1);
    assert!(schedule.pull(Time::ZERO, 1, 1));
    let task = &schedule.tasks[2];
    assert_eq!((task.cpu, task.vruntime), (1, Time::ms(52)));
    assert_eq!(task.deadline, Time::ms(54));
}
