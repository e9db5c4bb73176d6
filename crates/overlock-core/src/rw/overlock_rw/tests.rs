//! One thread plays all parts, or several on a stage: see [`toy`](crate::toy).

mod bias;
mod upgrade;

use std::boxed::Box;

use super::*;
use crate::raw::{RawFairRwLock, RawUpgradeRwLock};
use crate::toy::stage::{Actor, actor};
use crate::toy::{Point, SLOTS, Toy, as_thread, at, halts, kicks, left};

type Lock<Y = Recommended> = &'static OverlockRw<Toy, Y>;

fn leak<Y: Policy>() -> Lock<Y> {
    Box::leak(Box::default())
}

fn unlock_read<Y: Policy>(lock: Lock<Y>, token: Read<Toy>) {
    // SAFETY: each test releases what it has acquired.
    unsafe { lock.unlock_read(token) }
}

fn unlock_write<Y: Policy>(lock: Lock<Y>, token: Write) {
    // SAFETY: as above.
    unsafe { lock.unlock_write(token) }
}

/// A thread that acquires the lock alone and releases it.
fn writer<Y: Policy>(thread: usize, lock: Lock<Y>) -> Actor {
    actor(thread, move || unlock_write(lock, lock.write()))
}

fn reader<Y: Policy>(thread: usize, lock: Lock<Y>) -> Actor {
    actor(thread, move || unlock_read(lock, lock.read()))
}

/// Nobody holds `lock`, and nothing is left of anybody.
fn assert_clean<Y: Policy>(lock: Lock<Y>) {
    assert!(!lock.is_locked() && !lock.is_write_locked() && !lock.is_contended());
    assert_eq!(count(lock.readers.load(Relaxed)), 0);
    assert_eq!(lock.upgradable.load(Relaxed), 0);
    assert_eq!(lock.gate.kicks().load(Relaxed), 0);
    assert_eq!(left(), 0);
}

#[test]
fn readers_share_and_writers_exclude() {
    let lock = leak::<Recommended>();
    let [one, two] = [lock.read(), lock.try_read().unwrap()];
    assert!(lock.is_locked() && !lock.is_write_locked());
    assert!(lock.try_write().is_none());
    unlock_read(lock, one);
    assert!(lock.try_write().is_none());
    unlock_read(lock, two);
    let write = lock.write();
    assert!(lock.is_write_locked());
    assert!(lock.try_read().is_none() && lock.try_write().is_none());
    unlock_write(lock, write);
    unlock_write(lock, lock.try_write().unwrap());
    assert_clean(lock);
    assert_eq!((kicks(), halts()), (0, 0));
}

/// RC and RG: without the look at the gate after counting, the reader is in beside the writer. And the reader that finds
/// the gate closed wakes the writer that has seen it: without that in `leave_counted`, a lost wake-up.
#[test]
fn a_reader_that_finds_the_gate_closed_leaves_again_and_wakes_the_writer_that_saw_it() {
    let lock = leak::<Recommended>();
    let read = lock.read();
    let writes = writer(1, lock);
    writes.sleep();
    // A second reader has counted itself, and not looked at the gate yet, when the first one leaves.
    lock.readers.fetch_add(READER, Relaxed);
    unlock_read(lock, read);
    assert!(!lock.gate.is_open());
    lock.leave_counted();
    writes.end();
    assert_clean(lock);
}

/// DK before the look in `sleep`: the reader leaves between the look and the halt.
#[test]
fn a_reader_that_leaves_just_before_the_writer_sleeps_wakes_it() {
    let lock = leak::<Recommended>();
    let read = lock.read();
    at(Point::Halt, move || unlock_read(lock, read));
    as_thread(1, || unlock_write(lock, lock.write()));
    assert_eq!(kicks(), 1);
    assert_clean(lock);
}

/// The gate is closed while a writer drains (`close_gate` before `drain`): so readers cannot starve it.
#[test]
fn readers_that_come_after_a_writer_wait_for_it() {
    let lock = leak::<Recommended>();
    let read = lock.read();
    let writes = writer(1, lock);
    writes.sleep();
    let reads = reader(2, lock);
    reads.sleep();
    unlock_read(lock, read);
    writes.end();
    reads.end();
    assert_clean(lock);
}

/// `open` in `read_slow`: a reader on its way in does not keep others out.
#[test]
fn a_reader_that_passes_the_gate_lets_others_in() {
    let lock = leak::<Recommended>();
    let write = lock.write();
    let reads = reader(1, lock);
    reads.sleep();
    unlock_write(lock, write);
    lock.gate.lock();
    lock.gate.open();
    assert!(!lock.is_write_locked());
    unlock_read(lock, lock.try_read().unwrap());
    lock.release_gate();
    reads.end();
    assert_clean(lock);
}

/// `release_gate` in `clear_out`.
#[test]
fn a_writer_that_gives_up_lets_readers_in_again() {
    let lock = leak::<Recommended>();
    let read = lock.read();
    for wait in [0, 1_000, 10_000_000] {
        let deadline = Toy::now().plus_nanos(wait);
        assert!(as_thread(1, || lock.write_until(deadline)).is_none());
        assert!(Toy::now() >= deadline);
        assert!(!lock.is_write_locked() && !lock.is_contended());
        unlock_read(lock, lock.try_read().unwrap());
    }
    unlock_read(lock, read);
    let late = Instant::from_nanos(0);
    unlock_write(lock, lock.write_until(late).unwrap());
    assert_clean(lock);
}

