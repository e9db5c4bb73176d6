//! Who is woken.

use super::*;

/// Fails where a reader that gives up takes `OTHERS` with it: another one sleeps for ever.
#[test]
fn who_gives_up_leaves_what_others_need() {
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

/// Fails where an unlock wakes one, or looks at one of the flags only.
#[test]
fn one_kick_is_for_all_that_a_writer_has_kept_waiting() {
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

/// Fails where anybody goes to sleep for good beside one that has left meanwhile.
#[test]
fn who_is_about_to_sleep_sees_the_other_leave() {
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

/// `is_awaited`. Fails where any reader kicks, or the last one does not, or one beside a writer.
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

/// The kick in `back_out`: a reader is just finding the lock closed as the last one leaves, who
/// does not find itself the last. And it clears what it kicks for: the next one in vain does not.
#[test]
fn a_reader_in_vain_kicks_for_the_last_one() {
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

/// I3, in `give_up`: readers that sleep because it has closed the lock.
#[test]
fn a_writer_that_gives_up_wakes_those_that_it_has_kept_out() {
    let lock = leak();
    lock.read();
    let reads = reader_behind(1, lock);
    assert!(!lock.write_within(soon()));
    reads.take().unwrap().end();
    assert_eq!(word(lock), 2);
}

/// I3, in `Want::taken`: the readers that a closed lock has kept out sleep on while the writer
/// writes.
#[test]
fn readers_that_sleep_outside_a_closed_lock_are_woken_by_the_writer() {
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
