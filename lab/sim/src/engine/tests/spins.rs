//! Pauses, their limits, and pause-loop exits.

use super::*;

/// Conditions of a wait may count (`hybrid` and `rwsem_count` charge polls). Fails where the engine
/// judges a load twice, or not at all: each load is a hit or a transfer, and there are no others.
#[test]
fn each_load_is_judged_once() {
    let (word, judged) = (Own::new(), RefCell::new(Vec::new()));
    let changes = || {
        at(BEGIN);
        for _ in 0..5 {
            work(Time::us(1));
            let _ = word.0.fetch_add(1, Relaxed);
        }
    };
    let polls = || {
        at(BEGIN);
        let _ = Sim::wait_until(&word.0, Relaxed, Spin::Polls(500), |seen: u32| {
            judged.borrow_mut().push((now(), seen));
            seen == 5
        });
    };
    let traffic = scene(&exits(), &[&changes, &polls]).traffic;
    let judged = judged.into_inner();
    assert!(judged.is_sorted_by(|one, next| one.0 < next.0));
    let accesses = traffic.hits + traffic.near + traffic.far + traffic.memory;
    assert_eq!(accesses, 5 + judged.len() as u64);
}

/// The condition accesses another word once the first one has changed, so the engine cannot judge
/// it by itself. Fails where that load takes no time, or where the wait ends without it: 2 for the
/// load that hits, after the poll.
#[test]
fn a_condition_may_access_other_words() {
    let [word, other] = [Own::new(), Own::new()];
    let polled = Cell::new(0);
    let changes = || {
        for moment in [1, 2] {
            at(BEGIN + 1_000 * moment);
            word.0.store(1 + moment as u32, Relaxed);
        }
    };
    let waits = || {
        let _ = other.0.swap(3, Relaxed);
        at(BEGIN);
        let _ = Sim::wait_until(&word.0, Relaxed, Spin::Forever, |seen: u32| {
            seen > 1 && {
                polled.set(now().as_ns());
                other.0.load(Relaxed) == seen
            }
        });
    };
    let end = scene(&host(), &[&changes, &waits]).results[1];
    assert!(end > BEGIN + 2_000);
    assert_eq!(end - polled.get(), 2);
}

/// 31 spinners wait until a word has changed 50 times. Fails where one notices a change, and loads
/// the word, by events of its own: each poll takes three then, and one otherwise, the transfer of
/// the line. With 8 CPUs it fails where a spinner loses its CPU, or its time is taken, ahead of the
/// times of its polls.
#[test]
fn polls_in_vain_take_no_events() {
    for (cpus, interval) in [(32, Time::us(2)), (8, Time::us(300))] {
        let word = Own::new();
        let outcome = simulate(&machine(cpus, 1), &host(), 32, |vcpu| {
            if vcpu > 0 {
                return word.wait_for(50);
            }
            at(BEGIN);
            for _ in 0..50 {
                work(interval);
                word.0.fetch_add(1, Relaxed);
            }
        });
        for account in &outcome.accounts {
            let time = account.on_cpu() + account[State::Ready] + account[State::Ended];
            assert_eq!(time, outcome.elapsed);
        }
        assert_eq!(outcome.counts.preemptions > 0, cpus < 32);
        if cpus == 32 {
            let polls = 31 * 50;
            assert!(outcome.traffic.near >= polls, "each polls each time");
            assert!(outcome.events < polls * 3 / 2, "{} events", outcome.events);
            // 31 polls at intervals of 11 ns take most of 400 ns; until the next change they watch.
            let spun = outcome.accounts[1];
            assert!(spun[State::Memory] > Time::us(5) && spun[State::Spin] > Time::us(50));
        }
    }
}
