//! Polls in vain, which are done ahead of their times.

use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::Atomic;
use overlock_core::{Platform, Spin};

use super::*;
use crate::Sim;

/// So many spinners wait until a word has changed so often.
const SPINNERS: usize = 31;
const CHANGES: u32 = 50;

/// Runs them on so many CPUs, one of which has the vCPU that changes the word at these intervals.
fn spins(cpus: usize, interval: Time) -> Outcome<()> {
    let word = Own::new();
    let body = |vcpu: usize| {
        if vcpu == 0 {
            at(BEGIN);
            for _ in 0..CHANGES {
                work(interval);
                word.0.fetch_add(1, Relaxed);
            }
        } else {
            let is_last = |seen: u32| seen == CHANGES;
            Sim::wait_until(&word.0, Relaxed, Spin::Forever, is_last).expect("it has no limit");
        }
    };
    simulate(&machine(cpus, 1), &HOST, 1 + SPINNERS, body).expect("all of them see the last change")
}

/// Fails where a spinner notices a change, and loads the word, by events of its own: each poll
/// takes three then, and one otherwise, the transfer of the line.
#[test]
fn polls_in_vain_take_no_events() {
    let outcome = spins(1 + SPINNERS, Time::us(2));
    let polls = SPINNERS as u64 * u64::from(CHANGES);
    assert!(outcome.traffic.near >= polls, "each polls each time");
    assert!(outcome.events < polls * 3 / 2, "{} events", outcome.events);
    // 31 polls at intervals of 10 ns take most of 400 ns; until the next change they watch.
    for account in &outcome.accounts[1..] {
        assert_eq!(account.on_cpu() + account[State::Ended], outcome.elapsed);
        assert!(account[State::Memory] > Time::us(5) && account[State::Spin] > Time::us(50));
    }
}

/// Fails where a spinner loses its CPU, or its time is taken, ahead of the times of its polls.
#[test]
fn spinners_without_a_cpu_do_not_poll() {
    let outcome = spins(8, Time::us(300));
    assert!(outcome.counts.preemptions > 0);
    for account in &outcome.accounts {
        let time = account.on_cpu() + account[State::Ready] + account[State::Ended];
        assert_eq!(time, outcome.elapsed);
    }
}
