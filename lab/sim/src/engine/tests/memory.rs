//! Accesses: when they take effect and become visible.

use super::*;

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
    let body = |vcpu: usize| {
        let address = std::ptr::from_ref(&words[vcpu].0).addr();
        words[vcpu].take();
        [(); 3].map(|()| {
            let begin = now();
            access(address, Access::Locked, now) - begin
        })
    };
    let outcome = simulate(&machine, &host(), 2, body);
    assert_eq!(outcome.results, [[Time::ms(10); 3]; 2]);
    assert!(outcome.counts.preemptions > 3);
}
