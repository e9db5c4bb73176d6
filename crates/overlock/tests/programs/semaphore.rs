//! Programs for the counting semaphore.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use overlock::{CancelToken, System};
use overlock_core::sleep::Semaphore;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::extras::assert_in_time;
use crate::how::{How, Pause, how, pause};
use crate::runner::check;
use crate::workers::workers;

type Raw = Semaphore<System>;

/// More than any program takes.
const MOST: u32 = 6;

/// Acquires as `how` says, and if it may not wait only tries.
fn acquire(semaphore: &Raw, n: u32, how: How, cancel: &CancelToken, may_wait: bool) -> bool {
    match (how, how.deadline()) {
        (_, Some(deadline)) => {
            let acquired = semaphore.acquire_many_limited(n, Some(deadline.into()), None);
            assert_in_time("the semaphore", acquired, deadline);
            acquired
        }
        (How::Cancellable, _) => {
            let acquired = semaphore.acquire_many_limited(n, None, Some(cancel));
            assert!(acquired || cancel.is_cancelled());
            acquired
        }
        (How::Wait, _) if may_wait => {
            semaphore.acquire_many(n);
            true
        }
        _ => semaphore.try_acquire_many(n),
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Acquire(u32, How),
    Release(u32),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..=MOST, how()).prop_map(|(n, how)| Op::Acquire(n, how)),
        (0..=2_u32).prop_map(Op::Release),
    ]
}

/// The reference: a number.
#[test]
fn alone() {
    check((0..=MOST, vec(op(), 0..60)), |(permits, program)| {
        let semaphore = Raw::new(*permits);
        let cancelled = CancelToken::new();
        cancelled.cancel();
        let mut left = *permits;
        for &op in program {
            match op {
                Op::Acquire(n, how) => {
                    let acquired = acquire(&semaphore, n, how, &cancelled, n <= left);
                    assert_eq!(acquired, n <= left, "{op:?} of {left}");
                    left -= if acquired { n } else { 0 };
                }
                Op::Release(n) => {
                    semaphore.release_many(n);
                    left += n;
                }
            }
            assert_eq!(semaphore.available(), left);
            assert!(!semaphore.is_contended(), "nobody waits");
        }
    });
}

#[derive(Clone, Copy, Debug)]
enum Section {
    /// Acquires, pauses, releases.
    Permits(u32, How, Pause),
    /// Ends the waits with the token, now and later.
    Cancel,
}

fn section() -> impl Strategy<Value = Section> {
    prop_oneof![
        20 => (0..=MOST, how(), pause()).prop_map(|(n, how, pause)| Section::Permits(n, how, pause)),
        1 => Just(Section::Cancel),
    ]
}

/// There are never more permits out than exist, and at the end all are back.
#[test]
fn together() {
    check(vec(vec(section(), 0..10), 2..=4), |programs| {
        let semaphore = Arc::new(Raw::new(MOST));
        let shared = semaphore.clone();
        let cancel = Arc::new(CancelToken::new());
        let out = Arc::new(AtomicU32::new(0));
        let programs = programs.clone();
        workers("the semaphore", programs.len(), move |thread, state| {
            for &section in &programs[thread] {
                let Section::Permits(n, how, pause) = section else {
                    cancel.cancel();
                    continue;
                };
                state.waits(how.deadline().is_some());
                if acquire(&shared, n, how, &cancel, true) {
                    state.is_inside();
                    let others = out.fetch_add(n, Relaxed);
                    assert!(others + n <= MOST, "{others} and {n} are out");
                    pause.take();
                    out.fetch_sub(n, Relaxed);
                    shared.release_many(n);
                }
                state.is_outside();
            }
        });
        assert_eq!(semaphore.available(), MOST);
        assert!(!semaphore.is_contended());
    });
}
