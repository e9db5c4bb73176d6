//! Pauses, their limits, and pause-loop exits.

use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::{Atomic, Pause, WakeClass};
use overlock_core::{Instant, Platform, Spin};

use super::*;
use crate::Sim;
use crate::host::PauseExit;
use crate::trace::What;

fn pause_exits() -> Host {
    Host {
        pause_exit: Some(PauseExit {
            window: Time::us(2),
            grow: 2,
            gap: Time::ns(56),
            cost: Time::ns(1_300),
        }),
        ..HOST
    }
}

/// 5 ns an iteration: 1,995 ns are short enough. 10,000 are 2,000, 4,000 and a rest, with an exit
/// in between. Fails where the window ends early or late, or does not grow.
#[test]
fn long_pauses_leave_the_guest() {
    for (iterations, end, exits) in [(399, 11_995, 0), (1_000, 16_300, 1), (2_000, 22_600, 2)] {
        let body = |_| {
            at(BEGIN);
            Sim::pause(Pause::Iterations(iterations));
            now()
        };
        let outcome = simulate(&machine(1, 1), &pause_exits(), 1, body).unwrap();
        assert_eq!(
            (outcome.results[0], outcome.counts.pause_exits),
            (Time::ns(end), exits)
        );
    }
}

/// A pause of 47 ns, 140 cycles at 3 GHz, is longer than the gap between the pauses of a loop may
/// be if it is counted from their beginnings. 42 iterations take 1,974 ns, 43 leave the guest.
/// Fails where each pause begins a loop of its own.
#[test]
fn a_loop_may_have_long_pauses() {
    let mut machine = machine(1, 1);
    machine.costs.turn = Time::ns(47);
    let exits = Host {
        pause_exit: pause_exits().pause_exit.map(|exit| PauseExit {
            gap: Time::ns(40),
            ..exit
        }),
        ..pause_exits()
    };
    for (iterations, end, exits_counted) in [(42, 11_974, 0), (43, 13_321, 1)] {
        let body = |_| {
            at(BEGIN);
            (0..iterations).for_each(|_| Sim::pause(Pause::Iterations(1)));
            now()
        };
        let outcome = simulate(&machine, &exits, 1, body).unwrap();
        assert_eq!(
            (outcome.results[0], outcome.counts.pause_exits),
            (Time::ns(end), exits_counted)
        );
    }
}

/// The same by time. Fails where a delay costs nothing, or does not count as spinning.
#[test]
fn long_delays_leave_the_guest() {
    for (nanos, end, exits) in [(1_995, 11_995, 0), (5_000, 16_300, 1)] {
        let body = |_| {
            at(BEGIN);
            Sim::pause(Pause::Delay(nanos));
            now()
        };
        let outcome = simulate(&machine(1, 1), &pause_exits(), 1, body).unwrap();
        assert_eq!(
            (outcome.results[0], outcome.counts.pause_exits),
            (Time::ns(end), exits)
        );
    }
}

/// A waiter's first poll ends at 10,092. It leaves the guest at 12,092 for 1,300, polls again,
/// which takes 2, and so on. With growth the second window is twice as long.
#[test]
fn long_waits_leave_the_guest() {
    for (grow, end, exits) in [(1, 20_005, 3), (2, 20_002, 2)] {
        let host = Host {
            pause_exit: pause_exits()
                .pause_exit
                .map(|exit| PauseExit { grow, ..exit }),
            ..pause_exits()
        };
        let word = Own::new();
        let body = |_| {
            at(BEGIN);
            let limit = Spin::Until(Instant::from_nanos(20_000));
            let seen = Sim::wait_until(&word.0, Relaxed, limit, |seen: u32| seen == 1);
            assert_eq!(seen, Err(0));
            now()
        };
        let outcome = simulate(&machine(1, 1), &host, 1, body).unwrap();
        assert_eq!(
            (outcome.results[0], outcome.counts.pause_exits),
            (Time::ns(end), exits)
        );
    }
}

/// 10 polls are a load and 9 iterations, which are 45 ns, and the load at the end takes 2.
#[test]
fn a_wait_ends_after_its_iterations() {
    let word = Own::new();
    let body = |_| {
        at(BEGIN);
        let _ = Sim::wait_until(&word.0, Relaxed, Spin::Polls(10), |seen: u32| seen == 1);
        now()
    };
    let outcome = simulate(&machine(1, 1), &HOST, 1, body).unwrap();
    assert_eq!(outcome.results[0], Time::ns(10_000 + 92 + 45 + 2));
}

/// One poll is one load: the first one, which takes 92 ns.
#[test]
fn a_wait_of_one_poll_loads_once() {
    let word = Own::new();
    let body = |_| {
        at(BEGIN);
        let _ = Sim::wait_until(&word.0, Relaxed, Spin::Polls(1), |seen: u32| seen == 1);
        now()
    };
    let outcome = simulate(&machine(1, 1), &HOST, 1, body).unwrap();
    assert_eq!(outcome.results[0], Time::ns(10_000 + 92));
}

