//! Single threads, and misuse. [`scenes`] has conflicts, [`order`] the order of waiters, and
//! [`attempts`] the attempts after an abort.

mod attempts;
mod lifetime;
mod order;
mod scenes;

use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

use super::class::is_older;
use super::*;
use crate::node::{CONTEXTS, NodeGuard, NodeId};
use crate::raw::CHECKED;
use crate::toy::{Point, SLOTS, Toy, as_thread, at, halts, kicks, left};

type Lock = &'static WwMutex<Toy>;
type Ctx<'a> = &'a Context<'static, Toy>;

const RULES: [Rule; 2] = [Rule::WoundWait, Rule::WaitDie];

fn class(rule: Rule) -> &'static Class<Toy> {
    Box::leak(Box::new(Class::with_rule(rule)))
}

fn leak(class: &'static Class<Toy>) -> Lock {
    Box::leak(Box::new(WwMutex::new(class)))
}

/// `N` locks of a new class.
fn locks<const N: usize>(rule: Rule) -> (&'static Class<Toy>, [Lock; N]) {
    let class = class(rule);
    (class, core::array::from_fn(|_| leak(class)))
}

/// A context outside of any closure, so that a step can end it.
fn context(class: &'static Class<Toy>) -> Ctx<'static> {
    let context = Box::leak(Box::new(Context::new(class)));
    context.begin();
    context
}

fn word(lock: Lock) -> u32 {
    lock.word.load(Relaxed)
}

/// The word of a lock that `slot`'s first context holds.
fn held_by(slot: usize) -> u32 {
    LOCKED | u32::from(NodeId::new(slot, 0).bits())
}

/// The slots of the waiters, in their order.
fn waiting(lock: Lock) -> Vec<usize> {
    let list = lock.waiters.lock();
    list.ids().map(NodeId::slot).collect()
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
    core::iter::from_fn(NodeGuard::<Toy>::new)
        .collect::<Vec<_>>()
        .len()
}

#[test]
fn sizes() {
    assert_eq!(size_of::<WwMutex<Toy>>(), 8 + 2 * size_of::<usize>());
    assert_eq!(size_of::<Class<Toy>>(), 2 * size_of::<usize>());
}

#[test]
fn a_free_lock_is_taken_and_released_without_the_wait_lock() {
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

/// `forget` in `Drop for State`: a lock that is held for ever names the node, so the node must not
/// serve another context.
#[test]
fn a_leaked_guard_keeps_its_node() {
    let (class, [a, b]) = locks(Rule::WoundWait);
    let result = acquire(class, |ctx| {
        core::mem::forget(ctx.lock(a)?);
        Ok(())
    });
    assert_eq!((result, free_nodes()), (Ok(()), CONTEXTS - 1));
    let result = acquire(class, |ctx| {
        assert!(ctx.try_lock(a)?.is_none(), "another context's");
        ctx.lock(b).map(drop)
    });
    assert_eq!((result, free_nodes()), (Ok(()), CONTEXTS - 1));
    assert_eq!(word(a), held_by(0));
}

#[test]
fn an_unlock_of_a_free_or_foreign_lock_changes_nothing() {
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

/// The check under the wait lock in `steal`.
#[test]
fn a_thief_that_is_slower_than_another_thief_gets_nothing() {
    let (_, [a]) = locks(Rule::WoundWait);
    a.word.store(WAITERS, Relaxed);
    let guard = a.waiters.lock();
    at(Point::Wait, move || {
        a.word.store(LOCKED, Relaxed);
        drop(guard);
    });
    assert!(a.try_hold().is_none());
    assert_eq!((word(a), left()), (LOCKED, 0));
}
