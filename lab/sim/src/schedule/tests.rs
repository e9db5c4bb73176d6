//! The scheduler in scenes computed by hand.

mod balance;
mod deadlines;
mod slices;

use std::borrow::Cow;

use rand::SeedableRng;

use super::*;
use crate::machine::{Costs, Level, Links};

const RULES: Scheduler = Scheduler {
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

fn machine(sockets: usize, cores: usize, threads: usize) -> Machine {
    Machine {
        name: Cow::Borrowed("test"),
        about: Cow::Borrowed(""),
        sockets,
        clusters: 1,
        cores,
        threads,
        last_level: Level::Socket,
        inclusive: true,
        migratory: false,
        links: Links::All,
        costs: Costs::USUAL,
    }
}

/// No vCPU has had CPU time, and all timers tick at whole milliseconds.
fn schedule(machine: &Machine, vcpus: usize) -> Schedule {
    schedule_by(RULES, machine, vcpus)
}

fn schedule_by(rules: Scheduler, machine: &Machine, vcpus: usize) -> Schedule {
    let mut random = Random::seed_from_u64(1);
    let mut schedule = Schedule::new(machine, rules, vcpus, &mut random);
    for task in &mut schedule.tasks {
        task.vruntime = Time::ZERO;
    }
    for cpu in &mut schedule.cpus {
        cpu.phase = Time::ZERO;
    }
    schedule
}

/// Queues vCPUs on one CPU, with these CPU times in microseconds.
fn one_cpu(vruntime: &[u64]) -> Schedule {
    let mut schedule = schedule(&machine(1, 1, 1), vruntime.len());
    for (task, &vruntime) in schedule.tasks.iter_mut().zip(vruntime) {
        task.vruntime = Time::us(vruntime);
    }
    schedule
}

fn pick(schedule: &mut Schedule, at: Time, cpu: usize) -> Option<usize> {
    schedule.pick(at, cpu).map(|pick| pick.vcpu)
}

/// CPUs 0 to 5 are the first threads of the cores of two sockets, 6 to 11 the second ones.
#[test]
fn vcpus_begin_apart_or_together() {
    let cpus = |placement| {
        let rules = Scheduler { placement, ..RULES };
        let schedule = schedule_by(rules, &machine(2, 3, 2), 12);
        let cpus = (0..12).map(|vcpu| schedule.cpu(vcpu));
        cpus.collect::<Vec<usize>>()
    };
    assert_eq!(
        cpus(Placement::Spread),
        [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]
    );
    assert_eq!(cpus(Placement::Pack), (0..12).collect::<Vec<usize>>());
}
