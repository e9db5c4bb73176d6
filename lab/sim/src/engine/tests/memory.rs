//! Accesses: when they take effect and become visible.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::platform::Atomic;
use overlock_core::{Platform, Spin};

use super::*;
use crate::Sim;

/// Two threads of a core share its caches. The second one loads the word while the first one's
/// exchange is under way, sees the old value, and spins again. Fails where a change is announced
/// before it has taken effect.
#[test]
fn a_sibling_sees_a_change_once_it_has_taken_effect() {
    for late in 0..40 {
        let (word, begin) = (Own::new(), BEGIN);
        let body = |vcpu: usize| {
            if vcpu == 0 {
                let _ = word.0.swap(1, Relaxed);
                at(begin + Time::ns(400) + Time::ps(late * 500));
                let _ = word.0.swap(2, Relaxed);
            } else {
                at(begin);
                let _ = Sim::wait_until(&word.0, Acquire, Spin::Forever, |seen: u32| seen == 2);
            }
        };
        let outcome = simulate(&machine(1, 2), &HOST, 2, body);
        let end = outcome.map(|outcome| outcome.elapsed);
        assert!(end.is_ok_and(|end| end < begin.times(4)), "{late}: {end:?}");
    }
}

/// A line that a sibling has changed is a hit, 2 ns; from another core it takes 60 ns more.
#[test]
fn a_sibling_has_the_line() {
    for (cores, threads, takes) in [(1, 2, 2), (2, 1, 62)] {
        let time = after_a_change(&machine(cores, threads), |word| {
            assert_eq!(word.load(Relaxed), 1);
        });
        assert_eq!(time, Time::ns(takes));
    }
}

/// Returns how long `what` takes the second vCPU, once the first one has changed the word to 1.
fn after_a_change(machine: &Machine, what: impl Fn(&U32)) -> Time {
    let word = Own::new();
    let body = |vcpu: usize| {
        if vcpu == 0 {
            at(BEGIN);
            let _ = word.0.swap(1, Relaxed);
            return Time::ZERO;
        }
        // Beside its sibling a vCPU computes slowly: this is after the swap.
        at(BEGIN.times(3));
        let begin = now();
        what(&word.0);
        now() - begin
    };
    simulate(machine, &HOST, 2, body).unwrap().results[1]
}

/// A spinner that is preempted between two polls polls again when it has a CPU. Fails where `watch`
/// accepts that the line is there: other vCPUs on the CPU may have fetched it since.
#[test]
fn a_change_is_seen_by_a_spinner_that_was_preempted() {
    let (word, seen) = (Own::new(), Own::new());
    // The first and the third share one CPU, with slices of 4 ms or little more.
    let body = |vcpu: usize| match vcpu {
        0 => {
            let _ = Sim::wait_until(&word.0, Acquire, Spin::Forever, |value: u32| {
                if value == 0 {
                    work(Time::ms(5));
                }
                value == 1
            });
            seen.0.store(1, Release);
        }
        1 => {
            at(Time::ms(6));
            word.0.store(1, Release);
        }
        _ => {
            while seen.0.load(Relaxed) == 0 && !stopped() {
                work(Time::us(1));
                let _ = word.0.load(Relaxed);
            }
        }
    };
    let end = simulate(&machine(2, 1), &HOST, 3, body).map(|outcome| outcome.elapsed);
    assert!(end.is_ok_and(|end| end < Time::ms(20)), "{end:?}");
}

/// Exact to the nanosecond. The line is the storer's until the waiter, whose first load is at
/// 10,000, has a copy 60 later; the hit takes 2. The store at 10,500 takes 2; the copy is
/// invalidated 35 after its begin, and the line is there 60 after it, and the store visible 2
/// later. The waiter polls every 5, so at 10,062 + 475. Its request arrives while the line is under
/// way; the snoop leaves at 10,562, and the data arrive 40 later. Fails where a waiter loads
/// between its polls, or is resumed with an old value of the line.
#[test]
fn a_waiter_sees_a_store_when_its_line_arrives() {
    let word = Own::new();
    let body = |vcpu: usize| {
        if vcpu == 0 {
            word.0.store(0, Relaxed);
            at(Time::ns(10_500));
            word.0.store(1, Release);
        } else {
            at(BEGIN);
            let seen = Sim::wait_until(&word.0, Acquire, Spin::Forever, |seen: u32| seen == 1);
            assert_eq!(seen, Ok(1));
        }
        now()
    };
    let outcome = simulate(&machine(2, 1), &HOST, 2, body).unwrap();
    assert_eq!(outcome.results, [Time::ns(10_502), Time::ns(10_604)]);
    assert_eq!(outcome.accounts[1][State::Spin], Time::ns(475));
    assert_eq!(outcome.accounts[1][State::Memory], Time::ns(62 + 67));
}

