//! Load balancing: which vCPU runs on which CPU, and the resulting shares.

use super::*;

/// Picks the next vCPU of all CPUs.
fn pick_all(schedule: &mut Schedule, at: Time) {
    for cpu in 0..schedule.cpus() {
        schedule.pick(at, cpu);
    }
}

/// Queues this many more vCPUs for CPU 0.
fn queue(schedule: &mut Schedule, vruntime: &[u64]) {
    for &vruntime in vruntime {
        schedule.cpus[0].queue.push(schedule.tasks.len());
        schedule.tasks.push(Task {
            vruntime: Time::us(vruntime),
            ..Task::default()
        });
    }
}

#[test]
fn a_sleeper_wakes_where_it_was_if_that_is_idle() {
    let mut schedule = schedule(&machine(1, 4, 1), 1);
    pick_all(&mut schedule, Time::ZERO);
    schedule.leave(Time::us(10), 0);
    let placed = schedule.wake(Time::us(35), 0, Some(2));
    assert_eq!(placed, Placed::Idle(0, Time::us(25)));
}

/// CPUs 0 to 5 are the first threads of the cores of two sockets, 6 to 11 the second ones. Fails
/// where `idle_near` does not count busy siblings, or searches other sockets than the sleeper's and
/// the waker's.
#[test]
fn a_sleeper_wakes_on_an_idle_core_nearby() {
    let mut schedule = schedule(&machine(2, 3, 2), 1);
    schedule.cpus[0].queue.clear();
    // CPUs become busy one after the other. Each entry: the number of busy ones, the waker's CPU,
    // and where the sleeper of CPU 0 goes.
    let scenes = [
        (0, None, Some(1)),
        // A core that is idle, and not the first idle thread.
        (7, None, Some(2)),
        (2, None, Some(1)),
        (1, None, Some(6)),
        (6, None, Some(8)),
        // The other socket is idle, but the waker is not on it.
        (8, None, None),
        (8, Some(1), None),
        (8, Some(4), Some(3)),
        (3, Some(4), Some(4)),
        (10, Some(4), Some(5)),
    ];
    for (busy, by, idle) in scenes {
        schedule.cpus[busy].current = Some(0);
        assert_eq!(schedule.idle_near(0, by), idle, "{busy} {by:?}");
    }
    // Its own CPU, whether or not its siblings are busy.
    schedule.cpus[0].current = None;
    assert_eq!(schedule.idle_near(0, None), Some(0));
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
        let mut schedule = schedule(&machine, 2);
        pick_all(&mut schedule, Time::ZERO);
        assert_eq!(schedule.idle_near(0, None), idle);
        assert_eq!(schedule.idle_near(0, Some(3)), Some(2));
    }
}

/// CPU 0 runs one vCPU and two are queued. Fails where an idle CPU does not search other queues, or
/// takes the next one to run.
#[test]
fn an_idle_cpu_pulls_the_last_of_the_longest_queue() {
    let mut schedule = schedule(&machine(1, 3, 1), 3);
    pick_all(&mut schedule, Time::ZERO);
    schedule.leave(Time::ZERO, 2);
    queue(&mut schedule, &[200, 100]);
    let pick = schedule.pick(Time::ZERO, 2).unwrap();
    assert!(pick.moved);
    assert_eq!((pick.vcpu, schedule.cpu(3), schedule.waiting(0)), (3, 2, 1));
    schedule.leave(Time::ZERO, 2);
    // Not if the CPU is usually idle for too short a time.
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
        let mut schedule = schedule(&machine(1, 2, 1), 2);
        pick_all(&mut schedule, Time::ZERO);
        queue(&mut schedule, &vec![0; more]);
        assert_eq!(schedule.pull(Time::ZERO, 1, 2), pulled, "{more}");
        assert_eq!(schedule.waiting(1), usize::from(pulled));
    }
}

/// On its new CPU a vCPU keeps its lead over the others. Fails where `vruntime` is not converted.
#[test]
fn vruntime_is_relative_to_the_queue() {
    let mut schedule = schedule(&machine(1, 2, 1), 2);
    schedule.tasks[0].vruntime = Time::ms(50);
    schedule.tasks[1].vruntime = Time::ms(1);
    pick_all(&mut schedule, Time::ZERO);
    queue(&mut schedule, &[50_700]);
    schedule.leave(Time::ZERO, 1);
    assert!(schedule.pull(Time::ZERO, 1, 1));
    assert_eq!(schedule.tasks[2].vruntime, Time::us(1_700));
}

/// Returns the share of the time that each of this many vCPUs, which never sleep, gets of this many
/// CPUs.
fn shares(rules: Scheduler, cpus: usize, vcpus: usize, time: Time) -> Vec<f64> {
    let mut random = Random::seed_from_u64(7);
    let mut schedule = Schedule::new(&machine(1, cpus, 1), rules, vcpus, &mut random);
    let mut got = vec![Time::ZERO; vcpus];
    let mut began = vec![Time::ZERO; cpus];
    pick_all(&mut schedule, Time::ZERO);
    let mut now = Time::ZERO;
    while now < time {
        let end = |cpu: usize| (schedule.slice_end(cpu).unwrap_or(Time::MAX).max(now), cpu);
        let (at, cpu) = (0..cpus).map(end).min().unwrap();
        now = at;
        got[schedule.current(cpu).unwrap()] += now - began[cpu];
        schedule.preempt(now, cpu);
        schedule.pick(now, cpu);
        began[cpu] = now;
    }
    let share = |got: &Time| got.as_ns_f64() / time.as_ns_f64();
    got.iter().map(share).collect()
}

/// Exact up to a few slices at the end. Fails where `charge` charges no vCPU or another one.
#[test]
fn all_get_the_same_share() {
    for rules in [RULES, deadlines::RULES] {
        for (cpus, vcpus) in [(1, 2), (1, 7), (2, 4), (4, 12), (8, 32)] {
            let fair = cpus as f64 / vcpus as f64;
            for share in shares(rules, cpus, vcpus, Time::ms(20_000)) {
                let error = (share / fair - 1.0).abs();
                assert!(error < 0.02, "{vcpus} on {cpus}: {share}");
            }
        }
    }
}
