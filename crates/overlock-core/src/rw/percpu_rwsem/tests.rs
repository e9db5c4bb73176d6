//! Thread 0 runs the script; the actors are threads 1 to 7.

use std::boxed::Box;

use super::*;
use crate::platform::Instant;
use crate::slot::ENTRIES;
use crate::toy::stage::{Actor, actor};
use crate::toy::watch::{self, Access, Watch};
use crate::toy::{Point, SLOTS, Toy, as_thread, at, halts, kicks, left};

type Lock = &'static PerCpuRwSem<Toy>;

/// A lock that was read before, and so has an id.
fn leak() -> Lock {
    let lock: Lock = Box::leak(Box::default());
    unlock_read(lock, lock.read());
    lock
}

fn unlock_read(lock: Lock, token: Read<Toy>) {
    // SAFETY: each test releases what it has acquired.
    unsafe { lock.unlock_read(token) }
}

fn unlock_write(lock: Lock) {
    // SAFETY: as above.
    unsafe { lock.unlock_write(()) }
}

fn writer(thread: usize, lock: Lock) -> Actor {
    actor(thread, move || {
        lock.write();
        unlock_write(lock);
    })
}

fn reader(thread: usize, lock: Lock) -> Actor {
    actor(thread, move || unlock_read(lock, lock.read()))
}

/// Nobody holds `lock`, and no waiter, flag or entry is left.
fn assert_clean(lock: Lock) {
    assert!(!lock.is_locked() && !lock.is_write_locked() && !lock.is_contended());
    let entries = Toy::tables().first(SLOTS).flat_map(|slot| &slot.entries.0);
    assert!(
        entries
            .into_iter()
            .all(|entry| entry.waited.load(Relaxed) == 0)
    );
    assert_eq!(left(), 0);
}

#[test]
fn readers_share_and_writers_exclude() {
    let lock = leak();
    let [one, two] = [
        lock.read(),
        as_thread(1, || lock.read_until(Instant::from_nanos(0))).unwrap(),
    ];
    assert!(one.0.is_some() && two.0.is_some() && !lock.lock.is_locked());
    assert!(lock.is_locked() && !lock.is_write_locked());
    assert!(lock.try_write().is_none() && !lock.is_write_locked());
    unlock_read(lock, one);
    assert!(lock.write_until(Instant::from_nanos(0)).is_none());
    as_thread(1, || unlock_read(lock, two));
    lock.write();
    assert!(lock.is_write_locked());
    assert!(lock.try_read().is_none() && lock.try_write().is_none());
    // SAFETY: acquired above.
    let read = unsafe { lock.downgrade(()) };
    assert!(read.0.is_none() && !lock.is_write_locked());
    assert!(lock.try_write().is_none());
    unlock_read(lock, lock.try_read().unwrap());
    unlock_read(lock, read);
    assert!(lock.try_write().is_some());
    unlock_write(lock);
    assert_clean(lock);
    assert_eq!((kicks(), halts()), (0, 0));
    assert_eq!(size_of_val(lock), size_of::<OverlockRw<Toy>>() + 4);
}

/// P2: without `find_entry` in `drain` the writer enters while the reader is inside. RK: without
/// the load of `waited` in `clear`, a lost wake-up.
#[test]
fn a_writer_waits_for_visible_readers() {
    let lock = leak();
    let reads = [1, 2].map(|thread| as_thread(thread, || lock.read()));
    let writes = writer(3, lock);
    writes.sleep();
    assert!(lock.is_contended());
    for (read, thread) in reads.into_iter().zip([1, 2]) {
        assert!(lock.is_write_locked());
        as_thread(thread, || unlock_read(lock, read));
        if thread == 1 {
            writes.sleep();
        }
    }
    writes.end();
    assert_clean(lock);
}

/// RB after RE: the writer comes between, and has found no entry.
#[test]
fn a_reader_that_finds_a_writer_after_its_entry_counts_itself() {
    let lock = leak();
    at(Point::Light, move || {
        as_thread(1, || {
            assert!(lock.lock.try_write().is_some());
        });
    });
    // The light barrier as it backs out.
    at(Point::Light, move || {
        assert!(lock.find_entry().is_none());
        unlock_write(lock);
    });
    let read = lock.read();
    assert!(read.0.is_none());
    unlock_read(lock, read);
    assert_clean(lock);
}

/// The kick in `clear` for the entry of a reader that came too late, but which the writer has seen.
#[test]
fn a_reader_that_backs_out_wakes_a_writer_that_saw_its_entry() {
    let lock = leak();
    let reads = reader(1, lock);
    reads.to(Point::Light);
    let writes = writer(2, lock);
    writes.sleep();
    // It clears its entry, wakes the writer, and sleeps for it.
    reads.sleep();
    writes.end();
    reads.end();
    assert_clean(lock);
}

