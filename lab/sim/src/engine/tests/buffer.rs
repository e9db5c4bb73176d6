//! Store buffers: total store order.

use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use overlock_core::platform::{Atomic, ByteLanes};
use overlock_core::{FutexPlatform, Platform, Spin};

use super::*;
use crate::Sim;

/// vCPU 0 gets the words' lines, so that vCPU 1 has to request them.
fn taken_away<T: Default>(machine: &Machine, words: &[Own], body: impl Fn() -> T) -> T {
    let body = |vcpu: usize| {
        if vcpu == 0 {
            for word in words {
                let _ = word.0.swap(0, Relaxed);
            }
            return T::default();
        }
        at(BEGIN);
        body()
    };
    let outcome = simulate(machine, &HOST, 2, body).unwrap();
    outcome.results.into_iter().next_back().unwrap()
}

/// The line takes 60, and a load that hits 2. Fails where a load does not see the own store, or
/// waits for the line.
#[test]
fn a_load_sees_the_own_buffered_store() {
    let words = [Own::new()];
    let (seen, time) = taken_away(&machine(2, 1), &words, || {
        words[0].0.store(7, Relaxed);
        (words[0].0.load(Relaxed), now())
    });
    assert_eq!((seen, time), (7, Time::ns(10_004)));
    assert_eq!(words[0].0.load(Relaxed), 7);
}

/// A processor cannot merge a buffered byte with a word of the cache: the load waits until the
/// store is visible, at 10,062. Fails where it loads the word without the byte.
#[test]
fn a_load_waits_for_a_store_to_a_part_of_its_word() {
    let words = [Own::new()];
    let (seen, time) = taken_away(&machine(2, 1), &words, || {
        words[0].0.byte1_store(7, Relaxed);
        (words[0].0.load(Relaxed), now())
    });
    assert_eq!((seen, time), (0x700, Time::ns(10_064)));
}

/// Fails where the condition of a check takes time, or does not see the own buffered stores.
#[test]
fn an_unobserved_load_is_free_and_sees_the_own_store() {
    let words = [Own::new()];
    let (holds, time) = taken_away(&machine(2, 1), &words, || {
        words[0].0.byte1_store(7, Relaxed);
        let holds = Sim::unobserved(|| words[0].0.load(Relaxed) == 0x700);
        (holds, now())
    });
    assert_eq!((holds, time), (true, Time::ns(10_002)));
}

/// The vCPU owns the second word's line, but not the first's. Fails where the second store is
/// visible before the first.
#[test]
fn stores_become_visible_in_their_order() {
    let [first, second] = [Own::new(), Own::new()];
    let body = |vcpu: usize| {
        if vcpu == 0 {
            let _ = first.0.swap(0, Relaxed);
            at(BEGIN);
            let begin = now();
            // It polls all the time.
            while second.0.load(Relaxed) == 0 {}
            assert_eq!(first.0.load(Relaxed), 1);
            return now() - begin;
        }
        at(BEGIN.saturating_sub(Time::us(2)));
        let _ = second.0.swap(0, Relaxed);
        at(BEGIN + Time::ns(200));
        first.0.store(1, Relaxed);
        second.0.store(1, Relaxed);
        now()
    };
    assert!(simulate(&machine(2, 1), &HOST, 2, body).is_ok());
}

/// Each of two vCPUs stores to its word, calls `between`, and loads the other's.
fn both_store_then_load(store: fn(&U32), between: [fn(); 2]) -> [u32; 2] {
    let words = [Own::new(), Own::new()];
    let body = |vcpu: usize| {
        // Each has the other's line, and only that.
        let _ = words[1 - vcpu].0.swap(0, Relaxed);
        at(BEGIN);
        store(&words[vcpu].0);
        between[vcpu]();
        words[1 - vcpu].0.load(Relaxed)
    };
    let outcome = simulate(&machine(2, 1), &HOST, 2, body).unwrap();
    [outcome.results[0], outcome.results[1]]
}

/// The one reordering of total store order. Fails where stores do not enter the buffer.
#[test]
fn a_load_may_precede_a_store_before_it() {
    let seen = both_store_then_load(|word| word.store(1, Release), [|| (), || ()]);
    assert_eq!(seen, [0, 0]);
}

