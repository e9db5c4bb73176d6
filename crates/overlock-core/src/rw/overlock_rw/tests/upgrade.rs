//! Upgradable readers.

use std::cell::RefCell;

use super::super::upgrade::Upgradable;
use super::*;
use crate::raw::RawUpgradeRwLock;

fn unlock_upgradable(lock: Lock, token: Upgradable) {
    // SAFETY: each test releases what it has acquired.
    unsafe { lock.unlock_upgradable(token) }
}

#[test]
fn an_upgradable_reader_shares_with_readers_only() {
    let lock = leak::<Recommended>();
    let upgradable = lock.upgradable();
    unlock_read(lock, lock.try_read().unwrap());
    assert!(lock.try_write().is_none() && lock.try_upgradable().is_none());
    let late = Instant::from_nanos(0);
    assert!(as_thread(1, || lock.upgradable_until(late)).is_none());
    assert!(as_thread(1, || lock.write_until(late)).is_none());
    // SAFETY: acquired above.
    let read = unsafe { lock.downgrade_upgradable(upgradable) };
    let upgradable = lock.try_upgradable().unwrap();
    unlock_read(lock, read);
    unlock_upgradable(lock, upgradable);
    assert_clean(lock);
}

#[test]
fn it_becomes_the_writer_once_the_others_have_left() {
    let lock = leak::<Recommended>();
    let upgradable = lock.upgradable();
    let read = lock.read();
    // SAFETY: acquired above.
    let Err(upgradable) = (unsafe { lock.try_upgrade(upgradable) }) else {
        panic!("somebody reads")
    };
    let deadline = Toy::now().plus_nanos(100_000);
    // SAFETY: as above.
    let Err(upgradable) = (unsafe { lock.upgrade_until(upgradable, deadline) }) else {
        panic!("somebody reads")
    };
    assert!(!lock.is_write_locked());
    at(Point::Halt, move || unlock_read(lock, read));
    // SAFETY: as above.
    let write = unsafe { lock.upgrade(upgradable) };
    assert!(lock.is_write_locked() && lock.try_read().is_none());
    // SAFETY: as above.
    let upgradable = unsafe { lock.downgrade_to_upgradable(write) };
    assert!(lock.try_upgradable().is_none());
    unlock_read(lock, lock.try_read().unwrap());
    // SAFETY: as above.
    let Ok(write) = (unsafe { lock.try_upgrade(upgradable) }) else {
        panic!("nobody else reads")
    };
    unlock_write(lock, write);
    assert_clean(lock);
}

/// R4, in `clear_out`: a writer that kept the gate closed while it waits for the upgradable reader would wait for one that
/// waits for the gate.
#[test]
fn a_writer_does_not_stand_in_the_way_of_an_upgrade() {
    let lock = leak::<Recommended>();
    let upgradable = lock.upgradable();
    let writes = writer(1, lock);
    writes.sleep();
    // SAFETY: acquired above.
    let write = unsafe { lock.upgrade(upgradable) };
    unlock_write(lock, write);
    writes.end();
    assert_clean(lock);
}

/// The list in `wait_for_gate_without_upgradable`, and the word to its next at the end.
#[test]
fn those_that_wait_for_the_upgradable_reader_go_in_their_order() {
    let lock = leak::<Recommended>();
    let upgradable = lock.upgradable();
    let waits = [1, 2, 3].map(|thread| {
        let wait = actor(thread, move || unlock_upgradable(lock, lock.upgradable()));
        wait.sleep();
        wait
    });
    assert!(lock.is_contended());
    unlock_upgradable(lock, upgradable);
    for wait in waits {
        wait.end();
    }
    assert_clean(lock);
}

/// Its place in the list, and the word to the next one: without `tell` at the end of the wait the writer behind it sleeps on.
#[test]
fn one_that_gives_up_waiting_for_the_upgradable_reader_passes_the_word_on() {
    let lock = leak::<Recommended>();
    let upgradable = lock.upgradable();
    let writes: &RefCell<Option<Actor>> = Box::leak(Box::default());
    at(Point::Halt, move || {
        let behind = writer(2, lock);
        behind.sleep();
        writes.replace(Some(behind));
        // The word reaches the first one as its time ends.
        unlock_upgradable(lock, upgradable);
        lock.gate.lock();
    });
    let deadline = Toy::now().plus_nanos(1_000_000);
    assert!(as_thread(1, || lock.write_until(deadline)).is_none());
    lock.release_gate();
    writes.take().unwrap().end();
    assert_clean(lock);
}

/// `looks_empty` in `upgradable_within`, and `first` in the wait: the lock is there, but not for the newcomer.
#[test]
fn a_newcomer_does_not_pass_those_that_wait() {
    let lock = leak::<Recommended>();
    let upgradable = lock.upgradable();
    let waits = actor(1, move || unlock_upgradable(lock, lock.upgradable()));
    waits.sleep();
    unlock_upgradable(lock, upgradable);
    let deadline = Toy::now().plus_nanos(1_000_000);
    assert!(as_thread(2, || lock.upgradable_until(deadline)).is_none());
    waits.end();
    assert_clean(lock);
}

/// Without a node: naps.
#[test]
fn a_thread_without_a_slot_waits_for_the_upgradable_reader_too() {
    let lock = leak::<Recommended>();
    let upgradable = lock.upgradable();
    at(Point::Halt, move || unlock_upgradable(lock, upgradable));
    as_thread(SLOTS, || unlock_write(lock, lock.write()));
    assert_clean(lock);
}
