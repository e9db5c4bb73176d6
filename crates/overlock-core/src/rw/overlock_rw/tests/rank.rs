//! Threads with ranks.

use super::*;
use crate::toy::set_rank;

fn ranked_writer(number: usize, lock: Lock, until: fn() -> Option<Deadline>) -> Actor {
    actor(number, move || {
        set_rank(5);
        assert_eq!(lock.write_within(until()), until().is_none());
    })
}

/// Within the second spin.
fn soon() -> Option<Deadline> {
    Some(Toy::now().plus_nanos(SPIN_NS + 1_000).into())
}

fn never() -> Option<Deadline> {
    None
}

/// Fails where a writer of rank waits at the gate, whose owner has no CPU here.
#[test]
fn a_writer_of_rank_does_not_wait_for_the_gates_owner() {
    for reads in [true, false] {
        let lock = leak();
        if reads {
            lock.read()
        } else {
            lock.write()
        }
        let gates = writer(1, lock);
        gates.sleep();
        let first = ranked_writer(2, lock, never);
        first.sleep();
        let second = ranked_writer(3, lock, never);
        second.sleep();
        match reads {
            true => unlock_read(lock),
            false => unlock_write(lock),
        }
        first.end();
        assert_eq!(word(lock) & (WRITING | CLOSED | READERS), WRITING);
        second.sleep();
        unlock_write(lock);
        second.end();
        gates.sleep();
        unlock_write(lock);
        gates.end();
        unlock_write(lock);
        assert_eq!(word(lock), 0);
    }
}

/// Fails where the gate's owner forgets a writer of rank that sleeps.
#[test]
fn a_writer_of_rank_is_woken_by_the_gates_owner_that_came_first() {
    let lock = leak();
    lock.read();
    let gates = writer(1, lock);
    gates.sleep();
    let ranked = ranked_writer(2, lock, never);
    ranked.sleep();
    unlock_read(lock);
    gates.end();
    // It was kicked before that.
    ranked.sleep();
    unlock_write(lock);
    ranked.end();
    unlock_write(lock);
    assert_eq!(word(lock), 0);
}

/// Fails where a free lock that the gate's owner has closed keeps out a reader of rank, and where
/// that one is not woken as the last reader leaves.
#[test]
fn a_reader_of_rank_does_not_wait_for_the_gates_owner() {
    let lock = leak();
    lock.read();
    let gates = writer(1, lock);
    gates.sleep();
    assert_ne!(word(lock) & CLOSED, 0);
    let ranked = actor(2, move || {
        set_rank(5);
        assert_eq!(lock.read_passing(Passing::Never, None), Ok(()));
    });
    ranked.sleep();
    unlock_read(lock);
    ranked.end();
    gates.sleep();
    unlock_read(lock);
    gates.end();
    unlock_write(lock);
    assert_eq!(word(lock), 0);
}

/// Fails where it waits for a writer that waits, as others do for a while.
#[test]
fn a_reader_of_rank_that_may_barge_does_so_at_once() {
    let lock = leak();
    lock.read();
    let gates = writer(1, lock);
    gates.sleep();
    let ranked = actor(2, move || {
        set_rank(5);
        assert_eq!(lock.read_passing(Passing::Later, None), Ok(()));
    });
    ranked.end();
    unlock_read(lock);
    unlock_read(lock);
    gates.end();
    unlock_write(lock);
}

/// Fails where the lock stays closed, or the sleepers whose flags it clears are not kicked.
#[test]
fn a_writer_of_rank_that_gives_up_opens_the_lock_and_kicks() {
    let lock = leak();
    lock.read();
    let ranked = ranked_writer(1, lock, soon);
    ranked.sleep();
    let reads = reader(2, lock, Passing::Never);
    reads.sleep();
    let gates = writer(3, lock);
    gates.sleep();
    // Its deadline passes.
    ranked.startle();
    ranked.end();
    assert_eq!(word(lock), 1);
    reads.end();
    gates.sleep();
    unlock_read(lock);
    unlock_read(lock);
    gates.end();
    unlock_write(lock);
    assert_eq!(word(lock), 0);
}

/// Fails where a thread of rank that sleeps passes for the gate's owner: a fair release closes the
/// lock for one that will open it again.
#[test]
fn a_fair_release_closes_the_lock_for_no_thread_of_rank() {
    for passing in [Passing::Never, Passing::AtOnce] {
        let lock = leak();
        lock.write();
        let ranked = actor(1, move || {
            set_rank(5);
            assert_eq!(lock.read_passing(passing, None), Ok(()));
        });
        ranked.sleep();
        // SAFETY: acquired above.
        unsafe { lock.unlock_write_fair(()) };
        ranked.end();
        assert_eq!(word(lock), 1);
        unlock_read(lock);
    }
}

/// Fails where a writer of rank leaves the flag of the gate's owner in the word.
#[test]
fn a_writer_of_rank_that_slept_may_release_fairly() {
    let lock = leak();
    lock.upgradable();
    let ranked = ranked_writer(1, lock, never);
    ranked.sleep();
    assert_eq!(word(lock) & FIRST, 0);
    // SAFETY: acquired above.
    unsafe { lock.unlock_upgradable_fair(()) };
    ranked.end();
    // SAFETY: the thread above has acquired it.
    unsafe { lock.unlock_write_fair(()) };
    assert_eq!(word(lock), 0);
}
