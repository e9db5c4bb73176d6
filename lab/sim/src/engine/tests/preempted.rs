//! Preemptions, yields, and the share of the CPUs that vCPUs get.

use overlock_core::Platform;
use overlock_core::platform::Pause;

use super::*;
use crate::Sim;
use crate::host::PauseExit;
use crate::trace::What;

/// Preemptions of lock holders and of waiters are counted as such.
#[test]
fn preempted_holders_and_waiters_are_counted() {
    let word = Own::new();
    let address = std::ptr::from_ref(&word).addr();
    let body = |vcpu: usize| {
        match vcpu {
            0 => holds(address),
            1 => waits(address),
            _ => {}
        }
        work(Time::ms(20));
        if vcpu == 0 {
            releases(address);
        }
    };
    let machine = machine(1, 1);
    let mut setup = setup(&machine, &HOST, 3);
    setup.trace = true;
    let outcome = run(&setup, body, || true).unwrap();
    let marks = |vcpu: usize| {
        let lost = outcome.trace.iter().filter(move |mark| mark.vcpu == vcpu);
        lost.filter(|mark| mark.what == What::Preempted).count() as u64
    };
    let counts = outcome.counts;
    assert!(counts.holders > 3 && counts.waiters > 3);
    assert_eq!([counts.holders, counts.waiters], [0, 1].map(marks));
    assert_eq!(counts.preemptions, (0..3).map(marks).sum());
}

/// Two vCPUs on one CPU pause for 10 ms each. One guest's host yields between them; that of two
/// guests has nobody to yield to. Fails where a host looks for a target in other guests.
#[test]
fn a_yield_stays_in_its_guest() {
    let host = Host {
        pause_exit: Some(PauseExit {
            window: Time::us(2),
            grow: 1,
            gap: Time::ns(56),
            cost: Time::ns(1_300),
        }),
        ..HOST
    };
    let machine = machine(1, 1);
    let counts = |guests| {
        let setup = Setup {
            guests,
            ..setup(&machine, &host, 2)
        };
        let body = |_| Sim::pause(Pause::Iterations(2_000_000));
        run(&setup, body, || true).unwrap().counts
    };
    assert!(counts(1).yields > 0);
    let apart = counts(2);
    assert_eq!(apart.yields, 0);
    assert!(apart.pause_exits > 0 && apart.preemptions > 0);
}

/// Two vCPUs on one CPU alternate by yielding: none is preempted. Fails where `rests` counts as a
/// preemption.
#[test]
fn a_yield_is_no_preemption() {
    let machine = machine(1, 1);
    let mut setup = setup(&machine, &HOST, 2);
    setup.trace = true;
    let body = |_| {
        for _ in 0..50 {
            work(Time::us(10));
            rest();
        }
    };
    let outcome = run(&setup, body, || true).unwrap();
    let is_preemption = |mark: &&Mark| mark.what == What::Preempted;
    assert!(outcome.trace.iter().filter(is_preemption).count() > 50);
    assert_eq!(outcome.counts.preemptions, 0);
}

/// Three other vCPUs compute on the two CPUs. When vCPU 1 has ended, one of the three on the other
/// CPU moves to its CPU. Fails where events of other guests are counted.
#[test]
fn other_guests_do_not_count() {
    let machine = machine(2, 1);
    let (mut moved, mut left) = (0, 0);
    for seed in 0..6 {
        let mut setup = setup(&machine, &HOST, 2);
        (setup.others, setup.trace, setup.seed) = (3, true, seed);
        setup.stop_after = Time::ms(1_000);
        let body = |vcpu: usize| work(Time::ms(60 * (1 - vcpu as u64)));
        let outcome = run(&setup, body, || true).unwrap();
        let (mut lost, mut moves) = ([0; 5], [0; 5]);
        let mut place = [None; 5];
        for mark in &outcome.trace {
            match mark.what {
                What::Preempted => lost[mark.vcpu] += 1,
                What::On(cpu) => {
                    let before = place[mark.vcpu].replace(cpu);
                    moves[mark.vcpu] += u64::from(before.is_some_and(|before| before != cpu));
                }
                _ => {}
            }
        }
        assert_eq!(outcome.counts.preemptions, lost[0] + lost[1]);
        assert_eq!(outcome.counts.migrations, moves[0] + moves[1]);
        left += lost[2..].iter().sum::<u64>();
        moved += moves[2..].iter().sum::<u64>();
    }
    assert!(left > 0 && moved > 0, "{left} {moved}");
}

/// A preempted vCPU continues in its state when it has a CPU again. Fails where that is always
/// work.
#[test]
fn a_preempted_spinner_still_spins() {
    let body = |vcpu: usize| match vcpu {
        0 => Sim::pause(Pause::Iterations(2_000_000)),
        _ => work(Time::ms(10)),
    };
    let outcome = simulate(&machine(1, 1), &HOST, 2, body).unwrap();
    let [spins, works] = [0, 1].map(|vcpu| outcome.accounts[vcpu]);
    assert_eq!(
        (spins[State::Spin], spins[State::Work]),
        (Time::ms(10), Time::ZERO)
    );
    assert_eq!(
        (works[State::Spin], works[State::Work]),
        (Time::ZERO, Time::ms(10))
    );
    // A switch costs 1,100, and nothing else takes host time.
    let switches = (spins[State::Host] + works[State::Host]).as_ps();
    assert_eq!(switches % 1_100_000, 0);
    assert_eq!(spins.on_cpu() + works.on_cpu(), outcome.elapsed);
}

