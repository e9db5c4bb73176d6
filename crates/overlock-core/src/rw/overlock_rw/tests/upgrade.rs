//! The upgradable reader, and fair releases.

use super::super::wait::Want;
use super::*;
use crate::toy::set_rank;

fn unlock_upgradable(lock: Lock) {
    // SAFETY: each test releases what it has acquired.
    unsafe { lock.unlock_upgradable(()) }
}

#[test]
fn an_upgradable_reader_shares_with_readers_only() {
    let lock = leak();
    lock.upgradable();
    lock.read();
    assert!(lock.try_write().is_none() && lock.try_upgradable().is_none());
    let late = Instant::from_nanos(0);
    assert!(lock.upgradable_until(late).is_none());
    assert!(lock.write_until(late).is_none());
    assert_eq!(word(lock), 2 | UPGRADABLE);
    // SAFETY: acquired above.
    unsafe { lock.downgrade_upgradable(()) };
    assert!(lock.try_upgradable().is_some());
    unlock_read(lock);
    unlock_read(lock);
    unlock_upgradable(lock);
    assert_eq!(word(lock), 0);
}

/// Fails where the upgrader does not wait for all others, where newcomers get in meanwhile, or
/// where a flag stays at its limit.
#[test]
fn an_upgrader_writes_once_the_other_readers_have_left() {
    let lock = leak();
    lock.upgradable();
    lock.read();
    // SAFETY: acquired above.
    assert!(unsafe { lock.try_upgrade(()) }.is_err());
    at(Point::Wait, move || {
        assert_eq!(word(lock), 2 | UPGRADABLE | UPGRADING);
        assert!(lock.try_read().is_none() && !lock.enter());
        assert_eq!(lock.try_read_passing(Passing::AtOnce), Ok(()));
        unlock_read(lock);
    });
    // SAFETY: as above.
    assert!(unsafe { lock.upgrade_until((), soon().unwrap()) }.is_err());
    assert_eq!((word(lock), halts()), (2 | UPGRADABLE, 1));
    at(Point::Halt, move || unlock_read(lock));
    // SAFETY: as above.
    unsafe { lock.upgrade(()) };
    assert!(lock.is_write_locked() && lock.try_read().is_none());
    // SAFETY: as above.
    unsafe { lock.downgrade_to_upgradable(()) };
    assert!(lock.try_upgradable().is_none() && lock.try_read().is_some());
    unlock_read(lock);
    // SAFETY: as above.
    assert!(unsafe { lock.try_upgrade(()) }.is_ok());
    unlock_write(lock);
    assert_eq!((word(lock), left()), (0, 0));
}

/// The upgrader does not wait for the gate, whose owner waits for it. And `finish_upgrade` keeps
/// that owner's flags: without `FIRST` a wake-up is lost, without `CLOSED` others barge.
#[test]
fn an_upgrade_bypasses_a_waiting_writer() {
    let lock = leak();
    lock.upgradable();
    lock.read();
    let writes = writer(1, lock);
    writes.sleep();
    let upgrades = actor(2, move || {
        // SAFETY: acquired above.
        unsafe { lock.upgrade(()) };
    });
    upgrades.sleep();
    assert_eq!(
        word(lock),
        2 | UPGRADABLE | UPGRADING | CLOSED | FIRST | OTHERS
    );
    let reads = reader(3, lock, Passing::Never);
    reads.sleep();
    // `is_awaited`: the second of two that leave would be too late.
    unlock_read(lock);
    upgrades.end();
    assert_eq!(word(lock), WRITING | CLOSED | FIRST | OTHERS);
    unlock_write(lock);
    assert_eq!(word(lock), CLOSED);
    writes.end();
    unlock_write(lock);
    reads.end();
    assert_eq!(word(lock), 1);
}

/// I3, in `upgrade_within`.
#[test]
fn an_upgrader_that_gives_up_wakes_the_readers_that_it_kept_out() {
    let lock = leak();
    lock.upgradable();
    lock.read();
    let reads = reader_behind(1, lock);
    // SAFETY: acquired above.
    assert!(unsafe { lock.upgrade_until((), soon().unwrap()) }.is_err());
    reads.take().unwrap().end();
    assert_eq!(word(lock), 3 | UPGRADABLE);
}

/// The kick in `release_upgradable`, for all three ways to release the upgradable share.
#[test]
fn the_next_upgradable_reader_waits_at_the_gate() {
    let ends: [fn(Lock); 3] = [
        unlock_upgradable,
        |lock| {
            // SAFETY: each test releases what it has acquired.
            unsafe { lock.downgrade_upgradable(()) };
            unlock_read(lock);
        },
        |lock| {
            // SAFETY: as above.
            unsafe { lock.upgrade(()) };
            unlock_write(lock);
        },
    ];
    for end in ends {
        let lock = leak();
        lock.upgradable();
        let waits = actor(1, move || lock.upgradable());
        waits.sleep();
        assert_eq!(word(lock), 1 | UPGRADABLE | FIRST);
        assert!(lock.try_read().is_some(), "readers come in");
        unlock_read(lock);
        end(lock);
        waits.end();
        assert_eq!(word(lock), 1 | UPGRADABLE);
    }
}