/// 1,000 polls are 999 iterations, 4,995 ns: 2,000 until the processor notices, 2,995 after an exit
/// of 1,300 and a poll of 2. Fails where time out of the guest uses polls up.
#[test]
fn an_exit_uses_no_polls_up() {
    let word = Own::new();
    let body = |_| {
        at(BEGIN);
        let _ = Sim::wait_until(&word.0, Relaxed, Spin::Polls(1_000), |seen: u32| seen == 1);
        now()
    };
    let outcome = simulate(&machine(1, 1), &pause_exits(), 1, body).unwrap();
    assert_eq!(outcome.counts.pause_exits, 1);
    assert_eq!(
        outcome.results[0],
        Time::ns(10_092 + 2_000 + 1_300 + 2 + 2_995 + 2)
    );
}

/// Two waiters on one CPU have 2,000,000 polls each, which are 10 ms of iterations, and slices of
/// 4 ms. Fails where time without a CPU uses polls up.
#[test]
fn a_preemption_uses_no_polls_up() {
    let words = [Own::new(), Own::new()];
    let body = |vcpu: usize| {
        at(BEGIN);
        let limit = Spin::Polls(2_000_000);
        let _ = Sim::wait_until(&words[vcpu].0, Relaxed, limit, |seen: u32| seen == 1);
    };
    let outcome = simulate(&machine(1, 1), &HOST, 2, body).unwrap();
    assert!(outcome.counts.preemptions > 2);
    for account in &outcome.accounts {
        let spun = account[State::Spin];
        let off = spun.max(Time::ms(10)) - spun.min(Time::ms(10));
        assert!(off <= Time::ns(100), "{spun:?}");
    }
}

/// After an exit the window is 4,000 ns, so 3,500 are not noticed; after a sleep they are. Fails
/// where `put_on` does not reset the window.
#[test]
fn a_vcpu_scheduled_anew_has_the_first_window() {
    let word = Own::new();
    let body = |_| {
        at(BEGIN);
        [false, false, true].map(|sleeps| {
            if sleeps {
                let until = Instant::from_nanos(now().as_ns() + 5_000);
                Sim::halt(&word.0, 0, Some(until.into()), WakeClass::Waiter);
            }
            let begin = now();
            Sim::pause(Pause::Iterations(700));
            let end = now();
            work(Time::us(1));
            end - begin
        })
    };
    let outcome = simulate(&machine(1, 1), &pause_exits(), 1, body).unwrap();
    assert_eq!(outcome.results[0], [4_800, 3_500, 4_800].map(Time::ns));
}

/// Two vCPUs on one CPU; each pause of the first takes longer than its slice, so none lasts 20 ms
/// without interruption. Fails where the loop of pauses then counts from time 0.
#[test]
fn a_preempted_pause_is_not_a_longer_one() {
    let host = Host {
        pause_exit: pause_exits().pause_exit.map(|exit| PauseExit {
            window: Time::ms(20),
            ..exit
        }),
        ..pause_exits()
    };
    let body = |vcpu: usize| {
        if vcpu == 0 {
            work(Time::ms(15));
            (0..4).for_each(|_| Sim::pause(Pause::Iterations(1_000_000)));
        } else {
            work(Time::ms(60));
        }
    };
    let outcome = simulate(&machine(1, 1), &host, 2, body).unwrap();
    assert!(outcome.counts.preemptions > 4);
    assert_eq!(outcome.counts.pause_exits, 0);
}

/// One vCPU works and three spin for it, on one CPU. A spinner that has left the guest yields its
/// CPU to a preempted one, so the worker need not wait for three slices. Fails where no spinner
/// yields, where no vCPU counts as preempted, or where yields count as preemptions.
#[test]
fn spinners_yield_to_preempted_vcpus() {
    let scheduler = Scheduler {
        wakeup: Time::ms(50),
        ..HOST.scheduler
    };
    let elapsed = |host: Host| {
        let word = Own::new();
        let body = |vcpu: usize| match vcpu {
            0 => {
                work(Time::ms(20));
                word.0.store(1, Relaxed);
            }
            _ => {
                // Until the worker has had a CPU, and lost it.
                work(Time::ms(5));
                let _ = Sim::wait_until(&word.0, Relaxed, Spin::Forever, |seen: u32| seen == 1);
                // It is in the guest again.
                assert!(!with(|engine| engine.vcpus[vcpu].spinning));
            }
        };
        let host = Host { scheduler, ..host };
        let machine = machine(1, 1);
        let mut setup = setup(&machine, &host, 4);
        setup.trace = true;
        let outcome = run(&setup, body, || true).unwrap();
        let counts = outcome.counts;
        assert_eq!(counts.yields > 0, host.pause_exit.is_some());
        let is_preemption = |mark: &&Mark| mark.what == What::Preempted;
        let given = outcome.trace.iter().filter(is_preemption).count() as u64 - counts.preemptions;
        assert!(given <= counts.yields && (given > 0) == (counts.yields > 0));
        outcome.elapsed
    };
    let (yielding, slices) = (elapsed(pause_exits()), elapsed(HOST));
    assert!(
        yielding < Time::ms(40) && slices > Time::ms(60),
        "{yielding} {slices}"
    );
}