/// WK, then the heavy barrier, then the load: the reader leaves between the writer's spin and its
/// increment, or just before the halt.
#[test]
fn a_writer_does_not_sleep_after_its_reader_has_left() {
    for point in [Point::Heavy, Point::Halt] {
        let lock = leak();
        let read = as_thread(1, || lock.read());
        if point == Point::Heavy {
            // The first barrier is that of the search.
            at(point, || {});
        }
        at(point, move || as_thread(1, || unlock_read(lock, read)));
        let before = halts();
        lock.write();
        assert_eq!(halts(), before);
        unlock_write(lock);
        assert_clean(lock);
    }
}

/// `id` in `wait_for_entry`: the reader leaves between the writer's search and its wait for the
/// entry.
#[test]
fn a_writer_does_not_wait_for_an_entry_that_was_cleared_as_it_found_it() {
    let lock = leak();
    let read = lock.read();
    let entry = lock.find_entry().unwrap();
    unlock_read(lock, read);
    assert!(lock.wait_for_entry(entry, None));
    assert_eq!(halts(), 0);
}

/// `unlock_write` in `drain`, and the way back from `waited`.
#[test]
fn a_writer_that_gives_up_lets_readers_in_again() {
    let lock = leak();
    let read = as_thread(1, || lock.read());
    for nanos in [0, SPIN_NS, 1_000_000] {
        let until = Toy::now().plus_nanos(nanos);
        assert!(lock.write_until(until).is_none());
        assert!(Toy::now() >= until && !lock.is_write_locked());
        let visible = lock.read();
        assert!(visible.0.is_some());
        unlock_read(lock, visible);
    }
    assert_eq!(halts(), 1);
    as_thread(1, || unlock_read(lock, read));
    assert_eq!(kicks(), 0);
    assert_clean(lock);
}

/// P3: the clearing of the entry is the last access.
#[test]
fn a_visible_reader_touches_nothing_of_the_lock_after_its_release() {
    let lock: &'static PerCpuRwSem<Watch> = Box::leak(Box::new(PerCpuRwSem::new()));
    // SAFETY: just acquired, here and below.
    unsafe { lock.unlock_read(lock.read()) };
    let read = lock.read();
    read.0.unwrap().waited.fetch_add(1, Relaxed);
    watch::watch(lock);
    watch::freed();
    // SAFETY: as above.
    unsafe { lock.unlock_read(read) };
    // The check of debug builds, before it.
    assert_eq!(watch::touches(), [Access::Load]);
    assert_eq!(kicks(), 1);
}

/// Threads beyond the slots have no entry.
#[test]
fn threads_without_a_slot_read_and_write_too() {
    let lock = leak();
    let read = as_thread(SLOTS, || lock.read());
    assert!(read.0.is_none(), "it counts itself");
    at(Point::Halt, move || unlock_read(lock, read));
    as_thread(SLOTS + 1, || lock.write());
    unlock_write(lock);
    assert_clean(lock);
}

/// The search in `enter`, and its end.
#[test]
fn a_thread_that_reads_more_locks_than_it_has_entries_counts_itself_in_the_others() {
    let locks: [Lock; ENTRIES + 2] = core::array::from_fn(|_| leak());
    let mut reads: std::vec::Vec<_> = locks.iter().map(|lock| lock.read()).collect();
    let visible = reads.iter().filter(|read| read.0.is_some()).count();
    assert_eq!(visible, ENTRIES);
    for (lock, read) in locks.into_iter().zip(reads.drain(..)) {
        assert!(lock.try_write().is_none());
        unlock_read(lock, read);
        assert!(lock.try_write().is_some());
        unlock_write(lock);
        assert_clean(lock);
    }
}

/// `entries` in `is_idle`: else the next thread that gets the slot could clear the entry.
#[test]
fn the_slot_of_a_thread_that_forgot_a_read_guard_is_never_given_away() {
    let lock = leak();
    let _forgotten = as_thread(1, || lock.read());
    assert!(!Toy::tables().slot(1).is_idle());
    assert!(Toy::tables().slot(2).is_idle());
    assert!(lock.try_write().is_none());
}

/// The id stays with the lock, and an entry that was leaked by one lock does not concern another. 0
/// is no id.
#[test]
fn locks_have_different_ids() {
    let [one, two] = [leak(), leak()];
    let _forgotten = as_thread(1, || one.read());
    assert!(two.try_write().is_some());
    unlock_write(two);
    assert!(one.try_write().is_none());
    // The ids are about to wrap.
    Toy::tables().numbers.0.store(u32::MAX, Relaxed);
    let third = leak();
    let read = third.read();
    assert!(read.0.is_some());
    unlock_read(third, read);
}
