//! What one thread sees, and what it may do wrong. Those that meet are in [`scenes`].

mod scenes;

use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

use super::class::is_older;
use super::*;
use crate::node::{CONTEXTS, Claim, NodeId};
use crate::toy::{Point, SLOTS, Toy, as_thread, at, halts, kicks, left};

type Lock = &'static WwMutex<Toy>;
type Ctx<'a> = &'a Context<'static, Toy>;

const RULES: [Rule; 2] = [Rule::WoundWait, Rule::WaitDie];
const CHECKED: bool = cfg!(any(debug_assertions, feature = "checked"));

fn class(rule: Rule) -> &'static Class<Toy> {
    Box::leak(Box::new(Class::with_rule(rule)))
}

fn leak(class: &'static Class<Toy>) -> Lock {
    Box::leak(Box::new(WwMutex::new(class)))
}

/// So many locks of a new class.
fn locks<const N: usize>(rule: Rule) -> (&'static Class<Toy>, [Lock; N]) {
    let class = class(rule);
    (class, core::array::from_fn(|_| leak(class)))
}

fn word(lock: Lock) -> u32 {
    lock.word.load(Relaxed)
}

/// The word of a lock that `slot`'s first context holds.
fn held_by(slot: usize) -> u32 {
    LOCKED | u32::from(NodeId::new(slot, 0).bits())
}

/// The slots of those that wait, in their order.
fn waiting(lock: Lock) -> Vec<usize> {
    let list = lock.waiters.lock();
    core::iter::successors(list.first(), |&id| list.after(id))
        .map(NodeId::slot)
        .collect()
}

fn assert_clean(locks: &[Lock]) {
    for lock in locks {
        assert_eq!(word(lock), 0);
        assert_eq!(waiting(lock), []);
    }
    assert_eq!(left(), 0);
}

/// The nodes that the calling thread has left.
fn free_nodes() -> usize {
    core::iter::from_fn(Claim::<Toy>::new)
        .collect::<Vec<_>>()
        .len()
}

#[test]
fn sizes() {
    assert_eq!(size_of::<WwMutex<Toy>>(), 16 + size_of::<usize>());
    assert_eq!(size_of::<Class<Toy>>(), 2 * size_of::<usize>());
}

#[test]
fn what_is_free_is_taken_and_given_back_without_the_guard() {
    let (class, [a, b]) = locks(Rule::WoundWait);
    let guards = [a, b].map(|lock| lock.waiters.lock());
    let result = acquire(class, |ctx| {
        let first = ctx.lock(a)?;
        assert_eq!((word(a), ctx.holds()), (held_by(0), 1));
        let second = ctx.try_lock(b)?;
        assert!(second.is_some() && a.is_locked() && !a.is_contended());
        drop(first);
        assert_eq!((word(a), word(b), ctx.holds()), (0, held_by(0), 1));
        let _again = ctx.lock_found(a)?;
        Ok(7)
    });
    assert_eq!(result, Ok(7));
    assert!(a.try_lock().is_some());
    // SAFETY: locked in the line above.
    unsafe { a.unlock(()) };
    drop(a.hold());
    drop(guards);
    assert_clean(&[a, b]);
    assert_eq!((kicks(), halts(), free_nodes()), (0, 0, CONTEXTS));
}

#[test]
fn a_holder_excludes_all_others_however_they_come() {
    for rule in RULES {
        let (class, [a]) = locks(rule);
        let nobody_gets_it = || {
            as_thread(1, || {
                assert!(a.try_hold().is_none());
                let tried = acquire(class, |ctx| Ok(ctx.try_lock(a)?.is_some()));
                assert_eq!(tried, Ok(false));
            });
        };
        let held = a.hold();
        nobody_gets_it();
        drop(held);
        let result = acquire(class, |ctx| {
            let _held = ctx.lock(a)?;
            nobody_gets_it();
            Ok(())
        });
        assert_eq!(result, Ok(()));
        assert_clean(&[a]);
    }
}

#[test]
fn a_lock_is_not_taken_twice_by_a_context() {
    for rule in RULES {
        let (class, [a]) = locks(rule);
        let result = acquire(class, |ctx| {
            let _held = ctx.lock(a)?;
            assert_eq!(ctx.lock_found(a).unwrap_err(), Error::AlreadyHeld);
            assert_eq!(ctx.try_lock(a).unwrap_err(), Error::AlreadyHeld);
            assert_eq!(ctx.holds(), 1);
            ctx.lock(a).map(drop)
        });
        assert_eq!(result, Err(Error::AlreadyHeld));
        assert_clean(&[a]);
    }
}

