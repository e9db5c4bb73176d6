//! Programs for the locks that one thread holds at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ::overlock::{CancelToken, System};
use ::overlock_core::raw::RawLock;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::extras::Extras;
use crate::how::{How, Pause, how, pause};
use crate::numbers::Numbers;
use crate::runner::check;
use crate::workers::workers;

/// Locks that a program uses by itself: each may take a queue node.
const LOCKS: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Op {
    Acquire(How),
    Unlock,
    UnlockFair,
    Bump,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => how().prop_map(Op::Acquire),
        3 => Just(Op::Unlock),
        1 => Just(Op::UnlockFair),
        1 => Just(Op::Bump),
    ]
}

/// The reference: a lock is held or not, and can be had if not.
fn alone<L: RawLock>(extras: &Extras<L>, program: &[(usize, Op)]) {
    let create = || L::create().expect("the lock can be created");
    let locks: [(L, Option<L::Token>); LOCKS] = std::array::from_fn(|_| (create(), None));
    let mut locks = locks;
    let cancelled = CancelToken::new();
    cancelled.cancel();
    for &(index, op) in program {
        let (lock, held) = &mut locks[index];
        match (op, held.take()) {
            (Op::Acquire(how), None) => {
                *held = extras.acquire(lock, how, &cancelled, true);
                assert!(held.is_some(), "{} is free: {how:?}", L::NAME);
            }
            (Op::Acquire(how), Some(token)) => {
                let second = extras.acquire(lock, how, &cancelled, false);
                assert!(second.is_none(), "{} is held: {how:?}", L::NAME);
                *held = Some(token);
            }
            (_, None) => {}
            (Op::Unlock, Some(token)) => unlock(lock, token),
            (Op::UnlockFair, Some(token)) => unlock_fair(extras, lock, token),
            (Op::Bump, Some(token)) => *held = Some(bump(extras, lock, token)),
        }
        assert_eq!(lock.is_locked(), held.is_some(), "{}", L::NAME);
        assert!(!lock.is_contended(), "{}: nobody waits", L::NAME);
    }
    for (lock, held) in locks {
        if let Some(token) = held {
            unlock(&lock, token);
        }
        assert!(!lock.is_locked(), "{}", L::NAME);
    }
}

// In the three: callers pass the token of their acquisition of `lock`, by this thread.

fn unlock<L: RawLock>(lock: &L, token: L::Token) {
    // SAFETY: as said above.
    unsafe { lock.unlock(token) }
}

fn unlock_fair<L: RawLock>(extras: &Extras<L>, lock: &L, token: L::Token) {
    match &extras.fair {
        // SAFETY: as said above.
        Some(fair) => unsafe { (fair.unlock)(lock, token) },
        None => unlock(lock, token),
    }
}

fn bump<L: RawLock>(extras: &Extras<L>, lock: &L, token: L::Token) -> L::Token {
    match &extras.fair {
        // SAFETY: as said above.
        Some(fair) => unsafe { (fair.bump)(lock, token) },
        None => token,
    }
}

/// A thread's operations on a lock that others use too.
#[derive(Clone, Copy, Debug)]
enum Section {
    /// Acquires, pauses, lets others in for a moment if it says so, pauses, and releases.
    Lock {
        how: How,
        inside: Pause,
        bumps: bool,
        fair: bool,
    },
    /// Ends the waits with the token, now and later.
    Cancel,
}

fn section() -> impl Strategy<Value = Section> {
    let lock =
        (how(), pause(), any::<bool>(), any::<bool>()).prop_map(|(how, inside, bumps, fair)| {
            Section::Lock {
                how,
                inside,
                bumps,
                fair,
            }
        });
    prop_oneof![20 => lock, 1 => Just(Section::Cancel)]
}

/// Nobody is inside with another thread, no section is lost, a thread that gives up has a reason,
/// and the lock is free at the end.
fn together<L: RawLock>(extras: fn() -> Extras<L>, programs: &[Vec<Section>]) {
    let lock = Arc::new(L::create().expect("the lock can be created"));
    let numbers = Arc::new(Numbers::new(L::NAME));
    let cancel = Arc::new(CancelToken::new());
    let sections = Arc::new(AtomicU64::new(0));
    let shared = (lock.clone(), numbers.clone(), sections.clone());
    let programs = programs.to_vec();
    workers(L::NAME, programs.len(), move |thread, state| {
        let (lock, numbers, sections) = &shared;
        let extras = extras();
        for &section in &programs[thread] {
            let Section::Lock {
                how,
                inside,
                bumps,
                fair,
            } = section
            else {
                cancel.cancel();
                continue;
            };
            state.waits(how.deadline().is_some());
            if let Some(mut token) = extras.acquire(lock, how, &cancel, true) {
                state.is_inside();
                if bumps {
                    // SAFETY: this thread holds the lock, and no other does: here and below.
                    unsafe { numbers.change(inside) };
                    token = bump(&extras, lock, token);
                    sections.fetch_add(1, Relaxed);
                }
                // SAFETY: as above.
                unsafe { numbers.change(inside) };
                if fair {
                    unlock_fair(&extras, lock, token);
                } else {
                    unlock(&**lock, token);
                }
                sections.fetch_add(1, Relaxed);
            }
            state.is_outside();
        }
    });
    assert!(!lock.is_locked() && !lock.is_contended(), "{}", L::NAME);
    // SAFETY: the threads have ended.
    let count = unsafe { numbers.inspect(Pause::None) };
    assert_eq!(count, sections.load(Relaxed), "{}", L::NAME);
}

macro_rules! tests {
    ($($name:ident: $lock:ty, $can:ident;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn alone() {
                let extras = Extras::<$lock>::$can();
                check(vec((0..LOCKS, op()), 0..60), |program| {
                    super::alone(&extras, program);
                });
            }

            #[test]
            fn together() {
                check(vec(vec(section(), 0..8), 2..=4), |programs| {
                    super::together(Extras::<$lock>::$can, programs);
                });
            }
        }
    )*};
}

macro_rules! of_spin {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => { tests! { $($name: ::overlock::spin::$lock, $can;)* } };
}

macro_rules! of_sleep {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => { tests! { $($name: ::overlock_family::sleep::$lock<::overlock::System>, $can;)* } };
}

::overlock_family::spin_locks!(of_spin);
::overlock_family::sleep_locks!(of_sleep);

tests! {
    fast_queue_lazy: ::overlock::spin::LazyFastQueue, basic;
    ww_mutex: ::overlock_core::sleep::WwMutex<System>, basic;
}

#[cfg(not(overlock_threads))]
tests! {
    rt_mutex: ::overlock_core::sleep::RtMutex<System>, timed;
}