/// Fails where a sequentially consistent store enters the buffer.
#[test]
fn a_sequentially_consistent_store_comes_before_later_loads() {
    let seen = both_store_then_load(|word| word.store(1, SeqCst), [|| (), || ()]);
    assert!(seen.contains(&1), "{seen:?}");
}

/// Fails where a heavy barrier ignores the buffers of other vCPUs.
#[test]
fn a_heavy_barrier_orders_a_light_one() {
    let between = [Sim::light_barrier as fn(), Sim::heavy_barrier as fn()];
    let seen = both_store_then_load(|word| word.store(1, Release), between);
    assert!(seen.contains(&1), "{seen:?}");
}

/// A word on the own stack may be moved. Fails where a store to it enters the buffer.
#[test]
fn a_moved_word_has_the_value_that_was_stored() {
    let body = |_: usize| {
        let word = U32::ZERO;
        word.store(5, Relaxed);
        let moved = Box::new(word);
        moved.load(Relaxed)
    };
    assert_eq!(
        simulate(&machine(1, 1), &HOST, 1, body).unwrap().results,
        [5]
    );
}

/// Fails where a word on the own stack has a cache line: which words share one would depend on the
/// compiler. A locked instruction takes 8, a load or store 2.
#[test]
fn the_own_stack_is_in_the_cache() {
    let body = |_: usize| {
        at(BEGIN);
        let word = U32::ZERO;
        let _ = word.fetch_add(1, Relaxed);
        word.store(5, Relaxed);
        (word.load(Relaxed), now())
    };
    let outcome = simulate(&machine(1, 1), &HOST, 1, body).unwrap();
    assert_eq!(outcome.results, [(5, BEGIN + Time::ns(12))]);
    assert_eq!((outcome.traffic.hits, outcome.traffic.memory), (3, 0));
}

/// Another vCPU spins on a word of a stack. Fails where it does not learn of a change by the owner
/// of the stack.
#[test]
fn others_see_changes_of_a_stack() {
    let place = std::sync::atomic::AtomicPtr::<U32>::default();
    let done = Own::new();
    let body = |vcpu: usize| {
        let of_first = U32::ZERO;
        if vcpu == 0 {
            place.store((&raw const of_first).cast_mut(), Relaxed);
            at(BEGIN + Time::us(1));
            of_first.store(1, Relaxed);
            let _ = Sim::wait_until(&done.0, Relaxed, Spin::Forever, |done: u32| done != 0);
        } else {
            at(BEGIN);
            // SAFETY: the first vCPU waits above before its word ends.
            let word = unsafe { &*place.load(Relaxed) };
            let _ = Sim::wait_until(word, Relaxed, Spin::Forever, |seen: u32| seen == 1);
            done.0.store(1, Relaxed);
        }
    };
    assert!(simulate(&machine(2, 1), &HOST, 2, body).is_ok());
}

/// A word ends before its store is visible, and another takes its place. Fails where `drop` leaves
/// the store in the buffer.
#[test]
fn a_store_to_a_word_that_has_ended_is_forgotten() {
    let body = |_: usize| {
        let mut place = Box::new(std::mem::ManuallyDrop::new(Own::new()));
        at(BEGIN);
        place.0.store(5, Relaxed);
        // SAFETY: it is not used again before it is replaced.
        unsafe { std::mem::ManuallyDrop::drop(&mut *place) };
        *place = std::mem::ManuallyDrop::new(Own::new());
        work(Time::us(1));
        place.0.load(Relaxed)
    };
    assert_eq!(
        simulate(&machine(1, 1), &HOST, 1, body).unwrap().results,
        [0]
    );
}

/// All stores that fit into the buffer take a hit each. The next one waits until there is room:
/// lines take 600 here.
#[test]
fn a_full_buffer_makes_the_vcpu_wait() {
    let words: Vec<Own> = (0..40).map(|_| Own::new()).collect();
    let mut slow = machine(2, 1);
    slow.costs.socket = Time::ns(600);
    let times = taken_away(&slow, &words, || {
        let stored = |word: &Own| {
            word.0.store(1, Relaxed);
            now()
        };
        words.iter().map(stored).collect::<Vec<_>>()
    });
    assert_eq!(times[31], Time::ns(10_000 + 32 * 2));
    assert!(times[32] > times[31] + Time::ns(2));
}
