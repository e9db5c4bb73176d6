//! What follows an abort, and contexts without a node, which know no other answer.

use super::*;

/// Thread 1 has `lock` and lets it go when the caller of this has been aborted for it, and sleeps.
fn let_go_later(held: Held<'static, Toy>) {
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
    // An older context that lives in no closure, so that a step can end it.
    let older: Ctx<'static> = as_thread(1, || Box::leak(Box::new(Context::new(class))));
    let_go_later(as_thread(1, || older.lock(b).unwrap()));
    let mut number = 0;
    acquire(class, |ctx| {
        number += 1;
        attempt(ctx, number)
    })
}

/// `wanted`, `first`: the second attempt finds the contended lock held, and asks for it as it
/// likes.
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

/// `release_first` in `start_over`.
#[test]
fn a_contended_lock_that_was_not_asked_for_before_the_next_abort_is_released() {
    let (class, [a, b]) = locks(Rule::WaitDie);
    let c = leak(class);
    let older: Ctx<'static> = as_thread(1, || Box::leak(Box::new(Context::new(class))));
    let mut held_c = Some(as_thread(1, || older.lock(c).unwrap()));
    let result = abort_once(a, b, |ctx, number| {
        match number {
            1 => ctx.lock(a).and_then(|_a| ctx.lock(b).map(drop))?,
            2 => {
                assert_eq!(ctx.lock(c).unwrap_err(), Error::Aborted);
                let_go_later(held_c.take().unwrap());
                return Err(Error::Aborted);
            }
            _ => assert_eq!((word(b), word(c)), (0, held_by(0))),
        }
        Ok(number)
    });
    assert_eq!(result, Ok(3));
    assert_clean(&[a, b, c]);
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
                // Which of two contexts without nodes holds `b` is known since this one was aborted
                // for it.
                assert_eq!(ctx.lock(b).unwrap_err(), Error::AlreadyHeld);
                Ok(())
            });
            assert_eq!((result, attempts), (Ok(()), 2));
            drop(a.hold());
        });
        assert_clean(&[a, b]);
    }
}

/// `watched`: the first attempt cannot tell its own lock from another such context's; the second
/// one can.
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

/// All three writes of `holds_watched`: what such a context has let go of, or never had, is not its
/// own.
#[test]
fn without_a_node_the_locks_of_others_are_told_from_ones_own() {
    let (class, [a, b]) = locks(Rule::WoundWait);
    let c = leak(class);
    let other: Ctx<'static> = as_thread(SLOTS + 1, || Box::leak(Box::new(Context::new(class))));
    let others = |lock| as_thread(SLOTS + 1, || other.lock(lock).unwrap());
    let mut held_c = Some(others(c));
    let_go_later(as_thread(1, || b.hold()));
    let mut attempts = 0;
    let result = as_thread(SLOTS, || {
        acquire(class, |ctx| {
            attempts += 1;
            let _a = ctx.lock(a)?;
            if attempts < 3 {
                drop(ctx.lock(b)?);
                let held_b = others(b);
                assert!(ctx.try_lock(b)?.is_none(), "it has let go of it");
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
