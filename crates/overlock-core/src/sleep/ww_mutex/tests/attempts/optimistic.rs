use super::*;

fn locks<const N: usize>() -> (&'static Class<Toy>, [Lock; N]) {
    let class = Box::leak(Box::new(Class::optimistic()));
    (class, core::array::from_fn(|_| leak(class)))
}

/// The latest stamp of the class, and one more.
fn next_stamp(class: &Class<Toy>) -> usize {
    class.stamp()
}

#[test]
fn free_locks_are_taken_without_a_stamp_and_a_node() {
    let (class, [a, b]) = locks();
    let result = acquire(class, |ctx| {
        let held = [ctx.lock(a)?, ctx.lock_found(b)?];
        assert_eq!((word(a), word(b)), (LOCKED | 1, LOCKED | 1));
        drop(held);
        Ok((free_nodes(), ctx.try_lock(a)?.is_some()))
    });
    assert_eq!(result, Ok((CONTEXTS, true)));
    assert_eq!(next_stamp(class), 1);
    assert_clean(&[a, b]);
}

/// `enrol` in `lock_contended`: without it, the context would poll.
#[test]
fn a_context_that_holds_nothing_waits_in_the_list() {
    let (class, [a, b]) = locks();
    let held = as_thread(1, || a.hold());
    at(Point::Halt, move || {
        assert_eq!(waiting(a), [0]);
        as_thread(1, || drop(held));
    });
    let mut attempts = 0;
    let result = acquire(class, |ctx| {
        attempts += 1;
        let _a = ctx.lock(a)?;
        let _b = ctx.lock(b)?;
        assert_eq!((word(a), word(b)), (held_by(0), held_by(0)));
        Ok(())
    });
    assert_eq!((result, attempts, free_nodes()), (Ok(()), 1, CONTEXTS));
    assert_clean(&[a, b]);
}

/// `enrol` in `start_over`: from the second attempt on it may wait while it holds locks.
#[test]
fn a_context_that_holds_locks_is_aborted_once() {
    let (class, [a, b]) = locks();
    let c = leak(class);
    release_later(as_thread(1, || b.hold()));
    let mut attempts = 0;
    let result = acquire(class, |ctx| {
        attempts += 1;
        let _a = ctx.lock(a)?;
        let _b = ctx.lock(b)?;
        assert_eq!((word(a), word(b)), (held_by(0), held_by(0)));
        release_later(as_thread(1, || c.hold()));
        ctx.lock(c).map(drop)
    });
    assert_eq!((result, attempts, next_stamp(class)), (Ok(()), 2, 2));
    assert_clean(&[a, b, c]);
}

/// `may_be_own`: without it the first `try_lock` says that another context has the lock.
#[test]
fn a_lock_is_not_taken_twice() {
    let (class, [a]) = locks();
    for way in 0..3 {
        let mut attempts = 0;
        let result = acquire(class, |ctx| {
            attempts += 1;
            let _held = ctx.lock(a)?;
            match way {
                0 => ctx.lock(a).map(drop),
                1 => ctx.lock_found(a).map(drop),
                _ => ctx.try_lock(a).map(drop),
            }
        });
        assert_eq!((result, attempts), (Err(Error::AlreadyHeld), 2));
        assert_clean(&[a]);
    }
}

/// A lock that is tried has no waiter, and its holder may be another such context.
#[test]
fn a_lock_that_another_one_holds_is_tried_in_vain() {
    let (class, [a, b]) = locks();
    let other = as_thread(1, || context(class));
    let held = as_thread(1, || other.lock(a).unwrap());
    let mut attempts = 0;
    let result = acquire(class, |ctx| {
        attempts += 1;
        assert!(ctx.try_lock(a)?.is_none());
        let _b = ctx.lock(b)?;
        Ok(ctx.try_lock(a)?.is_none())
    });
    assert_eq!((result, attempts), (Ok(true), 2));
    as_thread(1, || drop(held));
    assert_clean(&[a, b]);
}