/// This many vCPUs compute on this many CPUs until they are stopped. Each gets its share.
#[test]
fn all_vcpus_get_the_same_share_of_the_cpus() {
    for (cpus, vcpus) in [(1, 3), (2, 4), (4, 12)] {
        let machine = machine(cpus, 1);
        let mut setup = setup(&machine, &HOST, vcpus);
        setup.stop_after = Time::ms(1_000);
        let body = |_| {
            while !stopped() {
                work(Time::us(20));
            }
        };
        let outcome = run(&setup, body, || true).unwrap();
        for account in &outcome.accounts {
            let share = account[State::Work].as_ns_f64() / 1e9 * vcpus as f64 / cpus as f64;
            assert!((share - 1.0).abs() < 0.03, "{vcpus} on {cpus}: {share}");
        }
    }
}

/// A body's panic reaches the caller, whose thread can simulate again. Fails where the thread still
/// counts as the vCPU's.
#[test]
fn a_panic_ends_the_simulation() {
    let panics = || {
        simulate(&machine(1, 1), &HOST, 2, |vcpu| {
            assert!(vcpu == 0, "as intended")
        })
    };
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(current(), None);
    assert!(simulate(&machine(1, 1), &HOST, 2, |_| ()).is_ok());
}

/// Fails where a platform without a simulation panics: locks are made and dropped there.
#[test]
fn outside_of_a_simulation_nobody_is_woken() {
    kick(0x1000);
    kick_all(0x1000);
}

/// Two vCPUs run on the threads of one core, and the other core has become idle: one of the two
/// moves there at the next balancing, and from then on both compute at full speed. Fails where only
/// queues are balanced.
#[test]
fn an_idle_core_takes_one_of_two_siblings() {
    // CPUs 0 and 2 are threads of core 0, CPU 1 is one of core 1.
    let machine = machine(2, 2);
    let body = |vcpu: usize| {
        for _ in 0..if vcpu == 1 { 0 } else { 1_000 } {
            work(Time::us(100));
        }
        now()
    };
    let outcome = simulate(&machine, &HOST, 3, body).unwrap();
    let balance = HOST.scheduler.balance.0;
    let slowly = Time::ms(100).scale(1.0 / machine.costs.sibling);
    for end in [outcome.results[0], outcome.results[2]] {
        assert!(
            end < Time::ms(100) + balance.times(3),
            "{end}, {slowly} as siblings"
        );
    }
    assert_eq!(outcome.counts.migrations, 1);
}

/// Two vCPUs share a CPU for three slices. Each returns whether it has seen the other preempted,
/// or itself, and the CPUs that it has seen.
fn looks_at_preemptions(host: &Host) -> Vec<(bool, bool, Vec<usize>)> {
    let looks = |me: usize| {
        let (mut other, mut own, mut cpus) = (false, false, Vec::new());
        for _ in 0..120 {
            work(Time::us(100));
            other |= preempted(1 - me);
            own |= preempted(me);
            cpus.extend(cpu());
        }
        cpus.dedup();
        (other, own, cpus)
    };
    let (machine, host) = (machine(1, 1), host.clone());
    simulate(&machine, &host, 2, looks).unwrap().results
}

/// Fails where a guest sees the machine's CPU, or where its host does not tell it, or tells it of
/// vCPUs that run.
#[test]
fn a_guest_sees_its_vcpus_and_which_of_them_are_preempted() {
    let seen = looks_at_preemptions(&HOST);
    let cpus: Vec<&[usize]> = seen.iter().map(|seen| &seen.2[..]).collect();
    assert_eq!(cpus, [[0], [1]]);
    assert!(seen.iter().any(|seen| seen.0) && !seen.iter().any(|seen| seen.1));
    let silent = Host {
        tells_preempted: false,
        ..HOST
    };
    assert!(!looks_at_preemptions(&silent).iter().any(|seen| seen.0));
}

/// Both run on CPU 0, so each knows that the vCPU which was there before is preempted.
#[test]
fn a_thread_sees_the_cpu_of_the_machine() {
    let threads = Host {
        hypervisor: false,
        tells_preempted: false,
        ..HOST
    };
    let seen = looks_at_preemptions(&threads);
    assert_eq!(seen[0], (false, true, vec![0]));
    assert_eq!(seen[1], (true, false, vec![0]));
    // Those that are told have the numbers of vCPUs.
    let told = Host {
        tells_preempted: true,
        ..threads
    };
    let guest = looks_at_preemptions(&HOST);
    assert_eq!(looks_at_preemptions(&told), guest);
}