#[test]
fn a_context_takes_no_lock_of_another_class() {
    let (own, [a]) = locks(Rule::WoundWait);
    let (_, [b]) = locks(Rule::WoundWait);
    let none: Lock = Box::leak(Box::new(ConstLock::INIT));
    for other in [b, none] {
        let result = acquire(own, |ctx| {
            let _held = ctx.lock(a)?;
            assert_eq!(ctx.try_lock(other).unwrap_err(), Error::OtherClass);
            ctx.lock(other).map(drop)
        });
        assert_eq!(result, Err(Error::OtherClass));
        assert_clean(&[a, other]);
    }
}

/// The signed difference in `is_older`, and the 0 that `stamp` skips.
#[test]
fn stamps_wrap() {
    let class = class(Rule::WoundWait);
    class.set_latest(usize::MAX - 2);
    let stamps: Vec<_> = (0..4).map(|_| class.stamp()).collect();
    assert_eq!(stamps, [usize::MAX - 1, usize::MAX, 1, 2]);
    for pair in stamps.windows(2) {
        assert!(is_older(pair[0], pair[1]) && !is_older(pair[1], pair[0]));
    }
    assert!(!is_older(3, 3));
}

/// Thread 1 has `lock` and lets it go when the caller of this has been aborted for it, and sleeps.
fn let_go_later(held: Held<'static, Toy>) {
    at(Point::Halt, move || as_thread(1, || drop(held)));
}

