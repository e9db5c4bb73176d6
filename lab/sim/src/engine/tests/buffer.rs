//! Store buffers: total store order.

use super::*;

/// Each of two vCPUs stores to its word and loads the other's. Fails where stores do not enter the
/// buffer, where sequentially consistent ones do, or where a heavy barrier ignores the buffers of
/// other vCPUs.
#[test]
fn a_load_may_precede_a_store_before_it() {
    let none: [fn(); 2] = [|| (), || ()];
    let barriers: [fn(); 2] = [Sim::light_barrier, Sim::heavy_barrier];
    for (order, barriers, precedes) in [
        (Release, none, true),
        (SeqCst, none, false),
        (Release, barriers, false),
    ] {
        let words = [Own::new(), Own::new()];
        let outcome = simulate(&machine(2, 1), &host(), 2, |vcpu| {
            // Each has the other's line, and only that.
            words[1 - vcpu].take();
            at(BEGIN);
            words[vcpu].0.store(1, order);
            barriers[vcpu]();
            words[1 - vcpu].0.load(Relaxed)
        });
        assert_eq!(outcome.results == [0, 0], precedes, "{order:?}");
    }
}

/// A locked instruction takes 8, a load or store 2. Fails where a word on the own stack has a cache
/// line: which words share one would depend on the compiler. Fails where a store to it enters the
/// buffer: it may be moved.
#[test]
fn the_own_stack_is_in_the_cache() {
    let outcome = scene(
        &host(),
        &[&|| {
            at(BEGIN);
            let word = U32::ZERO;
            let _ = word.fetch_add(1, Relaxed);
            word.store(5, Relaxed);
            assert_eq!((word.load(Relaxed), now()), (5, Time::ns(BEGIN + 12)));
            let moved = Box::new(word);
            assert_eq!(moved.load(Relaxed), 5);
        }],
    );
    assert_eq!(outcome.traffic.hits, 3);
}

/// Another vCPU spins on a word of a stack. Fails where it does not learn of a change by the owner
/// of the stack.
#[test]
fn others_see_changes_of_a_stack() {
    let place = std::sync::atomic::AtomicPtr::<Own>::default();
    let done = Own::new();
    scene(
        &host(),
        &[
            &|| {
                let word = Own::new();
                place.store((&raw const word).cast_mut(), Relaxed);
                at(BEGIN + 1_000);
                word.0.store(1, Relaxed);
                done.wait_for(1);
            },
            &|| {
                at(BEGIN);
                // SAFETY: the first vCPU waits above before its word ends.
                unsafe { &*place.load(Relaxed) }.wait_for(1);
                done.0.store(1, Relaxed);
            },
        ],
    );
}

/// A word ends before its store is visible, and another takes its place. Fails where `drop` leaves
/// the store in the buffer.
#[test]
fn a_store_to_a_word_that_has_ended_is_forgotten() {
    let body = || {
        let mut place = Box::new(std::mem::ManuallyDrop::new(Own::new()));
        at(BEGIN);
        place.0.store(5, Relaxed);
        // SAFETY: it is not used again before it is replaced.
        unsafe { std::mem::ManuallyDrop::drop(&mut *place) };
        *place = std::mem::ManuallyDrop::new(Own::new());
        work(Time::us(1));
        assert_eq!(place.0.load(Relaxed), 0);
    };
    scene(&host(), &[&body]);
}

/// Stores that fit into the buffer take a hit each. The next one waits until there is room: lines
/// take 600 here.
#[test]
fn a_full_buffer_makes_the_vcpu_wait() {
    let words: Vec<Own> = (0..40).map(|_| Own::new()).collect();
    let mut slow = machine(2, 1);
    slow.costs.socket = Time::ns(600);
    let outcome = simulate(&slow, &host(), 2, |vcpu| {
        if vcpu == 0 {
            words.iter().for_each(Own::take);
            return vec![];
        }
        at(40_000);
        let stored = |word: &Own| {
            word.0.store(1, Relaxed);
            now().as_ns()
        };
        words.iter().map(stored).collect()
    });
    let times = &outcome.results[1];
    assert_eq!(times[31], 40_000 + 32 * 2);
    assert!(times[32] > times[31] + 2);
}