/// Readers never wait for upgradable readers, however long one of them has waited for another: the
/// first may wait for a thread that reads.
#[test]
fn readers_come_in_while_an_upgradable_reader_waits_for_another() {
    let lock = leak();
    lock.upgradable();
    let waits = actor(1, move || lock.upgradable());
    waits.sleep();
    while word(lock) & (RESERVED | CLOSED) == 0 {
        // It polls, finds another one, and sleeps again.
        unlock_upgradable(lock);
        lock.word.fetch_add(READER | UPGRADABLE, Relaxed);
        waits.sleep();
    }
    assert!(lock.try_read().is_some() && lock.enter());
    assert_eq!(lock.read_passing(Passing::Never, None), Ok(()));
    (0..3).for_each(|_| unlock_read(lock));
    unlock_upgradable(lock);
    waits.end();
    assert_eq!(word(lock), 1 | UPGRADABLE);
}

/// "Bounds": neither writers nor upgradable readers bypass the upgradable reader at the gate for
/// ever.
#[test]
fn an_upgradable_reader_at_the_gate_is_not_bypassed_for_ever() {
    let lock = leak();
    lock.upgradable();
    let waits = actor(1, move || lock.upgradable());
    waits.sleep();
    while word(lock) & (RESERVED | CLOSED) == 0 {
        unlock_upgradable(lock);
        lock.word.fetch_add(READER | UPGRADABLE, Relaxed);
        waits.sleep();
    }
    unlock_upgradable(lock);
    assert!(lock.try_upgradable().is_none() && lock.try_write().is_none());
    waits.end();
    assert_eq!(word(lock), 1 | UPGRADABLE);
}

/// Writers that are inside, an upgraded one too, keep the reservation, and one of rank bypasses it.
/// A waiter that gives up takes it back.
#[test]
fn a_reservation_outlives_writers() {
    let lock = leak();
    lock.write();
    let waits = actor(1, move || lock.upgradable());
    waits.sleep();
    while word(lock) & (RESERVED | CLOSED) == 0 {
        unlock_write(lock);
        lock.word.fetch_add(WRITING, Relaxed);
        waits.sleep();
    }
    assert_eq!(word(lock), WRITING | FIRST | RESERVED);
    unlock_write(lock);
    assert_eq!(word(lock), RESERVED);
    set_rank(1);
    lock.write();
    assert_eq!(word(lock), WRITING | RESERVED);
    set_rank(0);
    // SAFETY: acquired above.
    unsafe { lock.downgrade_to_upgradable(()) };
    // SAFETY: as above.
    unsafe { lock.upgrade(()) };
    assert_eq!(word(lock), WRITING | RESERVED);
    unlock_write(lock);
    waits.end();
    assert_eq!(word(lock), 1 | UPGRADABLE);
    // I2
    lock.word.fetch_or(RESERVED | FIRST, Relaxed);
    lock.give_up(Want::Upgradable);
    assert_eq!(word(lock), 1 | UPGRADABLE);
}

/// I3, the kick in `take`: a fair release closes the lock for an upgradable reader too, and that
/// wakes the readers that it kept out.
#[test]
fn an_upgradable_reader_that_was_handed_the_lock_wakes_readers() {
    let lock = leak();
    lock.upgradable();
    let waits = actor(1, move || lock.upgradable());
    waits.sleep();
    // SAFETY: acquired above.
    unsafe { lock.unlock_upgradable_fair(()) };
    assert_eq!(word(lock), CLOSED | FIRST);
    waits.to(Point::Seen);
    let reads = reader(2, lock, Passing::Never);
    reads.sleep();
    waits.end();
    reads.end();
    assert_eq!(word(lock), 2 | UPGRADABLE);
}

/// `fair`, in `end_write_slow` and in `release_upgradable`: with plain releases the attempts here
/// succeed.
#[test]
fn a_fair_release_closes_the_lock_for_a_sleeper() {
    let lock = leak();
    lock.write();
    let writes = writer(1, lock);
    writes.sleep();
    // SAFETY: acquired above.
    unsafe { lock.unlock_write_fair(()) };
    assert!(lock.try_read().is_none() && lock.try_write().is_none());
    writes.end();
    unlock_write(lock);
    lock.upgradable();
    let waits = actor(2, move || lock.upgradable());
    waits.sleep();
    // SAFETY: as above.
    unsafe { lock.unlock_upgradable_fair(()) };
    assert!(lock.try_upgradable().is_none());
    waits.end();
    unlock_upgradable(lock);
    // Nobody waits: the lock stays open.
    lock.read();
    lock.write_within(Some(Instant::from_nanos(0).into()));
    // SAFETY: as above.
    unsafe { lock.bump_read(()) };
    // SAFETY: as above.
    unsafe { lock.unlock_read_fair(()) };
    lock.write();
    // SAFETY: as above.
    unsafe { lock.bump_write(()) };
    // SAFETY: as above.
    unsafe { lock.unlock_write_fair(()) };
    lock.upgradable();
    // SAFETY: as above.
    unsafe { lock.bump_upgradable(()) };
    // SAFETY: as above.
    unsafe { lock.unlock_upgradable_fair(()) };
    assert_eq!(word(lock), 0);
}
