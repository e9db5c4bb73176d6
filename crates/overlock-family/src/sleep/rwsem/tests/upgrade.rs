//! Upgradable readers.

use super::*;

fn upgradable<Y: Policy>(thread: usize, lock: Lock<Y>) -> Actor {
    actor(thread, move || lock.upgradable())
}

/// The upgradable reader, which upgrades.
fn upgrader<Y: Policy>(thread: usize, lock: Lock<Y>) -> Actor {
    // SAFETY: the test makes it the upgradable reader.
    actor(thread, move || unsafe { lock.upgrade(()) })
}

fn try_upgrade<Y: Policy>(lock: Lock<Y>) -> Result<(), ()> {
    // SAFETY: the caller is the upgradable reader.
    unsafe { lock.try_upgrade(()) }
}

fn end_upgradable<Y: Policy>(lock: Lock<Y>) {
    // SAFETY: each test releases what it has acquired.
    unsafe { lock.unlock_upgradable(()) }
}

#[test]
fn an_upgradable_reader_shares_with_plain_readers_only() {
    let lock = leak::<Timed>();
    lock.upgradable();
    assert!(lock.is_locked() && !lock.is_write_locked());
    assert!(lock.try_upgradable().is_none() && lock.try_write().is_none());
    lock.read();
    assert!(try_upgrade(lock).is_err());
    // SAFETY: thread 0 is the upgradable reader.
    unsafe { lock.downgrade_upgradable(()) };
    assert_eq!(count(lock), 2 * READER);
    lock.upgradable();
    assert_eq!(count(lock), (3 * READER) | UPGRADABLE);
    end_read(lock);
    end_read(lock);
    assert!(try_upgrade(lock).is_ok());
    assert_eq!(count(lock), WRITER);
    assert_eq!(lock.owner.load(Relaxed), 1 << 1);
    // SAFETY: thread 0 writes.
    unsafe { lock.downgrade_to_upgradable(()) };
    assert_eq!(count(lock), READER | UPGRADABLE);
    // SAFETY: it is the upgradable reader again.
    unsafe { lock.upgrade(()) };
    end_write(lock);
    lock.upgradable();
    end_upgradable(lock);
    assert_clean(lock);
    assert_eq!((kicks(), halts()), (0, 0));
}

/// `readers_are_gone`, and `grant_upgrade`: the last reader wakes the upgrader. Newcomers wait for
/// it.
#[test]
fn an_upgrade_waits_only_for_the_readers_inside() {
    let lock = leak::<Timed>();
    lock.upgradable();
    lock.read();
    lock.read();
    let [part] = asleep([upgrader(0, lock)]);
    assert_eq!(count(lock), WRITER | UPGRADABLE | WAITERS | (2 * READER));
    assert!(lock.try_read().is_none() && lock.try_upgradable().is_none());
    assert!(lock.try_write().is_none());
    let [late] = asleep([reader(1, lock)]);
    end_read(lock);
    assert_eq!(kicks(), 0);
    end_read(lock);
    assert_eq!(kicks(), 1);
    part.end();
    assert_eq!(count(lock), WRITER | WAITERS);
    assert_eq!(lock.owner.load(Relaxed), 1 << 1);
    end_write(lock);
    late.end();
    end_read(lock);
    assert_clean(lock);
}

/// `wake` after `push_front`: the last reader leaves before the upgrader is in the list, and wakes
/// nobody.
#[test]
fn an_upgrader_that_joins_too_late_to_be_woken_does_not_sleep() {
    let lock = leak::<Timed>();
    lock.upgradable();
    lock.read();
    lock.count.fetch_add(WRITER.wrapping_sub(READER), Relaxed);
    end_read(lock);
    assert!(lock.sleep_upgrade(&Limit::NONE));
    assert_eq!((count(lock), halts()), (WRITER, 0));
    end_write(lock);
    assert_clean(lock);
}

