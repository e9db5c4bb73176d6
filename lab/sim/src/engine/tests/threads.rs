//! Time slices of spinners, and futexes: threads have them, and vCPUs have not.

use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::{Atomic, FutexPlatform, Kick, Pause, Platform, WakeClass};

use super::*;
use crate::Sim;

/// Two threads on one CPU: the one that runs first spins until the other one has run.
fn spins(host: &Host, yields: bool) -> Time {
    let word = Own::new();
    let machine = machine(1, 1);
    let body = |_| {
        word.0.fetch_add(1, Relaxed);
        while word.0.load(Relaxed) < 2 {
            if yields {
                Sim::yield_slice(Sim::ticks());
            }
            Sim::pause(Pause::Nanos(150));
        }
        now()
    };
    let outcome = simulate(&machine, host, 2, body).unwrap();
    outcome.results[0].max(outcome.results[1])
}

/// Fails where a spinner keeps its CPU until the scheduler takes it.
#[test]
fn a_spinner_yields_after_its_slice() {
    assert!(spins(&Host::THREADS, false) > Time::ms(2));
    assert!(spins(&Host::THREADS, true) < Time::us(300));
    // A vCPU is not asked.
    assert_eq!(spins(&Host::KVM, true), spins(&Host::KVM, false));
}

/// Fails where a moved sleeper is woken by a kick for its former word, or not for its new one.
#[test]
fn a_sleeper_moves_to_another_word() {
    let (from, to) = (Own::new(), Own::new());
    let machine = machine(2, 1);
    let body = |vcpu: usize| {
        if vcpu == 1 {
            at(BEGIN);
            Sim::halt(&from.0, 0, None, WakeClass::Waiter);
            return now();
        }
        at(Time::us(30));
        assert!(Sim::requeue(&from.0, &to.0));
        Sim::kick(&from.0, Kick::One);
        at(Time::us(90));
        Sim::kick(&to.0, Kick::One);
        now()
    };
    let outcome = simulate(&machine, &Host::THREADS, 2, body).unwrap();
    assert!(outcome.results[1] > Time::us(90), "{:?}", outcome.results);
}

/// Four threads, each on a CPU of its own, call the kernel for one futex at the same time. Fails
/// where futex calls for one word are free of each other.
#[test]
fn calls_for_a_futex_wait_for_its_bucket() {
    let word = Own::new();
    let machine = machine(4, 1);
    let ends = |bucket_hold, bucket_lines| {
        let host = Host {
            bucket_hold,
            bucket_lines,
            ..Host::THREADS
        };
        let body = |_| {
            at(BEGIN);
            assert!(
                !Sim::halt(&word.0, 1, None, WakeClass::Waiter),
                "it has changed"
            );
            now()
        };
        let mut ends = simulate(&machine, &host, 4, body).unwrap().results;
        ends.sort_unstable();
        ends
    };
    let apart = |ends: &[Time]| ends[3] - ends[0];
    assert!(apart(&ends(Time::ZERO, 0)) < Time::us(1));
    assert!(apart(&ends(Time::us(2), 0)) > Time::us(5));
    // The bucket's lines move from core to core.
    assert!(apart(&ends(Time::ZERO, 16)) > machine.costs.socket.times(16 * 2));
}
