//! Readers that write to their own slots.

use super::*;
use crate::node::READING;

/// Reads until the lock is biased.
fn bias(lock: Lock) {
    for _ in 0..3 << 10 {
        unlock_read(lock, lock.read());
    }
    assert!(lock.is_biased());
}

/// The number of counted reads so far.
fn counted<Y: Policy>(lock: Lock<Y>) -> u64 {
    lock.readers.load(Relaxed) >> 32
}

#[test]
fn a_lock_that_is_only_read_becomes_biased_and_its_readers_leave_it_alone() {
    let lock = leak::<Recommended>();
    bias(lock);
    let before = counted(lock);
    assert!((1 << 10..=2 << 10).contains(&before), "{before}");
    let reads = [lock.read(), as_thread(1, || lock.read())];
    assert!(lock.is_locked() && !lock.is_write_locked());
    assert_eq!(lock.readers.load(Relaxed), before << 32);
    let [mine, theirs] = reads;
    unlock_read(lock, mine);
    as_thread(1, || unlock_read(lock, theirs));
    assert_clean(lock);
}

/// `quiet` in `look`: with a write among every thousand reads it never pays.
#[test]
fn a_lock_that_is_written_now_and_then_does_not_become_biased() {
    let lock = leak::<Recommended>();
    for _ in 0..5 {
        for _ in 0..1000 {
            unlock_read(lock, lock.read());
        }
        assert!(!lock.is_biased());
        unlock_write(lock, lock.write());
    }
    let counted = leak::<Counted>();
    for _ in 0..3 << 10 {
        unlock_read(counted, counted.read());
    }
    assert!(!counted.is_biased());
}

/// `own_entry`: the thread's own, and that with the lock's id; a thread without one was counted.
#[test]
fn a_reader_without_its_token_leaves_in_the_way_in_which_it_came() {
    let [lock, other] = [leak::<Recommended>(), leak::<Recommended>()];
    let leave = |thread, lock: Lock| {
        // SAFETY: that thread's acquisition, whose token is not used.
        as_thread(thread, || unsafe { lock.unlock_read_without_token() });
    };
    let counted = as_thread(1, || lock.read());
    assert_eq!(lock.readers.load(Relaxed) as u32, 1);
    bias(lock);
    bias(other);
    let visible = as_thread(2, || [other.read(), lock.read()]);
    let third = as_thread(3, || lock.read());
    // The tokens are not used.
    let _ = (counted, visible, third);
    leave(2, lock);
    assert!(other.has_entries());
    leave(3, lock);
    assert!(!lock.has_entries());
    assert_eq!(lock.readers.load(Relaxed) as u32, 1);
    leave(1, lock);
    assert_eq!(lock.readers.load(Relaxed) as u32, 0);
    leave(2, other);
    assert_clean(lock);
    assert_clean(other);
}

