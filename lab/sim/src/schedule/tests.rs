//! The scheduler in scenes computed by hand.

use rand::SeedableRng;

use super::*;
use crate::machine::tests::{plain_but, rows};

const CFS: Scheduler = Scheduler {
    latency: Time::ms(12),
    granularity: Time::ms(2),
    wakeup: Time::ms(3),
    request: Time::ZERO,
    tick: Time::ms(1),
    switch: Time::ZERO,
    migration: Time::ZERO,
    worth: Time::us(500),
    balance_idle: Time::ms(4),
    balance_all: Time::ms(64),
    placement: Placement::Pack,
    chores_every: Time::ms(100),
    chores_length: Time::ZERO,
};

/// Makes the schedule of a scene, such as `eevdf 0/3000 100/5000`. All timers tick at whole
/// milliseconds.
fn schedule(machine: &Machine, begin: &str) -> Schedule {
    let words: Vec<&str> = begin.split(' ').collect();
    let rules = match words[0] {
        "cfs" => CFS,
        "eevdf" => Scheduler {
            request: Time::ms(3),
            ..CFS
        },
        "spread" => Scheduler {
            placement: Placement::Spread,
            ..CFS
        },
        _ => Scheduler {
            placement: Placement::Numa,
            ..CFS
        },
    };
    let mut random = Random::seed_from_u64(1);
    let mut schedule = Schedule::new(machine, rules, words.len() - 1, &mut random);
    for (task, times) in schedule.tasks.iter_mut().zip(&words[1..]) {
        let (vruntime, deadline) = times.split_once('/').unwrap_or((times, "0"));
        (task.vruntime, task.deadline) = (micros(vruntime), micros(deadline));
    }
    for cpu in &mut schedule.cpus {
        cpu.phase = Time::ZERO;
    }
    schedule
}

fn micros(text: &str) -> Time {
    Time::us(text.parse().expect("a time"))
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

/// The number of a vCPU or a CPU, or a time, unless there is none.
fn optional(text: &str) -> Option<usize> {
    (!["none", "-"].contains(&text)).then(|| number(text))
}

/// Does one step of a scene, on this CPU.
fn act(schedule: &mut Schedule, cpu: &mut usize, step: &str) {
    let on = *cpu;
    let words: Vec<&str> = step.split(' ').collect();
    match words[..] {
        ["cpu", other] => *cpu = number(other),
        ["at", at, same, next] => {
            schedule.preempt(micros(at), on);
            let pick = schedule.pick(micros(at), on);
            assert_eq!(pick.map(|pick| pick.0), optional(next));
            if same != "next" {
                assert_eq!(pick.map(|pick| pick.1), Some(same == "other"));
            }
        }
        ["leave", at] => schedule.leave(micros(at), on),
        ["wake", vcpu, at, by, ref placed @ ..] => {
            let placed = match *placed {
                ["queued"] => Placed::Queued(on),
                ["preempts"] => Placed::Preempts(on),
                ["idle", cpu, time] => Placed::Idle(number(cpu), micros(time)),
                _ => unreachable!("{step} is nothing"),
            };
            let woken = schedule.wake(micros(at), number(vcpu), optional(by));
            assert_eq!(woken, placed);
        }
        ["near", by, idle] => {
            assert_eq!(schedule.idle_near(on, optional(by)), optional(idle));
        }
        ["pull", excess, pulls] => {
            let pulled = schedule.pull(Time::ZERO, on, number(excess));
            assert_eq!(pulled, pulls == "yes");
        }
        ["skip", vcpu] => schedule.skips(number(vcpu)),
        ["yield", vcpu, to, other] => {
            assert_eq!(schedule.yield_to(number(vcpu), number(to)), optional(other));
        }
        ["drop"] => schedule.cpus[on].queue.clear(),
        ["busy", first, last] => (number(first)..=number(last)).for_each(|cpu| {
            schedule.cpus[cpu].current = Some(0);
        }),
        ["reserve"] => schedule.reserve(on, true),
        ["release"] => schedule.reserve(on, false),
        ["phase", at] => schedule.cpus[on].phase = micros(at),
        ["idles", time] => schedule.cpus[on].mean_idle = micros(time),
        ["set", vcpu, time] => schedule.tasks[number(vcpu)].vruntime = micros(time),
        ["owe", vcpu, lag] => schedule.tasks[number(vcpu)].lag = lag.parse().expect("a time"),
        ["end", end] => assert_eq!(
            schedule.slice_end(on),
            optional(end).map(|end| Time::us(end as u64))
        ),
        ["has", vcpu, time] => assert_eq!(schedule.tasks[number(vcpu)].vruntime, micros(time)),
        ["deadline", vcpu, at] => assert_eq!(schedule.tasks[number(vcpu)].deadline, micros(at)),
        ["on", vcpu, cpu] => assert_eq!(schedule.cpu(number(vcpu)), number(cpu)),
        ["waiting", vcpus] => assert_eq!(schedule.waiting(on), number(vcpus)),
        ["buddies", skip, next] => {
            let buddies = (schedule.cpus[on].skip, schedule.cpus[on].next);
            assert_eq!(buddies, (optional(skip), optional(next)));
        }
        ["are", "on", ref cpus @ ..] => {
            let cpus = cpus.iter().map(|cpu| number(cpu));
            assert!(cpus.eq((0..schedule.tasks.len()).map(|vcpu| schedule.cpu(vcpu))));
        }
        _ => unreachable!("{step} is nothing"),
    }
}

/// Fails where another vCPU is next, at another time, on another CPU, or with another claim.
#[test]
fn scenes_are_as_computed() {
    let mut machine = plain_but("");
    let scenes = include_str!("tests/scenes.txt").replace(",\n    ", ", ");
    for row in rows(&scenes) {
        println!("{row}");
        if let Some(keys) = row.strip_prefix("machine ") {
            machine = plain_but(keys);
        } else {
            let (begin, steps) = row.split_once(": ").expect(row);
            let (mut schedule, mut cpu) = (schedule(&machine, begin), 0);
            for step in steps.split(", ") {
                act(&mut schedule, &mut cpu, step);
            }
        }
    }
}
