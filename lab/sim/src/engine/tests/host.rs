//! Halts, kicks, and preemptions.

use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::{Atomic, Kick, Pause, WakeClass};
use overlock_core::{Instant, Platform};

use super::*;
use crate::Sim;
use crate::host::PauseExit;
use crate::trace::What;

/// Two vCPUs on two CPUs, with a trace.
fn traced(host: &Host, body: impl Fn(usize) -> u64) -> Outcome<u64> {
    let machine = machine(2, 1);
    let setup = Setup {
        trace: true,
        ..setup(&machine, host, 2)
    };
    run(&setup, body, || true).unwrap()
}

/// Sleeps while `word` holds 0, at the latest until this time.
fn halt(word: &Own, until: Option<u64>) {
    let until = until.map(|nanos| Instant::from_nanos(nanos).into());
    Sim::halt(&word.0, 0, until, WakeClass::Waiter);
}

/// vCPU 1 halts at 10,000: a load of 2, and an exit of 700. Then vCPU 0 kicks it, which takes 900
/// and acts after half of that.
fn kicked(host: &Host, kick: u64) -> Outcome<u64> {
    let word = Own::new();
    let body = |vcpu: usize| {
        if vcpu == 0 {
            at(Time::ns(kick));
            Sim::kick(&word.0, Kick::One);
        } else {
            at(BEGIN);
            halt(&word, None);
        }
        now().as_ns()
    };
    traced(host, body)
}

/// How many kicks of sleepers the trace shows.
fn kicks_shown<T>(outcome: &Outcome<T>) -> usize {
    let kicks = |mark: &&Mark| matches!(mark.what, What::Kicked(_));
    outcome.trace.iter().filter(kicks).count()
}

/// A CPU that has not slept yet runs the sleeper 2,900 after the kick; one that sleeps, after
/// 50,000, runs it 13,000 after the kick. Fails where the costs are mixed up, or the bound is
/// another.
#[test]
fn a_kick_wakes() {
    assert_eq!(kicked(&HOST, 20_000).results, [20_900, 20_450 + 2_900]);
    assert_eq!(kicks_shown(&kicked(&HOST, 20_000)), 1);
    assert_eq!(kicked(&HOST, 60_251).results, [61_151, 60_701 + 2_900]);
    assert_eq!(kicked(&HOST, 60_252).results, [61_152, 60_702 + 13_000]);
}

/// A guest that has found its word unchanged is woken by a kick during its exit. A thread has its
/// word compared later, by a load of its line (62), and finds it changed. Fails where a kick during
/// the exit is lost, or a trace shows it as the kick of a sleeper.
#[test]
fn a_kick_during_the_exit_ends_the_halt() {
    for (hypervisor, end) in [(true, 10_702), (false, 10_762)] {
        let host = Host { hypervisor, ..HOST };
        let word = Own::new();
        let body = |vcpu: usize| {
            if vcpu == 0 {
                at(Time::ns(9_900));
                word.0.store(u32::from(!hypervisor), Relaxed);
                Sim::kick(&word.0, Kick::One);
            } else {
                at(BEGIN);
                halt(&word, None);
            }
            now().as_ns()
        };
        let outcome = traced(&host, body);
        assert_eq!(outcome.results[1], end);
        assert_eq!((outcome.counts.kicks, outcome.counts.halts), (1, 0));
        assert_eq!(kicks_shown(&outcome), 0);
    }
}

/// A kick without sleepers takes 300 and has no effect. A later halt is not woken by it, but finds
/// its word changed by a load of 2.
#[test]
fn a_kick_before_the_halt_is_not_lost() {
    let word = Own::new();
    let body = |vcpu: usize| {
        if vcpu == 0 {
            word.0.store(1, Relaxed);
            at(BEGIN);
            Sim::kick(&word.0, Kick::One);
        } else {
            at(Time::ns(10_100));
            halt(&word, None);
        }
        now().as_ns()
    };
    let outcome = simulate(&machine(2, 1), &HOST, 2, body).unwrap();
    assert_eq!(outcome.results, [10_300, 10_102]);
    assert_eq!((outcome.counts.kicks, outcome.counts.halts), (1, 0));
}

/// Two vCPUs on one CPU: the second gets it when the first halts, which takes 1,702 from 10,000 on,
/// and a switch of 1,100. Fails where the next vCPU does not wait for the host.
#[test]
fn a_halt_lets_the_next_vcpu_run() {
    let (word, first) = (Own::new(), Cell::new(true));
    let body = |_| {
        if first.replace(false) {
            at(BEGIN);
            halt(&word, Some(50_000));
            return 0;
        }
        now().as_ns()
    };
    let outcome = simulate(&machine(1, 1), &HOST, 2, body).unwrap();
    assert_eq!(outcome.results.iter().sum::<u64>(), 12_802);
}