#[test]
fn a_reader_gives_up_at_its_deadline_and_tries_once() {
    let lock = leak::<Recommended>();
    let write = lock.write();
    let deadline = Toy::now().plus_nanos(100_000);
    assert!(as_thread(1, || lock.read_until(deadline)).is_none());
    assert!(Toy::now() >= deadline);
    unlock_write(lock, write);
    unlock_read(lock, lock.read_until(Instant::from_nanos(0)).unwrap());
    assert_clean(lock);
}

/// The increment before the gate's release in `downgrade`.
#[test]
fn no_writer_comes_between_a_writer_and_the_reader_that_it_becomes() {
    let lock = leak::<Recommended>();
    let write = lock.write();
    let writes = writer(1, lock);
    writes.sleep();
    // SAFETY: acquired above.
    let read = unsafe { lock.downgrade(write) };
    unlock_read(lock, lock.try_read().unwrap());
    writes.sleep();
    unlock_read(lock, read);
    writes.end();
    assert_clean(lock);
}

/// A thread beyond the slots has neither an entry nor a node.
#[test]
fn threads_without_a_slot_read_and_write_too() {
    let lock = leak::<PerCpu>();
    unlock_read(lock, lock.read());
    let read = as_thread(SLOTS, || lock.read());
    assert!(read.0.is_none(), "it counts itself");
    at(Point::Halt, move || unlock_read(lock, read));
    as_thread(SLOTS + 1, || unlock_write(lock, lock.write()));
    assert_eq!(halts(), 1, "a nap");
    assert_clean(lock);
}

/// The look at the number of readers, every 1024 of them.
#[test]
#[should_panic(expected = "readers of one lock")]
fn too_many_readers_panic_before_the_count_overflows() {
    let lock = leak::<Recommended>();
    lock.readers.store(MOST_READERS + 5, Relaxed);
    for _ in 0..=1024 {
        let _forgotten = lock.read();
    }
}

#[test]
fn forty_bytes() {
    assert_eq!(size_of::<OverlockRw<Toy>>(), 40);
}

/// `is_crowded` in `enter_among_others`: a reader that takes turns and meets another reader in that one's turn.
#[test]
fn a_reader_steps_aside_where_another_has_its_turn() {
    let lock = leak::<Recommended>();
    let read = lock.read();
    // Meeting others is tried out: so the first few meetings end in a turn.
    let meets = |lock: Lock| as_thread(1, || unlock_read(lock, lock.read()));
    let mut meetings = 0;
    while halts() == 0 {
        meets(lock);
        meetings += 1;
        assert!(meetings < 100, "it never tries");
    }
    unlock_read(lock, read);
    assert_clean(lock);
}

/// `WAITS`: a deadline might pass in a turn of others, and `try_read` does not wait.
#[test]
fn readers_with_a_deadline_step_aside_for_nobody() {
    let lock = leak::<Recommended>();
    let read = lock.read();
    let deadline = Toy::now().plus_nanos(1_000_000_000);
    for _ in 0..100 {
        as_thread(1, || {
            unlock_read(lock, lock.try_read().unwrap());
            unlock_read(lock, lock.read_until(deadline).unwrap());
        });
    }
    assert_eq!(halts(), 0);
    unlock_read(lock, read);
    assert_clean(lock);
}

/// `unlock_fair` of the gate: with a plain release the `try_read` here gets in.
#[test]
fn a_fair_writer_gives_the_lock_to_a_sleeper() {
    let lock = leak::<Recommended>();
    let write = lock.write();
    let writes = writer(1, lock);
    writes.sleep();
    // SAFETY: acquired above.
    unsafe { lock.unlock_write_fair(write) };
    assert!(lock.try_read().is_none());
    writes.end();
    // SAFETY: as above.
    let read = unsafe { lock.bump_read(lock.read()) };
    // SAFETY: as above.
    unsafe { lock.unlock_read_fair(read) };
    // SAFETY: as above.
    let write = unsafe { lock.bump_write(lock.write()) };
    // SAFETY: as above.
    unsafe { lock.unlock_write_fair(write) };
    // SAFETY: as above.
    let upgradable = unsafe { lock.bump_upgradable(lock.upgradable()) };
    // SAFETY: as above.
    unsafe { lock.unlock_upgradable_fair(upgradable) };
    assert_clean(lock);
}

/// A reader that has counted itself in vain is gone before it has left again.
#[test]
fn a_child_that_writes_has_no_readers() {
    use crate::raw::RawForkRwLock;
    let lock = leak::<Recommended>();
    let token = lock.write();
    lock.readers.fetch_add(READER, Relaxed);
    // SAFETY: there is no other thread, and this one writes.
    unsafe { lock.forget_waiters(true) };
    unlock_write(lock, token);
    assert_clean(lock);
}

/// R5: the writer that has ended the bias, and waits for a visible reader, is gone.
#[test]
fn a_child_that_reads_visibly_has_the_bias_on() {
    use crate::raw::RawForkRwLock;
    let lock = leak::<PerCpu>();
    unlock_write(lock, lock.write());
    let token = lock.read();
    assert!(lock.has_entries());
    lock.gate.lock();
    lock.end_bias();
    // SAFETY: there is no other thread, and this one reads.
    unsafe { lock.forget_waiters(false) };
    assert!(lock.is_biased());
    unlock_read(lock, token);
}
