//! Store buffers: total store order.

use super::*;

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