/// Conditions of a wait may count (`hybrid` and `rwsem_count` charge polls). Fails where the engine
/// judges a load twice, or not at all: each load is a hit or a transfer, and there are no others.
#[test]
fn each_load_is_judged_once() {
    let word = Own::new();
    let body = |vcpu: usize| {
        at(BEGIN);
        if vcpu == 0 {
            for _ in 0..5 {
                work(Time::us(1));
                let _ = word.0.fetch_add(1, Relaxed);
            }
            return Vec::new();
        }
        let judged = RefCell::new(Vec::new());
        let _ = Sim::wait_until(&word.0, Relaxed, Spin::Polls(500), |seen: u32| {
            judged.borrow_mut().push((now(), seen));
            seen == 5
        });
        judged.into_inner()
    };
    let outcome = simulate(&machine(2, 1), &pause_exits(), 2, body).unwrap();
    let judged = &outcome.results[1];
    assert!(
        judged.is_sorted_by(|one, next| one.0 < next.0),
        "{judged:?}"
    );
    let traffic = &outcome.traffic;
    let accesses = traffic.hits + traffic.near + traffic.far + traffic.memory;
    assert_eq!(accesses, 5 + judged.len() as u64);
}

/// The condition accesses another word once the first one has changed, so the engine cannot judge
/// it by itself. Fails where that load takes no time, or where the wait ends without it: 2 for the
/// load that hits, after the poll.
#[test]
fn a_condition_may_access_other_words() {
    let [word, other] = [Own::new(), Own::new()];
    let body = |vcpu: usize| {
        if vcpu == 0 {
            at(BEGIN);
            for value in [2, 3] {
                work(Time::us(1));
                word.0.store(value, Relaxed);
            }
            return Time::ZERO;
        }
        let _ = other.0.swap(3, Relaxed);
        at(BEGIN);
        let polled = Cell::new(Time::ZERO);
        let _ = Sim::wait_until(&word.0, Relaxed, Spin::Forever, |seen: u32| {
            seen > 1 && {
                polled.set(now());
                other.0.load(Relaxed) == seen
            }
        });
        assert!(now() > BEGIN + Time::us(2));
        now() - polled.get()
    };
    let outcome = simulate(&machine(2, 1), &HOST, 2, body).unwrap();
    assert_eq!(outcome.results[1], Time::ns(2));
}

/// A spin for a time has the iterations that loops of single pauses have, with exits in between.
/// Fails where exits are not noticed within it, or where their time does not count.
#[test]
fn a_spin_for_a_time_is_a_loop_of_pauses() {
    fn loops(nanos: u64) {
        let start = Sim::now();
        while Sim::now().nanos_since(start) < nanos {
            Sim::pause(Pause::Iterations(1));
        }
    }
    let at_once = |nanos| Sim::pause(Pause::Nanos(nanos));
    for spin in [loops, at_once] {
        for (nanos, end, exits) in [(7, 10_010, 0), (3_300, 13_305, 1), (9_001, 19_005, 2)] {
            let body = |_| {
                at(BEGIN);
                spin(nanos);
                now()
            };
            let outcome = simulate(&machine(1, 1), &pause_exits(), 1, body).unwrap();
            let seen = (outcome.results[0], outcome.counts.pause_exits);
            assert_eq!(seen, (Time::ns(end), exits));
        }
    }
}

/// Fails where a spinner that was preempted goes on with iterations that it had not begun: its time
/// is over when it has a CPU again.
#[test]
fn a_spin_for_a_time_ends_after_a_preemption() {
    let mut machine = machine(1, 1);
    machine.costs.turn = Time::ns(70);
    let spun = |spin: fn(u64)| {
        let body = |_| {
            at(BEGIN);
            spin(6_000_000);
            now()
        };
        let outcome = simulate(&machine, &HOST, 2, body).unwrap();
        (outcome.results, outcome.counts.preemptions)
    };
    let alone = spun(|nanos| {
        let start = Sim::now();
        while Sim::now().nanos_since(start) < nanos {
            Sim::pause(Pause::Iterations(1));
        }
    });
    assert!(alone.1 > 0);
    assert_eq!(spun(|nanos| Sim::pause(Pause::Nanos(nanos))), alone);
}
