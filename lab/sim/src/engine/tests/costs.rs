//! Properties of accesses, spins, preemptions and futexes that no single figure shows.

use std::sync::atomic::AtomicUsize;

use super::*;

/// A locked instruction takes 8, a load or store 2. Fails where a word on the own stack has a cache
/// line: which words share one would depend on the compiler. Fails where a store to it enters the
/// buffer: it may be moved.
#[test]
fn the_own_stack_is_in_the_cache() {
    let outcome = simulate(&machine(1, 1), &host(), 1, |_| {
        at(BEGIN);
        let word = U32::ZERO;
        let _ = word.fetch_add(1, Relaxed);
        word.store(5, Relaxed);
        assert_eq!((word.load(Relaxed), now()), (5, Time::ns(BEGIN + 12)));
        let moved = Box::new(word);
        assert_eq!(moved.load(Relaxed), 5);
    });
    assert_eq!(outcome.traffic.hits, 3);
}

/// Another vCPU spins on a word of a stack. Fails where it does not learn of a change by the owner
/// of the stack.
#[test]
fn others_see_changes_of_a_stack() {
    let place = std::sync::atomic::AtomicPtr::<Own>::default();
    let done = Own::new();
    simulate(&machine(2, 1), &host(), 2, |vcpu| {
        if vcpu == 0 {
            let word = Own::new();
            place.store((&raw const word).cast_mut(), Relaxed);
            at(BEGIN + 1_000);
            word.0.store(1, Relaxed);
            done.wait_for(1);
        } else {
            at(BEGIN);
            // SAFETY: the first vCPU waits above before its word ends.
            unsafe { &*place.load(Relaxed) }.wait_for(1);
            done.0.store(1, Relaxed);
        }
    });
}

/// A word ends before its store is visible, and another takes its place. Fails where `drop` leaves
/// the store in the buffer.
#[test]
fn a_store_to_a_word_that_has_ended_is_forgotten() {
    simulate(&machine(1, 1), &host(), 1, |_| {
        let mut place = Box::new(std::mem::ManuallyDrop::new(Own::new()));
        at(BEGIN);
        place.0.store(5, Relaxed);
        // SAFETY: it is not used again before it is replaced.
        unsafe { std::mem::ManuallyDrop::drop(&mut *place) };
        *place = std::mem::ManuallyDrop::new(Own::new());
        work(Time::us(1));
        assert_eq!(place.0.load(Relaxed), 0);
    });
}

/// Two threads of a core share its caches. The second one loads the word while the first one's
/// exchange is under way, sees the old value, and spins again. Fails where a change is announced
/// before it has taken effect.
#[test]
fn a_sibling_sees_a_change_once_it_has_taken_effect() {
    for late in 0..40 {
        let word = Own::new();
        let outcome = simulate(&machine(1, 2), &host(), 2, |vcpu| {
            if vcpu == 0 {
                word.take();
                at(BEGIN + 400);
                work(Time::ps(late * 500));
                let _ = word.0.swap(2, Relaxed);
            } else {
                at(BEGIN);
                word.wait_for(2);
            }
        });
        assert!(outcome.elapsed < Time::ns(4 * BEGIN), "{late}");
    }
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
            at(6_000_000);
            word.0.store(1, Release);
        }
        _ => {
            while seen.0.load(Relaxed) == 0 && !stopped() {
                work(Time::us(1));
                let _ = word.0.load(Relaxed);
            }
        }
    };
    let end = simulate(&machine(2, 1), &host(), 3, body).elapsed;
    assert!(end < Time::ms(20), "{end:?}");
}

/// Two vCPUs on one CPU, whose slices end in the middle of locked instructions of 10 ms:
/// preemptions follow the effect. Fails where an instruction that has locked its line loses its CPU
/// before that.
#[test]
fn a_locked_instruction_takes_effect_before_its_vcpu_is_preempted() {
    let mut machine = machine(1, 1);
    machine.costs.locked = Time::ms(10);
    let words = [Own::new(), Own::new()];
    let outcome = simulate(&machine, &host(), 2, |vcpu| {
        words[vcpu].take();
        [(); 3].map(|()| {
            let begin = now();
            access(words[vcpu].0.address(), Access::Locked, now) - begin
        })
    });
    assert_eq!(outcome.results, [[Time::ms(10); 3]; 2]);
    assert!(outcome.counts.preemptions > 3);
}

/// Conditions of a wait may count (`hybrid` and `rwsem_count` charge polls). Fails where the engine
/// judges a load twice, or not at all: each load is a hit or a transfer, and there are no others.
#[test]
fn each_load_is_judged_once() {
    let (word, judged) = (Own::new(), RefCell::new(Vec::new()));
    let traffic = simulate(&machine(2, 1), &exits(), 2, |vcpu| {
        at(BEGIN);
        if vcpu == 0 {
            for _ in 0..5 {
                work(Time::us(1));
                let _ = word.0.fetch_add(1, Relaxed);
            }
        } else {
            let _ = Sim::wait_until(&word.0, Relaxed, Spin::Polls(500), |seen: u32| {
                judged.borrow_mut().push((now(), seen));
                seen == 5
            });
        }
    })
    .traffic;
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
    let ends = simulate(&machine(2, 1), &host(), 2, |vcpu| {
        if vcpu == 0 {
            for moment in [1, 2] {
                at(BEGIN + 1_000 * moment);
                word.0.store(1 + moment as u32, Relaxed);
            }
        } else {
            let _ = other.0.swap(3, Relaxed);
            at(BEGIN);
            let _ = Sim::wait_until(&word.0, Relaxed, Spin::Forever, |seen: u32| {
                seen > 1 && {
                    polled.set(now().as_ns());
                    other.0.load(Relaxed) == seen
                }
            });
        }
        now().as_ns()
    });
    let end = ends.results[1];
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

/// Fails where words on a stack have buckets by their addresses: two builds place them differently,
/// so that one finds in the bucket the core of an earlier call, and the other does not.
#[test]
fn words_on_a_stack_share_a_bucket() {
    let other = AtomicUsize::new(0);
    let body = |vcpu| {
        let words = [U32::ZERO, U32::ZERO];
        if vcpu == 0 {
            other.store(words[1].address(), Relaxed);
            Sim::halt(&words[0], 1, None);
            Sim::halt(&words[1], 0, None);
        } else {
            at(BEGIN);
            Sim::kick(other.load(Relaxed) as *const U32, Kick::One);
        }
        with(|engine| engine.buckets.len())
    };
    let host = Host::preset("threads").expect("a preset");
    assert_eq!(simulate(&machine(2, 1), host, 2, body).results, [1, 1]);
}
