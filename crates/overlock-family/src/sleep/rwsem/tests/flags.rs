//! The flags between releases and woken writers, and the handoff.

use super::*;
use overlock_core::platform::Spin;
use overlock_core::toy::watch::{self, Access, Watch, after, before, watch};

/// A release wakes the first, a writer, once. Until that one has come, releases have nothing to do.
#[test]
fn a_writer_is_woken_once_however_often_it_is_bypassed() {
    let lock = leak::<Timed>();
    lock.write();
    let [first] = asleep([writer(1, lock)]);
    end_write(lock);
    assert!(has_flags(lock, WAITERS | WOKEN));
    assert_eq!((state(1), kicks()), (MAY_TRY, 1));
    for _ in 0..3 {
        as_thread(2, || lock.write());
        as_thread(2, || end_write(lock));
        as_thread(3, || lock.read());
        as_thread(3, || end_read(lock));
    }
    assert_eq!(kicks(), 1);
    first.end();
    assert_eq!(count(lock), WRITER);
    end_write(lock);
    assert_clean(lock);
}

/// `seen & !was_woken` in `take_queued`: otherwise the next release would leave the wake-up to it.
#[test]
fn a_woken_writer_that_comes_too_late_is_woken_again() {
    let lock = leak::<Timed>();
    lock.write();
    let [first] = asleep([writer(1, lock)]);
    end_write(lock);
    as_thread(2, || lock.write());
    first.sleep();
    assert!(has_flags(lock, WAITERS));
    as_thread(2, || end_write(lock));
    assert_eq!(kicks(), 2);
    first.end();
    end_write(lock);
    assert_clean(lock);
}

/// The exchange in `take_queued` expects the lock held. With a load and a plain clearing of
/// `woken`, the thief's release in between sees `woken` and wakes nobody: a lost wake-up.
#[test]
fn a_release_between_the_woken_writers_load_and_its_exchange_is_not_lost() {
    let lock: &'static RwSem<Watch> = Box::leak(Box::new(RwSem::new()));
    lock.write();
    watch(lock);
    at(Point::Halt, || {
        // SAFETY: thread 0 writes, then the thief.
        as_thread(0, || unsafe { lock.unlock_write(()) });
        as_thread(2, || lock.write());
        assert_eq!(kicks(), 1);
        before(Access::Exchange, || {}); // The wait lock.
        before(Access::Exchange, || {
            // SAFETY: the thief writes.
            as_thread(2, || unsafe { lock.unlock_write(()) });
        });
    });
    as_thread(1, || assert!(lock.sleep_write(&Limit::NONE)));
    assert_eq!(lock.count.load(Relaxed), WRITER);
    assert_eq!((left(), watch::left()), (0, 0));
}

/// `readers_are_gone` in `leave`, for readers that came in vain too: the last reader leaves while
/// one of those is counted, and so it wakes nobody.
#[test]
fn a_reader_that_came_in_vain_wakes_for_the_release_that_it_hid() {
    let lock: &'static RwSem<Watch> = Box::leak(Box::new(RwSem::new()));
    lock.read();
    watch(lock);
    at(Point::Halt, || {
        after(Access::Add, || {
            // SAFETY: thread 0 reads.
            as_thread(0, || unsafe { lock.unlock_read(()) });
            assert_eq!(lock.count.load(Relaxed), READER | WAITERS);
            assert_eq!(kicks(), 0);
        });
        at(Point::Kick, || {
            let last = lock.waiters.lock().last();
            assert_eq!(last, Some(NodeId::new(1, 0)), "woken late, by joining");
        });
        let past = Instant::from_nanos(0);
        assert!(as_thread(2, || lock.read_until(past)).is_none());
        assert_eq!(kicks(), 1);
    });
    as_thread(1, || lock.write());
    assert_eq!(lock.count.load(Relaxed), WRITER);
    assert_eq!((left(), watch::left()), (0, 0));
}

/// The loop in `take_read_if`: an attempt does not fail because other readers change the word.
#[test]
fn an_attempt_to_read_does_not_fail_because_of_another_reader() {
    let lock: &'static RwSem<Watch> = Box::leak(Box::new(RwSem::new()));
    watch(lock);
    before(Access::Exchange, || as_thread(1, || lock.read()));
    assert!(lock.try_read().is_some());
    // SAFETY: thread 1 reads.
    before(Access::Exchange, || unsafe { lock.unlock_read(()) });
    assert!(lock.try_read().is_some());
    assert_eq!(lock.count.load(Relaxed), 2 * READER);
    assert_eq!(watch::left(), 0);
}

/// I5, `must_queue`: nobody joins readers past a waiter; a free lock may be taken.
#[test]
fn newcomers_barge_only_where_the_lock_is_free() {
    let lock = leak::<Timed>();
    lock.read();
    let [first] = asleep([writer(1, lock)]);
    assert!(lock.try_read().is_none());
    let [second] = asleep([reader(2, lock)]);
    end_read(lock);
    // The writer is woken; these are quicker, though others spin.
    let head = as_thread(4, || lock.osq.lock(Spin::Forever, || false));
    as_thread(3, || assert!(lock.try_write().is_some()));
    as_thread(3, || end_write(lock));
    as_thread(3, || lock.write());
    as_thread(3, || end_write(lock));
    as_thread(3, || lock.read());
    drop(head);
    assert!(as_thread(4, || lock.try_read()).is_none());
    as_thread(3, || end_read(lock));
    first.end();
    end_write(lock);
    second.end();
    end_read(lock);
    assert_clean(lock);
}