/// A locked instruction waits until the store before it is visible. The store's line arrives at
/// 10,060, and a hit takes 2; the exchange of an owned line takes 8.
#[test]
fn a_locked_instruction_waits_for_the_store_before_it() {
    let (word, own) = (Own::new(), Own::new());
    let body = |vcpu: usize| {
        if vcpu == 0 {
            let _ = word.0.swap(1, Relaxed);
        } else {
            let _ = own.0.swap(1, Relaxed);
            at(BEGIN);
            word.0.store(2, Relaxed);
            let stored = now();
            let _ = own.0.load(Relaxed);
            let loaded = now();
            let _ = own.0.swap(2, Relaxed);
            assert_eq!([stored, loaded], [Time::ns(10_002), Time::ns(10_004)]);
        }
        now()
    };
    let outcome = simulate(&machine(2, 1), &HOST, 2, body).unwrap();
    assert_eq!(outcome.results[1], Time::ns(10_070));
}

/// Fails where a store to a contended line delays its vCPU.
#[test]
fn a_store_that_waits_for_its_line_delays_nothing() {
    let word = Own::new();
    let body = |vcpu: usize| {
        at(BEGIN);
        if vcpu < 2 {
            let _ = word.0.swap(1, Relaxed);
            return Time::ZERO;
        }
        // The other requests are served first, or at least one of them is under way.
        at(Time::ns(10_001));
        word.0.store(1, Relaxed);
        work(Time::us(1));
        now()
    };
    let outcome = simulate(&machine(3, 1), &HOST, 3, body).unwrap();
    assert_eq!(outcome.results[2], Time::ns(11_003));
}

/// vCPU 0 owns the line when vCPU 1 requests it at 10,000; the snoop arrives at 10,035. vCPU 0
/// begins a locked instruction of 8 at `begin`. Returns what each saw, and when it was done.
fn contended(begin: u64) -> [(u32, Time); 2] {
    let word = Own::new();
    let body = |vcpu: usize| {
        if vcpu == 0 {
            let _ = word.0.fetch_add(1, Relaxed);
            at(Time::ns(begin));
        } else {
            at(BEGIN);
        }
        (word.0.fetch_add(1, Relaxed), now())
    };
    let outcome = simulate(&machine(2, 1), &HOST, 2, body).unwrap();
    assert_eq!(word.0.load(Relaxed), 3);
    [outcome.results[0], outcome.results[1]]
}

/// It would lock the line at 10,036.8, but the line has left; vCPU 1 has it at 10,060 and is done 8
/// later. The request of 10,036.8 arrives meanwhile; snoop and data take 40 from 10,068 on. Fails
/// where an instruction that has lost its line goes on, or takes effect before it begins again.
#[test]
fn a_locked_instruction_that_loses_its_line_begins_again() {
    let ends = [(2, Time::ns(10_116)), (1, Time::ns(10_068))];
    assert_eq!(contended(10_032), ends);
}

/// It locks the line at 10,033.8 and ends at 10,037, when the data leave. Fails where `locks_line`
/// does not keep the line.
#[test]
fn a_locked_instruction_that_has_locked_its_line_ends_first() {
    let ends = [(1, Time::ns(10_037)), (2, Time::ns(10_070))];
    assert_eq!(contended(10_029), ends);
}

/// Two vCPUs on one CPU, whose slices end in the middle of locked instructions of 10 ms:
/// preemptions follow the effect. Fails where an instruction that has locked its line loses its CPU
/// before that.
#[test]
fn a_locked_instruction_takes_effect_before_its_vcpu_is_preempted() {
    let mut machine = machine(1, 1);
    machine.costs.locked = Time::ms(10);
    let words = [Own::new(), Own::new()];
    let body = |vcpu: usize| {
        let address = std::ptr::from_ref(&words[vcpu].0).addr();
        let _ = words[vcpu].0.swap(1, Relaxed);
        [(); 3].map(|()| {
            let begin = now();
            access(address, Access::Locked, now) - begin
        })
    };
    let outcome = simulate(&machine, &HOST, 2, body).unwrap();
    assert_eq!(outcome.results, [[Time::ms(10); 3]; 2]);
    assert!(outcome.counts.preemptions > 3);
}

/// Two threads of a core compute half as fast each. Fails where `work` ignores siblings, or counts
/// all CPUs.
#[test]
fn siblings_compute_slowly() {
    let body = |_| work(Time::us(100));
    let elapsed = |machine: &Machine| simulate(machine, &HOST, 2, body).unwrap().elapsed;
    assert_eq!(elapsed(&machine(2, 1)), Time::ns(101_100));
    // The first one begins alone.
    assert_eq!(elapsed(&machine(1, 2)), Time::ns(201_100));
    // One of another guest computes, too.
    let machine = machine(1, 2);
    let beside = |others| {
        let mut setup = setup(&machine, &HOST, 1);
        setup.others = others;
        run(&setup, body, || true).unwrap().elapsed
    };
    assert_eq!([0, 1].map(beside), [101_100, 201_100].map(Time::ns));
}
