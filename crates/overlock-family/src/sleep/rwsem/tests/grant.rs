//! Grants: which waiters get the lock, and the order of the steps.

use super::*;

/// I4, the exchange in `grant_reads` before the first signal. The first that is signalled leaves
/// at once: were the others not readers yet, the lock would be free. And the state is there before
/// the kick.
#[test]
fn all_are_readers_before_the_first_is_signalled() {
    let lock = leak::<Timed>();
    lock.write();
    let [one, two, three] = asleep([1, 2, 3].map(|thread| reader(thread, lock)));
    at(Point::Kick, move || {
        assert_eq!(count(lock), 3 * READER);
        assert_eq!([1, 2, 3].map(state), [HAS_IT, 0, 0]);
        one.startle(); // The kick is still to come.
        one.end();
        as_thread(1, || end_read(lock));
        assert!(lock.is_locked() && lock.try_write().is_none());
    });
    end_write(lock);
    assert_eq!((readers(lock), kicks()), (2, 3));
    two.end();
    three.end();
    end_read(lock);
    end_read(lock);
    assert_clean(lock);
}

/// `BATCH` in `grant_reads`: the rest follows when these have left.
#[test]
fn readers_are_woken_in_batches() {
    let lock = leak::<TwoAtATime>();
    lock.write();
    let parts = asleep([1, 2, 3, 4, 5].map(|thread| reader(thread, lock)));
    end_write(lock);
    for batch in [2, 2, 1] {
        assert_eq!(readers(lock), batch);
        assert_eq!(lock.is_contended(), batch == 2);
        (0..batch).for_each(|_| end_read(lock));
    }
    parts.into_iter().for_each(Actor::end);
    assert_clean(lock);
}

/// `wants_read` in `grant_reads`: once readers are served, a reader need not wait for the writers
/// that came before it; those are served after it.
#[test]
fn a_grant_to_the_first_reader_includes_readers_behind_writers() {
    let lock = leak::<Timed>();
    lock.write();
    let [one, two, three, four] = asleep([
        reader(1, lock),
        writer(2, lock),
        reader(3, lock),
        writer(4, lock),
    ]);
    end_write(lock);
    assert_eq!((readers(lock), kicks()), (2, 2));
    one.end();
    three.end();
    end_read(lock);
    assert_eq!(kicks(), 2);
    end_read(lock);
    two.end();
    assert_eq!(count(lock), WRITER | WAITERS);
    end_write(lock);
    four.end();
    end_write(lock);
    assert_clean(lock);
}

/// Readers do not bypass a writer that is the first, unless they join a lock which is read.
#[test]
fn readers_behind_a_first_writer_wait() {
    let lock = leak::<Timed>();
    lock.read();
    let [first] = asleep([writer(1, lock)]);
    let [second] = asleep([reader(2, lock)]);
    assert_eq!((readers(lock), kicks()), (1, 0));
    end_read(lock);
    assert_eq!((state(1), kicks()), (MAY_TRY, 1));
    first.end();
    end_write(lock);
    second.end();
    end_read(lock);
    assert_clean(lock);
}

/// `clears` in `grant_reads`: handoff ends with the grant to the first.
#[test]
fn a_grant_to_the_first_ends_the_handoff() {
    let lock = leak::<TwoAtATime>();
    lock.write();
    let parts = asleep([1, 2, 3].map(|thread| reader(thread, lock)));
    five_ms();
    lock.wake(lock.waiters.lock());
    assert!(has_flags(lock, WAITERS | HANDOFF));
    end_write(lock);
    assert_eq!(count(lock), (2 * READER) | WAITERS);
    end_read(lock);
    end_read(lock);
    assert_eq!(count(lock), READER);
    parts.into_iter().for_each(Actor::end);
    end_read(lock);
    assert_clean(lock);
}

/// `wake_waiters` in `end_write`, with a share that stays.
#[test]
fn a_downgrade_lets_the_waiting_readers_in_and_no_writer() {
    let lock = leak::<Timed>();
    lock.write();
    let [one, two] = asleep([reader(1, lock), writer(2, lock)]);
    // SAFETY: thread 0 writes.
    unsafe { lock.downgrade(()) };
    assert_eq!(count(lock), (2 * READER) | WAITERS);
    one.end();
    end_read(lock);
    assert_eq!(kicks(), 1);
    end_read(lock);
    two.end();
    end_write(lock);
    assert_clean(lock);
}

/// `wake` after `join`: a reader that queues only because another thread was quicker is granted the
/// lock at once.
#[test]
fn a_reader_that_joins_readers_does_not_sleep() {
    let lock = leak::<TwoAtATime>();
    lock.write();
    let parts = asleep([1, 2, 3].map(|thread| reader(thread, lock)));
    end_write(lock);
    // Thread 3 is left over from the batch, and thread 4 comes.
    assert!(as_thread(4, || lock.sleep_read(&Limit::NONE)));
    assert_eq!((count(lock), halts()), (4 * READER, 0));
    parts.into_iter().for_each(Actor::end);
    (0..4).for_each(|_| end_read(lock));
    assert_clean(lock);
}

/// `on_stolen`: a reader that takes a free lock wakes the queued readers.
#[test]
fn a_stealing_reader_wakes_the_queued_readers() {
    let lock = leak::<TwoAtATime>();
    lock.write();
    let parts = asleep([1, 2, 3].map(|thread| reader(thread, lock)));
    end_write(lock);
    // The two granted readers leave as the thief comes: it has added itself, and they see it.
    let seen = lock.count.fetch_add(READER, Acquire);
    assert_eq!(seen, (2 * READER) | WAITERS);
    end_read(lock);
    end_read(lock);
    assert_eq!(count(lock), READER | WAITERS);
    lock.on_stolen(WAITERS);
    assert_eq!(count(lock), 2 * READER);
    parts.into_iter().for_each(Actor::end);
    (0..2).for_each(|_| end_read(lock));
    assert_clean(lock);
}
