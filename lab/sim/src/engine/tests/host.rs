//! Halts, kicks, and preemptions.

use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::{Atomic, Kick, WakeClass};
use overlock_core::{Instant, Platform};

use super::*;
use crate::Sim;
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
