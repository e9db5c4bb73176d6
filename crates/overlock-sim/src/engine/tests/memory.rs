//! Accesses: when they take effect, and who sees them.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::platform::{Atomic, Zero};
use overlock_core::{Platform, Spin};

use super::*;
use crate::Sim;
use crate::word::U32;

/// Shares its cache line with nothing else.
#[derive(Debug)]
#[repr(align(128))]
struct Own(U32);

impl Own {
    const fn new() -> Self {
        Own(U32::ZERO)
    }
}

/// Fails where an access that finds its line, but is interrupted by an event, is credited for the time since an earlier one that
/// had waited.
#[test]
fn a_store_that_hits_gives_no_time_back() {
    let (word, other) = (Own::new(), Own::new());
    let body = |vcpu: usize| {
        if vcpu == 1 {
            // An event at every nanosecond.
            (0..1_000).for_each(|_| work(Time::ns(1)));
            return Time::ZERO;
        }
        let _ = word.0.load(Relaxed);
        work(Time::ns(500));
        other.0.store(1, Relaxed);
        word.0.store(1, Relaxed);
        let begin = now();
        work(Time::ns(300));
        now() - begin
    };
    let outcome = simulate(&machine(2, 1), &HOST, 2, body).unwrap();
    assert_eq!(outcome.results[0], Time::ns(300));
}

/// Two threads of a core share its caches. The second one looks while the first one's exchange is under way, sees the old value,
/// and spins again. Fails where a change is announced before it has taken effect.
#[test]
fn a_sibling_sees_a_change_that_is_under_way() {
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

/// Whoever loses its CPU between a look and the next one looks again when it gets one. Fails where `watch` is content with
/// the line being there: others on the CPU have fetched it since.
#[test]
fn a_change_is_seen_by_who_had_no_cpu_meanwhile() {
    let (word, seen) = (Own::new(), Own::new());
    // The first and the third have one CPU, and each a turn of 4 ms or little more.
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