/// WE, after WB and the heavy barrier: without `find_entry` in `drain` the writer is in beside the reader. `leave_ended`
/// wakes it: without the look at the bias in `leave_visibly`, a lost wake-up.
#[test]
fn a_writer_ends_the_bias_and_waits_for_visible_readers() {
    let lock = leak::<Recommended>();
    bias(lock);
    let reads = [1, 2].map(|thread| as_thread(thread, || lock.read()));
    // R5, `switch_on` in `is_clear` and in `drain`: without it the next writer looks for no entries.
    assert!(lock.try_write().is_none(), "somebody reads");
    let late = Instant::from_nanos(0);
    assert!(lock.write_until(late).is_none());
    let writes = writer(3, lock);
    writes.sleep();
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
fn a_reader_whose_bias_ends_as_it_enters_counts_itself() {
    let lock = leak::<Recommended>();
    bias(lock);
    let before = counted(lock);
    at(Point::Light, move || {
        as_thread(1, || {
            // The writer waits for the entry that it may see, until its reader has looked at the bias.
            lock.gate.lock();
            lock.end_bias();
            lock.release_gate();
        });
    });
    let read = lock.read();
    assert!(read.0.is_none());
    assert_eq!(counted(lock), before + 1);
    assert!(!lock.has_entries());
    unlock_read(lock, read);
    assert_clean(lock);
}

/// The kick in `leave_ended` for the entry of a reader that has come too late, seen by the writer all the same.
#[test]
fn a_writer_that_waits_for_an_entry_that_came_to_nothing_is_woken() {
    let lock = leak::<Recommended>();
    bias(lock);
    let reads = reader(1, lock);
    reads.to(Point::Light);
    let writes = writer(2, lock);
    writes.sleep();
    // It clears its entry, wakes the writer, and waits at the gate.
    reads.sleep();
    writes.end();
    reads.end();
    assert_clean(lock);
}

/// `id` in `outwait`: the reader leaves between the writer's look at all entries and its wait for this one.
#[test]
fn a_writer_does_not_wait_for_an_entry_that_was_cleared_as_it_found_it() {
    let lock = leak::<Recommended>();
    bias(lock);
    let read = lock.read();
    let entry = lock.find_entry().unwrap();
    unlock_read(lock, read);
    assert!(lock.outwait(entry, &Limit::NONE));
    assert_eq!(halts(), 0);
}

/// `drain` looks at the bias again after the count: whoever is counted may switch the bias on until it leaves.
#[test]
fn a_bias_that_the_last_counted_reader_switches_on_is_ended_too() {
    let lock = leak::<Recommended>();
    let read = lock.read();
    let writes = writer(1, lock);
    writes.sleep();
    lock.switch_on();
    let visible = as_thread(2, || lock.read());
    assert!(visible.0.is_some());
    unlock_read(lock, read);
    writes.sleep();
    as_thread(2, || unlock_read(lock, visible));
    writes.end();
    assert_clean(lock);
}

/// `end_bias` before `drain` waits for the counted: else readers that come later enter past the writer. And `switch_on` where that wait
/// is given up (R5), but not on a lock that has never been biased.
#[test]
fn readers_that_come_while_a_writer_waits_for_counted_ones_do_not_enter() {
    for biased in [true, false] {
        let lock = leak::<Recommended>();
        let read = lock.read();
        if biased {
            lock.switch_on();
        }
        let inside = as_thread(1, || lock.read());
        assert_eq!(inside.0.is_some(), biased);
        at(Point::Halt, move || {
            as_thread(2, || assert!(lock.try_read().is_none()));
        });
        let deadline = Toy::now().plus_nanos(100_000);
        assert!(as_thread(3, || lock.write_until(deadline)).is_none());
        assert_eq!(left(), 0);
        assert_eq!(lock.is_biased(), biased);
        let writes = writer(3, lock);
        writes.sleep();
        assert!(as_thread(2, || lock.try_read()).is_none());
        unlock_read(lock, read);
        as_thread(1, || unlock_read(lock, inside));
        writes.end();
        assert_clean(lock);
    }
}

#[test]
fn the_per_cpu_form_is_biased_from_the_first_read_on_and_again_after_each_write() {
    let lock = leak::<PerCpu>();
    for _ in 0..3 {
        unlock_read(lock, lock.read());
        assert!(lock.is_biased());
        let before = counted(lock);
        let read = lock.read();
        assert_eq!(counted(lock), before);
        assert!(lock.try_write().is_none());
        assert!(
            lock.is_biased(),
            "the writer that failed has left it as it was"
        );
        let deadline = Toy::now().plus_nanos(100_000);
        assert!(as_thread(1, || lock.write_until(deadline)).is_none());
        assert!(lock.is_biased());
        unlock_read(lock, read);
        unlock_write(lock, lock.write());
        assert!(lock.is_biased());
    }
    assert_clean(lock);
}

/// The search in `enter_visibly`, and its end.
#[test]
fn a_thread_that_reads_more_locks_than_it_has_entries_counts_itself_in_the_others() {
    let locks: [Lock<PerCpu>; READING + 2] = core::array::from_fn(|_| leak());
    for lock in locks {
        unlock_read(lock, lock.read());
    }
    let mut reads: std::vec::Vec<_> = locks.iter().map(|lock| lock.read()).collect();
    let visible = reads.iter().filter(|read| read.0.is_some()).count();
    assert_eq!(visible, READING);
    for (lock, read) in locks.into_iter().zip(reads.drain(..)) {
        assert!(lock.try_write().is_none());
        unlock_read(lock, read);
        unlock_write(lock, lock.try_write().unwrap());
        assert_clean(lock);
    }
}

/// `reading` in `is_idle`: else the next thread that gets the slot could clear the entry.
#[test]
fn the_slot_of_a_thread_that_forgot_a_read_guard_is_never_given_away() {
    let lock = leak::<PerCpu>();
    unlock_read(lock, lock.read());
    let _forgotten = as_thread(1, || lock.read());
    assert!(!Toy::slots()[1].is_idle());
    assert!(Toy::slots()[2].is_idle());
    assert!(lock.try_write().is_none());
}

/// The id stays with the lock, and an entry that was forgotten in one lock says nothing about another.
#[test]
fn locks_have_different_ids() {
    let [one, two] = [leak::<PerCpu>(), leak::<PerCpu>()];
    for lock in [one, two] {
        unlock_read(lock, lock.read());
    }
    let _forgotten = as_thread(1, || one.read());
    unlock_write(two, two.try_write().unwrap());
    assert!(one.try_write().is_none());
    // All 2^31 ids have been given, or nearly.
    Toy::reader_ids().store(OFF - 1, Relaxed);
    let third = leak::<PerCpu>();
    unlock_read(third, third.read());
    assert!(third.is_biased());
}