/// A thief fails after the first's handoff request: I6, in `must_queue` and `take_write`.
fn nobody_but_the_first_acquires<Y: Policy>(lock: Lock<Y>) {
    assert!(!lock.is_locked());
    assert!(lock.try_read().is_none() && lock.try_write().is_none());
    let past = Instant::from_nanos(0);
    assert!(as_thread(6, || lock.read_until(past)).is_none());
    assert!(as_thread(6, || lock.write_until(past)).is_none());
    assert!(!lock.is_locked());
}

/// `handoff_is_due` in `take_queued`: the first is bypassed for 4 ms, then no more.
#[test]
fn a_writer_is_bypassed_for_4_ms_and_no_longer() {
    let lock = leak::<Timed>();
    lock.write();
    let [first] = asleep([writer(1, lock)]);
    for _ in 0..3 {
        end_write(lock);
        lock.write();
        first.sleep();
        assert!(has_flags(lock, WAITERS));
    }
    first.interrupt(five_ms);
    end_write(lock);
    lock.write();
    first.sleep();
    assert!(has_flags(lock, WAITERS | HANDOFF));
    end_write(lock);
    nobody_but_the_first_acquires(lock);
    first.end();
    assert_eq!(count(lock), WRITER);
    end_write(lock);
    assert_clean(lock);
}

/// `first` in `take_queued`: the wait of a writer behind others does not count. Otherwise it would
/// request the handoff before its time, or for another one.
#[test]
fn the_wait_until_the_handoff_begins_at_the_front_of_the_list() {
    let lock = leak::<Timed>();
    lock.read();
    let [first, second] = asleep([writer(1, lock), writer(2, lock)]);
    let due = |thread| NodeId::new(thread, 0).node::<Toy>().lock.load(Relaxed);
    assert!(due(1) != 0 && due(2) == 0);
    end_read(lock);
    first.end();
    end_write(lock);
    second.end();
    end_write(lock);
    assert_clean(lock);
}

/// `request_handoff_if_due` in `wake_writer`: thieves may always take the lock before its releaser
/// checks it, and the first is never woken. So the releaser requests the handoff for it.
#[test]
fn a_waker_requests_the_handoff_for_a_writer() {
    let lock = leak::<Timed>();
    lock.write();
    let [first] = asleep([writer(1, lock)]);
    lock.wake(lock.waiters.lock());
    assert!(has_flags(lock, WAITERS));
    five_ms();
    lock.wake(lock.waiters.lock());
    assert!(has_flags(lock, WAITERS | HANDOFF));
    assert_eq!(kicks(), 0);
    end_write(lock);
    nobody_but_the_first_acquires(lock);
    first.end();
    end_write(lock);
    assert_clean(lock);
}

/// `request_handoff_if_due` in `wake`: the same for a reader, which never checks the lock itself.
#[test]
fn a_waker_requests_the_handoff_for_a_reader() {
    let lock = leak::<Timed>();
    lock.write();
    let [first] = asleep([reader(1, lock)]);
    five_ms();
    lock.wake(lock.waiters.lock());
    assert!(has_flags(lock, WAITERS | HANDOFF));
    end_write(lock);
    first.end();
    assert_eq!(count(lock), READER);
    end_read(lock);
    assert_clean(lock);
}

/// `spin_alone` in `sleep_write`: a running writer needs no wake-up after its handoff request.
#[test]
fn the_first_spins_for_the_handoff() {
    let lock = leak::<Timed>();
    lock.write();
    at(Point::Halt, move || {
        as_thread(0, || end_write(lock));
        as_thread(2, || lock.write());
        five_ms();
        at(Point::Wait, move || {
            assert!(has_flags(lock, WAITERS | HANDOFF));
            as_thread(2, || end_write(lock));
        });
    });
    as_thread(1, || assert!(lock.sleep_write(&Limit::NONE)));
    assert_eq!(halts(), 0);
    end_write(lock);
    assert_clean(lock);
}

/// `seen & READERS != 0` in `try_read_along`: without it a thread that reads twice waits for a
/// writer that waits for it.
#[test]
fn a_recursive_reader_barges_past_a_waiting_writer() {
    let lock = leak::<Timed>();
    lock.read();
    let [first] = asleep([writer(1, lock)]);
    assert!(lock.try_read().is_none());
    assert!(lock.try_read_along());
    assert_eq!(readers(lock), 2);
    end_read(lock);
    end_read(lock);
    first.end();
    assert!(!lock.try_read_along());
    end_write(lock);
    assert!(lock.try_read_along());
    end_read(lock);
    assert_clean(lock);
}