/// The locks `a`, which thread 0 takes first, and `b`, which thread 1 holds in an older context. Runs `attempt` as thread 0, with the
/// number of the attempt.
fn abort_once<R>(
    a: Lock,
    b: Lock,
    mut attempt: impl FnMut(Ctx<'_>, u32) -> Result<R, Error>,
) -> Result<R, Error> {
    let class = a.class.unwrap();
    // An older context that lives in no closure, so that a step can end it.
    let older: Ctx<'static> = as_thread(1, || Box::leak(Box::new(Context::new(class))));
    let_go_later(as_thread(1, || older.lock(b).unwrap()));
    let mut number = 0;
    acquire(class, |ctx| {
        number += 1;
        attempt(ctx, number)
    })
}

/// `wanted`, `first`: the second attempt finds the contended lock held, and asks for it as it likes.
#[test]
fn after_an_abort_the_contended_lock_comes_first() {
    let (_, [a, b]) = locks(Rule::WaitDie);
    let mut trace = Vec::new();
    let result = abort_once(a, b, |ctx, number| {
        trace.push((ctx.holds(), word(b)));
        let _a = ctx.lock(a)?;
        assert_eq!(ctx.holds(), number as usize, "the first one counts");
        let _b = ctx.lock(b)?;
        assert_eq!(ctx.holds(), 2);
        assert_eq!(ctx.lock(b).unwrap_err(), Error::AlreadyHeld);
        Ok(number)
    });
    assert_eq!(result, Ok(2));
    assert_eq!(trace, [(0, held_by(1)), (1, held_by(0))]);
    assert_clean(&[a, b]);
}

#[test]
fn a_contended_lock_that_nobody_asks_for_again_is_released() {
    let (_, [a, b]) = locks(Rule::WaitDie);
    for way in 0..3 {
        let result = catch_unwind(AssertUnwindSafe(|| {
            abort_once(a, b, |ctx, number| {
                let _a = ctx.lock(a)?;
                match (number, way) {
                    (1, _) => ctx.lock(b).map(drop)?,
                    (_, 0) => {}
                    (_, 1) => drop(ctx.try_lock(b)?.unwrap()),
                    _ => panic!("as a test"),
                }
                Ok(())
            })
        }));
        assert_eq!(result.is_err(), way == 2);
        assert_clean(&[a, b]);
        assert_eq!(free_nodes(), CONTEXTS);
    }
}

/// `aborted`: the rest of the attempt gets nothing, not even what is free.
#[test]
fn who_goes_on_after_an_abort_is_aborted_again() {
    let (class, [a, b]) = locks(Rule::WaitDie);
    let c = leak(class);
    let result = abort_once(a, b, |ctx, number| {
        let held = ctx.lock(a)?;
        if number == 1 {
            assert_eq!(ctx.lock(b).unwrap_err(), Error::Aborted);
            drop(held);
            assert_eq!(ctx.lock(c).unwrap_err(), Error::Aborted);
            assert_eq!(ctx.try_lock(c).unwrap_err(), Error::Aborted);
            assert_eq!(ctx.lock_found(a).unwrap_err(), Error::Aborted);
            return Err(Error::Aborted);
        }
        assert_eq!(word(b), held_by(0), "the one it was aborted for");
        Ok(number)
    });
    assert_eq!(result, Ok(2));
    assert_clean(&[a, b, c]);
    // It may also be content without that lock.
    let older: Ctx<'static> = as_thread(1, || Box::leak(Box::new(Context::new(class))));
    let held = as_thread(1, || older.lock(b).unwrap());
    let result = acquire(class, |ctx| {
        let _a = ctx.lock(a)?;
        Ok(ctx.lock(b).is_err())
    });
    assert_eq!(result, Ok(true));
    as_thread(1, || drop(held));
    assert_clean(&[a, b, c]);
}

/// The nap in `start_over`. The lock may be gone by then, so nothing looks at it.
#[test]
fn after_an_abort_for_a_lock_that_was_found_time_passes() {
    let (_, [a, b]) = locks(Rule::WaitDie);
    let result = abort_once(a, b, |ctx, number| {
        assert_eq!(ctx.holds(), 0);
        let _a = ctx.lock(a)?;
        let _b = ctx.lock_found(b)?;
        Ok(number)
    });
    assert_eq!((result, halts()), (Ok(2), 1));
    assert_clean(&[a, b]);
}

/// A context without a node is never in a list, and never wounded.
#[test]
fn without_a_node_a_context_is_aborted_where_it_would_wait() {
    for rule in RULES {
        let (class, [a, b]) = locks(rule);
        let mut attempts = 0;
        let held = as_thread(1, || b.hold());
        let_go_later(held);
        as_thread(SLOTS, || {
            let result = acquire(class, |ctx| {
                attempts += 1;
                let _a = ctx.lock(a)?;
                assert_eq!(word(a), LOCKED | 1);
                let _b = ctx.lock(b)?;
                // Which of two contexts without nodes holds `b` is known since this one was aborted for it.
                assert_eq!(ctx.lock(b).unwrap_err(), Error::AlreadyHeld);
                Ok(())
            });
            assert_eq!((result, attempts), (Ok(()), 2));
            drop(a.hold());
        });
        assert_clean(&[a, b]);
    }
}

/// `watched`: the first attempt cannot tell its own lock from another such context's; the second one can.
#[test]
fn without_a_node_a_lock_taken_twice_is_known_at_the_second_attempt() {
    let (class, [a, b]) = locks(Rule::WoundWait);
    for found in [false, true] {
        let mut attempts = 0;
        let result = as_thread(SLOTS, || {
            acquire(class, |ctx| {
                attempts += 1;
                let _b = ctx.lock(b)?;
                let _a = if found {
                    ctx.lock_found(a)?
                } else {
                    ctx.lock(a)?
                };
                let _again = if found {
                    ctx.lock_found(a)?
                } else {
                    ctx.lock(a)?
                };
                Ok(())
            })
        });
        assert_eq!((result, attempts), (Err(Error::AlreadyHeld), 2));
    }
    assert_clean(&[a, b]);
}

/// `forget` in `Drop for State`: a lock that is held for ever names the node, so that one must not serve another context.
#[test]
fn a_forgotten_guard_keeps_its_node() {
    let (class, [a, b]) = locks(Rule::WoundWait);
    let result = acquire(class, |ctx| {
        core::mem::forget(ctx.lock(a)?);
        Ok(())
    });
    assert_eq!((result, free_nodes()), (Ok(()), CONTEXTS - 1));
    let result = acquire(class, |ctx| {
        assert!(ctx.try_lock(a)?.is_none(), "somebody else's");
        ctx.lock(b).map(drop)
    });
    assert_eq!((result, free_nodes()), (Ok(()), CONTEXTS - 1));
    assert_eq!(word(a), held_by(0));
}

#[test]
fn a_guard_forgotten_in_an_aborted_attempt_is_reported() {
    let (_, [a, b]) = locks(Rule::WaitDie);
    let result = catch_unwind(AssertUnwindSafe(|| {
        abort_once(a, b, |ctx, number| {
            if number == 1 {
                core::mem::forget(ctx.lock(a)?);
            }
            ctx.lock(b).map(drop)?;
            Ok(number)
        })
    }));
    assert_eq!(result.ok(), (!CHECKED).then_some(Ok(2)));
    assert_eq!((word(a), free_nodes()), (held_by(0), CONTEXTS - 1));
}

#[test]
fn unlocking_what_is_free_or_another_ones_changes_nothing() {
    let (class, [a]) = locks(Rule::WoundWait);
    let misuse = || {
        // SAFETY: misuse, of a lock that protects nothing.
        let result = catch_unwind(|| unsafe { a.unlock(()) });
        assert_eq!(result.is_err(), CHECKED);
    };
    misuse();
    let result = acquire(class, |ctx| {
        let _held = ctx.lock(a)?;
        misuse();
        assert_eq!(word(a), held_by(0));
        Ok(())
    });
    assert_eq!(result, Ok(()));
    assert_clean(&[a]);
}
