//! Attempts after an abort, and contexts without a node, which are always aborted. [`optimistic`]
//! has those that have none at first.

mod optimistic;

use super::*;

/// Thread 1 holds a lock and releases it when the caller has been aborted for it, and sleeps.
fn release_later(held: Held<'static, Toy>) {
    at(Point::Halt, move || as_thread(1, || drop(held)));
}

/// The locks `a`, which thread 0 takes first, and `b`, which thread 1 holds in an older context.
/// Runs `attempt` as thread 0, with the number of the attempt.
fn abort_once<R>(
    a: Lock,
    b: Lock,
    mut attempt: impl FnMut(Ctx<'_>, u32) -> Result<R, Error>,
) -> Result<R, Error> {
    let class = a.class.unwrap();
    // An older context outside of any closure, so that a step can end it.
    let older = as_thread(1, || context(class));
    release_later(as_thread(1, || older.lock(b).unwrap()));
    let mut number = 0;
    acquire(class, |ctx| {
        number += 1;
        attempt(ctx, number)
    })
}

/// `wanted`, `first`: the second attempt finds the contended lock held, and takes it in any order.
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
fn a_contended_lock_that_the_next_attempt_does_not_take_is_released() {
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

/// `release_first` in `start_over`.
#[test]
fn a_contended_lock_that_was_not_taken_before_the_next_abort_is_released() {
    let (class, [a, b]) = locks(Rule::WaitDie);
    let c = leak(class);
    let older = as_thread(1, || context(class));
    let mut held_c = Some(as_thread(1, || older.lock(c).unwrap()));
    let result = abort_once(a, b, |ctx, number| {
        match number {
            1 => ctx.lock(a).and_then(|_a| ctx.lock(b).map(drop))?,
            2 => {
                assert_eq!(ctx.lock(c).unwrap_err(), Error::Aborted);
                release_later(held_c.take().unwrap());
                return Err(Error::Aborted);
            }
            _ => assert_eq!((word(b), word(c)), (0, held_by(0))),
        }
        Ok(number)
    });
    assert_eq!(result, Ok(3));
    assert_clean(&[a, b, c]);
}

/// `aborted`: the rest of the attempt gets nothing, not even a free lock.
#[test]
fn an_attempt_that_goes_on_after_an_abort_is_aborted_again() {
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
    // It may also succeed without that lock.
    let older = as_thread(1, || context(class));
    let held = as_thread(1, || older.lock(b).unwrap());
    let result = acquire(class, |ctx| {
        let _a = ctx.lock(a)?;
        Ok(ctx.lock(b).is_err())
    });
    assert_eq!(result, Ok(true));
    as_thread(1, || drop(held));
    assert_clean(&[a, b, c]);
}

/// The back-off in `start_over`. The lock may be freed by then, so nothing touches it.
#[test]
fn a_context_backs_off_after_an_abort_for_a_found_lock() {
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
        release_later(held);
        as_thread(SLOTS, || {
            let result = acquire(class, |ctx| {
                attempts += 1;
                let _a = ctx.lock(a)?;
                assert_eq!(word(a), LOCKED | 1);
                let _b = ctx.lock(b)?;
                // This one was aborted for `b`, so it knows which of two such contexts holds it.
                assert_eq!(ctx.lock(b).unwrap_err(), Error::AlreadyHeld);
                Ok(())
            });
            assert_eq!((result, attempts), (Ok(()), 2));
            drop(a.hold());
        });
        assert_clean(&[a, b]);
    }
}

/// `watched`: the first attempt cannot distinguish its own lock from another such context's; the
/// second one can.
#[test]
fn without_a_node_the_second_attempt_detects_a_lock_taken_twice() {
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

/// All three writes of `holds_watched`: a lock that such a context has released, or never had, is
/// not its own.
#[test]
fn without_a_node_a_context_distinguishes_its_own_locks() {
    let (class, [a, b]) = locks(Rule::WoundWait);
    let c = leak(class);
    let other = as_thread(SLOTS + 1, || context(class));
    let others = |lock| as_thread(SLOTS + 1, || other.lock(lock).unwrap());
    let mut held_c = Some(others(c));
    release_later(as_thread(1, || b.hold()));
    let mut attempts = 0;
    let result = as_thread(SLOTS, || {
        acquire(class, |ctx| {
            attempts += 1;
            let _a = ctx.lock(a)?;
            if attempts < 3 {
                drop(ctx.lock(b)?);
                let held_b = others(b);
                assert!(ctx.try_lock(b)?.is_none(), "it has released it");
                drop(held_b);
                let _b = ctx.lock(b)?;
                ctx.lock_found(c).map(drop)?;
            }
            assert!(ctx.try_lock(c)?.is_none(), "it never had it");
            drop(held_c.take());
            Ok(())
        })
    });
    assert_eq!((result, attempts), (Ok(()), 3));
    assert_clean(&[a, b, c]);
}

#[test]
fn a_guard_leaked_in_an_aborted_attempt_panics() {
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
