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
    balance_idle: Time::ms(4),
    balance_all: Time::ms(64),
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

/// Does one step of a scene.
fn act(schedule: &mut Schedule, step: &str) {
    let micros = |text: &str| Time::us(text.parse().expect("a time"));
    let number = |text: &str| text.parse::<usize>().expect("a vCPU");
    let words: Vec<&str> = step.split(' ').collect();
    match words[..] {
        ["at", at, same, next] => {
            schedule.preempt(micros(at), 0);
            let pick = schedule.pick(micros(at), 0);
            assert_eq!(pick.map(|pick| pick.vcpu), next.parse().ok());
            let is_as_said = |pick: Pick| same == "next" || pick.same == (same == "same");
            assert!(pick.is_none_or(is_as_said));
        }
        ["leave", at] => schedule.leave(micros(at), 0),
        ["wake", vcpu, at, placed] => {
            let placed = match placed {
                "queued" => Placed::Queued(0),
                _ => Placed::Preempts(0),
            };
            assert_eq!(schedule.wake(micros(at), number(vcpu), None), placed);
        }
        ["skip", vcpu] => schedule.skips(number(vcpu)),
        ["yield", vcpu, to] => {
            assert_eq!(schedule.yield_to(number(vcpu), number(to)), Some(0));
        }
        ["drop"] => schedule.cpus[0].queue.clear(),
        ["reserve"] => schedule.reserve(0, true),
        ["release"] => schedule.reserve(0, false),
        ["phase", at] => schedule.cpus[0].phase = micros(at),
        ["set", vcpu, time] => schedule.tasks[number(vcpu)].vruntime = micros(time),
        ["owe", vcpu, lag] => schedule.tasks[number(vcpu)].lag = lag.parse().expect("a time"),
        ["end", end] => assert_eq!(schedule.slice_end(0), end.parse().ok().map(Time::us)),
        ["has", vcpu, time] => assert_eq!(schedule.tasks[number(vcpu)].vruntime, micros(time)),
        ["deadline", vcpu, at] => assert_eq!(schedule.tasks[number(vcpu)].deadline, micros(at)),
        _ => unreachable!("{step} is nothing"),
    }
}

/// Fails where another vCPU is next, at another time, or with another claim.
#[test]
fn scenes_are_as_computed() {
    for row in include_str!("tests/scenes.txt").lines() {
        let Some((tasks, steps)) = row.split_once(": ").filter(|_| !row.starts_with('#')) else {
            continue;
        };
        println!("{row}");
        let (rules, tasks) = tasks.split_once(' ').expect("vCPUs");
        let rules = if rules == "cfs" { CFS } else { EEVDF };
        let tasks: Vec<&str> = tasks.split(' ').collect();
        let mut schedule = schedule(rules, &machine(1, 1, 1), tasks.len());
        for (task, times) in schedule.tasks.iter_mut().zip(tasks) {
            let (vruntime, deadline) = times.split_once('/').unwrap_or((times, "0"));
            let [vruntime, deadline] =
                [vruntime, deadline].map(|text| text.parse().expect("a time"));
            (task.vruntime, task.deadline) = (Time::us(vruntime), Time::us(deadline));
        }
        steps.split(", ").for_each(|step| act(&mut schedule, step));
    }
}

/// CPUs 0 to 5 are the first threads of the cores of two sockets, 6 to 11 the second ones.
#[test]
fn vcpus_begin_apart_or_together() {
    for (placement, cpus) in [
        (Placement::Spread, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]),
        (Placement::Numa, [0, 1, 3, 4, 2, 5, 6, 9, 7, 10, 8, 11]),
        (Placement::Pack, std::array::from_fn(|cpu| cpu)),
    ] {
        let rules = Scheduler { placement, ..CFS };
        let schedule = schedule(rules, &machine(2, 3, 2), 12);
        assert_eq!(std::array::from_fn(|vcpu| schedule.cpu(vcpu)), cpus);
    }
}

/// No vCPU is queued behind vCPU 1, so it goes on, and its yield has no effect later on. Fails
/// where `yield_to` leaves the skip behind.
#[test]
fn a_yield_without_effect_is_forgotten() {
    let mut schedule = schedule(CFS, &machine(1, 2, 1), 3);
    let picks = [0, 1].map(|cpu| schedule.pick(Time::ZERO, cpu).map(|pick| pick.vcpu));
    assert_eq!(picks, [Some(0), Some(1)]);
    // vCPU 2 is queued for CPU 0, behind vCPU 0.
    assert_eq!(schedule.yield_to(1, 2), Some(0));
    let buddies = (schedule.cpus[1].skip, schedule.cpus[0].next);
    assert_eq!(buddies, (None, Some(2)));
    // A running vCPU cannot be yielded to.
    assert_eq!(schedule.yield_to(0, 1), None);
}