/// Each kick wakes one sleeper, in the order of their arrival.
#[test]
fn sleepers_are_kicked_in_their_order() {
    let word = Own::new();
    let body = |vcpu: usize| {
        if vcpu == 0 {
            at(BEGIN.times(5));
            (0..3).for_each(|_| Sim::kick(&word.0, Kick::One));
        } else {
            at(BEGIN.times(4 - vcpu as u64));
            halt(&word, None);
        }
        now()
    };
    let outcome = simulate(&machine(4, 1), &HOST, 4, body).unwrap();
    assert!(outcome.results[3] < outcome.results[2] && outcome.results[2] < outcome.results[1]);
}

#[test]
fn targets_are_not_kicked_with_the_waiters() {
    let word = Own::new();
    let body = |vcpu: usize| {
        let classes = [WakeClass::Target, WakeClass::Waiter];
        if vcpu == 0 {
            at(Time::us(20));
            Sim::kick(&word.0, Kick::One);
            Sim::kick(&word.0, Kick::All);
            at(Time::us(60));
            Sim::kick(&word.0, Kick::Target);
        } else {
            assert!(Sim::halt(&word.0, 0, None, classes[vcpu - 1]));
        }
        now()
    };
    let outcome = simulate(&machine(3, 1), &HOST, 3, body).unwrap();
    let woken = &outcome.results[1..];
    assert!(
        woken[0] > Time::us(60) && woken[1] < Time::us(60),
        "{woken:?}"
    );
}

/// The timeout is at 30,000; the CPU has not slept yet. A time that has passed causes no sleep.
#[test]
fn a_halt_ends_at_its_timeout() {
    for (until, end) in [(30_000, 32_900), (10_702, 10_702), (5_000, 10_702)] {
        let word = Own::new();
        let body = |_| {
            at(BEGIN);
            halt(&word, Some(until));
            now().as_ns()
        };
        let outcome = simulate(&machine(1, 1), &HOST, 1, body).unwrap();
        assert_eq!(outcome.results, [end]);
    }
}

/// A kick before the timeout makes that void: the second halt, for the same word, lasts until its
/// own timeout.
#[test]
fn an_old_timeout_wakes_no_vcpu() {
    let word = Own::new();
    let body = |vcpu: usize| {
        if vcpu == 0 {
            at(Time::ns(20_000));
            Sim::kick(&word.0, Kick::One);
        } else {
            at(BEGIN);
            halt(&word, Some(30_000));
            halt(&word, Some(40_000));
        }
        now().as_ns()
    };
    let outcome = simulate(&machine(2, 1), &HOST, 2, body).unwrap();
    assert_eq!(outcome.results, [20_900, 42_900]);
}

/// The host has learnt from the first sleep to poll for 10,000. A kick in that time costs the
/// sleeper 700; after it the CPU has been given away, and the wake-up takes 2,900.
#[test]
fn a_host_that_polls_wakes_faster() {
    let host = Host {
        poll: Time::us(200),
        ..HOST
    };
    for (kick, end) in [(50_251, 50_701 + 700), (50_253, 50_703 + 2_900)] {
        let word = Own::new();
        let body = |vcpu: usize| {
            if vcpu == 0 {
                for kick in [20_000, kick] {
                    at(Time::ns(kick));
                    Sim::kick(&word.0, Kick::One);
                }
            } else {
                for begin in [10_000, 40_000] {
                    at(Time::ns(begin));
                    halt(&word, None);
                }
            }
            now().as_ns()
        };
        let outcome = simulate(&machine(2, 1), &host, 2, body).unwrap();
        assert_eq!(outcome.results[1], end);
        for account in &outcome.accounts {
            assert_eq!(account.total(), outcome.elapsed);
        }
    }
}

/// Two vCPUs on one CPU. The host of vCPU 0 would poll from 95,700 to 105,700, but not while vCPU
/// 1, whose timeout is at 100,000, wants the CPU.
#[test]
fn a_host_stops_polling_when_another_vcpu_wants_the_cpu() {
    let host = Host {
        poll: Time::us(200),
        ..HOST
    };
    let word = Own::new();
    let sleep = |begin: u64, end: u64| {
        at(Time::ns(begin));
        halt(&word, Some(end));
    };
    let body = |vcpu: usize| {
        if vcpu == 0 {
            sleep(30_000, 40_000);
            sleep(95_000, 200_000);
        } else {
            sleep(0, 100_000);
        }
        now().as_ns()
    };
    let outcome = simulate(&machine(1, 1), &host, 2, body).unwrap();
    assert_eq!(outcome.results[1], 101_100);
}

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
        ..HOST
    };
    let seen = looks_at_preemptions(&threads);
    assert_eq!(seen[0], (false, true, vec![0]));
    assert_eq!(seen[1], (true, false, vec![0]));
}
