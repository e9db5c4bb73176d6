//! Waiters that give up.

use std::rc::Rc;

use super::*;

/// A thread that waits at most a millisecond, and gets nothing.
fn timed<Y: Policy>(thread: usize, lock: Lock<Y>, writes: bool) -> Actor {
    actor(thread, move || {
        let deadline = Toy::now().plus_nanos(1_000_000);
        let acquired = if writes {
            lock.write_until(deadline)
        } else {
            lock.read_until(deadline)
        };
        assert!(acquired.is_none());
        assert!(Toy::now() >= deadline);
    })
}

/// Lets the deadline of `part` pass: it leaves.
fn gives_up(part: Actor) {
    part.interrupt(five_ms);
    part.startle();
    part.end();
}

/// `flags_of` and `give_up`: no flag stays where the list is empty. Handoff would keep all threads
/// from a free lock.
#[test]
fn the_last_waiter_that_gives_up_clears_the_flags() {
    for (holder_writes, waiter_writes) in [(true, true), (true, false), (false, true)] {
        let lock = leak::<Timed>();
        if holder_writes {
            lock.write();
        } else {
            lock.read();
        }
        let part = timed(1, lock, waiter_writes);
        part.sleep();
        lock.wake(lock.waiters.lock());
        five_ms();
        lock.wake(lock.waiters.lock());
        assert!(has_flags(lock, WAITERS | HANDOFF));
        gives_up(part);
        assert!(has_flags(lock, 0));
        if holder_writes {
            end_write(lock);
        } else {
            end_read(lock);
        }
        assert_clean(lock);
    }
}

/// `wake` in `give_up`: the readers behind the first waited only for it. And handoff was its own.
#[test]
fn a_first_that_gives_up_wakes_the_next() {
    let lock = leak::<Timed>();
    lock.read();
    let first = timed(1, lock, true);
    first.sleep();
    let [second, third, fourth] = asleep([reader(2, lock), writer(3, lock), reader(4, lock)]);
    lock.wake(lock.waiters.lock());
    five_ms();
    lock.wake(lock.waiters.lock());
    assert!(has_flags(lock, WAITERS | HANDOFF));
    gives_up(first);
    assert_eq!(count(lock), (3 * READER) | WAITERS);
    second.end();
    fourth.end();
    (0..3).for_each(|_| end_read(lock));
    third.end();
    end_write(lock);
    assert_clean(lock);
}

#[test]
fn a_waiter_that_gives_up_within_the_list_leaves_the_others_in_order() {
    let lock = leak::<Timed>();
    lock.write();
    let [first] = asleep([writer(1, lock)]);
    let second = timed(2, lock, false);
    second.sleep();
    let third = timed(3, lock, true);
    third.sleep();
    let [fourth] = asleep([writer(4, lock)]);
    gives_up(third);
    gives_up(second);
    assert!(lock.is_contended());
    for part in [first, fourth] {
        end_write(lock);
        part.end();
    }
    end_write(lock);
    assert_clean(lock);
}

/// The check of `GRANTED` in `sleep_until_granted`: the waker has granted the lock and taken the
/// node out, and signals later. To leave the list once more would corrupt it and lose the share.
#[test]
fn a_grant_beats_the_deadline_even_before_the_signal() {
    let lock = leak::<Timed>();
    lock.write();
    let [one] = asleep([reader(1, lock)]);
    let two = actor(2, move || {
        let deadline = Toy::now().plus_nanos(1_000_000);
        assert!(lock.read_until(deadline).is_some());
    });
    two.sleep();
    let two = Rc::new(two);
    let granted = two.clone();
    at(Point::Kick, move || {
        assert_eq!([1, 2].map(state), [HAS_IT, 0]);
        granted.interrupt(five_ms);
        granted.startle();
        granted.sleep(); // Until the signal.
    });
    end_write(lock);
    one.end();
    Rc::into_inner(two).expect("the step is gone").end();
    assert_eq!(count(lock), 2 * READER);
    end_read(lock);
    end_read(lock);
    assert_clean(lock);
}

/// `take_queued` comes before the check of the limit: a woken writer takes a free lock, however
/// late it is.
#[test]
fn a_woken_writer_takes_a_free_lock_after_its_deadline() {
    let lock = leak::<Timed>();
    lock.write();
    let part = actor(1, move || {
        let deadline = Toy::now().plus_nanos(1_000_000);
        assert!(lock.write_until(deadline).is_some());
    });
    part.sleep();
    end_write(lock);
    part.interrupt(five_ms);
    part.end();
    end_write(lock);
    assert_clean(lock);
}

/// The same, but a thief was quicker: the writer leaves, and the thief's release wakes the next.
#[test]
fn a_woken_writer_that_gives_up_leaves_the_next_to_the_thiefs_release() {
    let lock = leak::<Timed>();
    lock.write();
    let first = timed(1, lock, true);
    first.sleep();
    let [second] = asleep([writer(2, lock)]);
    end_write(lock);
    assert!(has_flags(lock, WAITERS | WOKEN));
    lock.write();
    first.interrupt(five_ms);
    first.end();
    assert!(has_flags(lock, WAITERS));
    end_write(lock);
    assert_eq!((state(2), kicks()), (MAY_TRY, 2));
    second.end();
    end_write(lock);
    assert_clean(lock);
}