/// I7, and `flags_of`: an upgrader bypasses a writer with a handoff request, and leaves it the
/// handoff. That writer is woken, but the last reader must wake the upgrader: `readers_are_gone`
/// checks upgradable first.
#[test]
fn an_upgrader_comes_before_a_woken_writer_and_its_handoff() {
    let lock = leak::<Timed>();
    lock.write();
    let [first] = asleep([writer(1, lock)]);
    end_write(lock);
    lock.read(); // Steals.
    assert!(has_flags(lock, WAITERS | WOKEN));
    lock.request_handoff(NodeId::new(1, 0));
    // A second share, and the upgradable reader: as if they had come before the flags.
    lock.count.fetch_add(READER | UPGRADABLE, Relaxed);
    let [part] = asleep([upgrader(0, lock)]);
    let before = kicks();
    end_read(lock);
    assert_eq!(kicks(), before + 1);
    part.end();
    assert_eq!(count(lock), WRITER | WAITERS | WOKEN | HANDOFF);
    end_write(lock);
    assert!(lock.try_read().is_none());
    first.end();
    end_write(lock);
    assert_clean(lock);
}

/// `cancel_upgrade` and `give_up` in `sleep_upgrade`: after a cancelled upgrade the thread is
/// the upgradable reader as before, and readers that came meanwhile get in.
#[test]
fn a_cancelled_upgrade_lets_readers_in_again() {
    let lock = leak::<Timed>();
    lock.upgradable();
    lock.read();
    let part = actor(0, move || {
        let deadline = Toy::now().plus_nanos(1_000_000);
        // SAFETY: it is the upgradable reader.
        assert!(unsafe { lock.upgrade_until((), deadline) }.is_err());
    });
    part.sleep();
    let [late] = asleep([reader(1, lock)]);
    part.interrupt(five_ms);
    part.startle();
    part.end();
    assert_eq!(count(lock), (3 * READER) | UPGRADABLE);
    late.end();
    end_read(lock);
    end_read(lock);
    end_upgradable(lock);
    assert_clean(lock);
}

/// `Waiters` in `end_upgradable`: the next of its kind can come though readers stay.
#[test]
fn upgradable_readers_follow_each_other_while_readers_stay() {
    for keeps_reading in [false, true] {
        let lock = leak::<Timed>();
        lock.upgradable();
        lock.read();
        let [one, two] = asleep([upgradable(1, lock), upgradable(2, lock)]);
        if keeps_reading {
            // SAFETY: thread 0 is the upgradable reader.
            unsafe { lock.downgrade_upgradable(()) };
        } else {
            end_upgradable(lock);
            lock.count.fetch_add(READER, Relaxed);
        }
        one.end();
        assert_eq!(count(lock), (3 * READER) | UPGRADABLE | WAITERS);
        end_upgradable(lock);
        two.end();
        end_upgradable(lock);
        end_read(lock);
        end_read(lock);
        assert_clean(lock);
    }
}

/// `past_writers` in `Grantees`: behind an upgradable reader that has to wait, readers get in up to
/// the first writer, and none beyond. Otherwise a stream of them would keep that writer out.
#[test]
fn readers_bypass_a_blocked_upgradable_reader_but_no_writer_behind_it() {
    let lock = leak::<Timed>();
    lock.upgradable();
    let [blocked] = asleep([upgradable(1, lock)]);
    // This one is granted the lock at once.
    as_thread(2, || lock.read());
    assert_eq!((readers(lock), halts()), (2, 0));
    let [third] = asleep([writer(3, lock)]);
    let [fourth] = asleep([reader(4, lock)]);
    assert_eq!(readers(lock), 2);
    end_read(lock);
    end_upgradable(lock);
    // Now it may have the upgradable share; it comes first, and all readers with it.
    blocked.end();
    fourth.end();
    assert_eq!(count(lock), (2 * READER) | UPGRADABLE | WAITERS);
    end_read(lock);
    end_upgradable(lock);
    third.end();
    end_write(lock);
    assert_clean(lock);
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "no upgradable reader")]
fn an_upgrade_of_a_plain_reader_panics() {
    let lock = leak::<Timed>();
    lock.read();
    // SAFETY: none, which is the point; the panic comes first.
    unsafe { lock.upgrade(()) };
}
