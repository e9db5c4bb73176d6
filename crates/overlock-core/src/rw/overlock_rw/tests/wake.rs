//! Wake-ups.

use super::*;

/// Fails where a reader that gives up clears `OTHERS`: another one sleeps for ever.
#[test]
fn a_reader_that_gives_up_leaves_the_flag_of_the_others() {
    for passing in ALL {
        let lock = leak();
        lock.write();
        let stays = reader(1, lock, passing);
        stays.sleep();
        let late = lock.read_passing(Passing::AtOnce, soon());
        assert_eq!(late, Err(Refused::Late));
        assert_eq!(word(lock) & !READERS, WRITING | OTHERS);
        unlock_write(lock);
        stays.end();
    }
}

/// Fails where an unlock wakes one thread, or checks only one of the flags.
#[test]
fn an_unlock_wakes_all_that_the_writer_kept_waiting() {
    let lock = leak();
    lock.write();
    let parts = [
        reader(1, lock, Passing::AtOnce),
        reader(2, lock, Passing::Later),
        reader(3, lock, Passing::Never),
    ];
    parts.iter().for_each(Actor::sleep);
    assert_eq!(word(lock), 1 | WRITING | OTHERS);
    let waits = writer(4, lock);
    waits.sleep();
    assert_eq!(word(lock), 1 | WRITING | OTHERS | FIRST);
    unlock_write(lock);
    assert_eq!((word(lock), kicks()), (1, 1));
    parts.into_iter().for_each(Actor::end);
    assert_eq!(word(lock), 3);
    waits.sleep();
    (0..3).for_each(|_| unlock_read(lock));
    waits.end();
}

/// Fails where a thread goes to sleep for ever although the holder has left meanwhile.
#[test]
fn a_thread_about_to_sleep_sees_the_holder_leave() {
    for passing in ALL {
        let lock = leak();
        lock.write();
        let waits = reader(1, lock, passing);
        waits.to(Point::Halt);
        unlock_write(lock);
        waits.end();
        assert_eq!(word(lock), 1);
    }
    let lock = leak();
    lock.read();
    let waits = writer(1, lock);
    waits.to(Point::Halt);
    unlock_read(lock);
    waits.end();
    assert_eq!(word(lock), WRITING);
}

/// `is_awaited`. Fails where any reader kicks, or the last one does not, or one behind a writer
/// does.
#[test]
fn the_last_reader_kicks_the_writer_at_the_gate() {
    let lock = leak();
    lock.read();
    lock.read();
    let waits = writer(1, lock);
    waits.sleep();
    unlock_read(lock);
    assert_eq!(kicks(), 0);
    unlock_read(lock);
    assert_eq!(kicks(), 1);
    waits.end();
    let next = writer(2, lock);
    next.sleep();
    assert!(!lock.enter(), "it comes in vain");
    assert_eq!(kicks(), 1, "the writer is still there");
    unlock_write(lock);
    next.end();
    unlock_write(lock);
    let sofar = kicks();
    lock.read();
    unlock_read(lock);
    assert_eq!(kicks(), sofar, "nobody sleeps");
}

/// The kick in `back_out`: a reader finds the lock closed just as the last one leaves, which does
/// not find itself the last. And it clears the flags that it kicks for: the next in vain does not
/// kick.
#[test]
fn a_reader_that_backs_out_kicks_for_the_last_one() {
    let lock = leak();
    lock.read();
    let waits = writer(1, lock);
    waits.sleep();
    lock.word.fetch_add(READER, Relaxed);
    unlock_read(lock);
    assert_eq!(kicks(), 0);
    lock.back_out();
    assert_eq!(kicks(), 1);
    assert!(!lock.enter());
    assert_eq!(kicks(), 1);
    waits.end();
    assert_eq!(word(lock), WRITING);
}

/// I3, in `give_up`: it wakes the readers that sleep because it closed the lock.
#[test]
fn a_writer_that_gives_up_wakes_the_readers_that_it_kept_out() {
    let lock = leak();
    lock.read();
    let reads = reader_behind(1, lock);
    assert!(!lock.write_within(soon()));
    reads.take().unwrap().end();
    assert_eq!(word(lock), 2);
}

/// I3, in `Want::taken`: the readers that a closed lock kept out stay asleep while the writer
/// writes.
#[test]
fn the_writers_unlock_wakes_readers_that_a_closed_lock_kept_out() {
    let lock = leak();
    lock.read();
    let waits = writer(1, lock);
    waits.sleep();
    let reads = reader(2, lock, Passing::Never);
    reads.sleep();
    unlock_read(lock);
    waits.end();
    assert_eq!(word(lock), WRITING | OTHERS);
    unlock_write(lock);
    reads.end();
    assert_eq!(word(lock), 1);
}

/// I1, `closes`: readers that come later wait for a writer that waits for readers, before it
/// sleeps.
#[test]
fn readers_that_come_after_a_writer_wait_for_it() {
    let lock = leak();
    lock.read();
    BACKOFF_NS.iter().for_each(|_| at(Point::Wait, || {}));
    at(Point::Wait, move || {
        assert_eq!(word(lock), 1 | CLOSED);
        assert!(lock.try_read().is_none() && !lock.enter());
        unlock_read(lock);
    });
    lock.write();
    assert_eq!((word(lock), left(), halts()), (WRITING, 0, 0));
}

/// The order in `back_out`: it clears the flags, then kicks. Fails the other way round: a thread
/// that goes to sleep between the two loses its flag, and nobody kicks it.
#[test]
fn a_thread_that_sleeps_after_the_kick_of_a_reader_in_vain_keeps_its_flag() {
    let lock = leak();
    lock.read();
    let waits = writer(1, lock);
    waits.sleep();
    lock.word.fetch_add(READER, Relaxed);
    unlock_read(lock);
    at(Point::Kick, move || {
        lock.word.fetch_or(OTHERS, Relaxed);
    });
    lock.back_out();
    assert_eq!((word(lock), left()), (CLOSED | OTHERS, 0));
    waits.end();
}
