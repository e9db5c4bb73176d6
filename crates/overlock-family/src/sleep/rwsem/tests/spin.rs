//! Spinning, by policy.

use std::mem::ManuallyDrop;

use super::super::policy::{Counted, OnReaders, reader_spin_ns};
use super::super::spin::SpinBudget;
use super::*;
use overlock_core::platform::Spin;
use overlock_core::toy::on_cpu;

const DOCUMENT: OnReaders = Counted::ON_READERS;
const THRESHOLD: u32 = 1 << 10;

/// The document's numbers: 2^10 polls without a change, 2^14 in all.
#[test]
fn polls_start_again_when_the_word_changes_up_to_a_maximum() {
    let mut budget = SpinBudget::new(DOCUMENT, false);
    let mut all = 0;
    for word in 1.. {
        let polls = budget.polls_at(word, THRESHOLD);
        if polls == 0 {
            break;
        }
        assert_eq!(polls, THRESHOLD.min((1 << 14) - all));
        // It changes after 1000 of them.
        let used = polls.min(1000);
        budget.charge(used);
        all += used;
    }
    assert_eq!(all, 1 << 14);
}

#[test]
fn polls_without_a_change_come_to_an_end() {
    let mut budget = SpinBudget::new(DOCUMENT, false);
    assert_eq!(budget.polls_at(READER, THRESHOLD), THRESHOLD);
    budget.charge(THRESHOLD - 24);
    assert_eq!(budget.polls_at(READER, THRESHOLD), 24);
    budget.charge(24);
    assert_eq!(budget.polls_at(READER, THRESHOLD), 0);
    // Not even a change helps then.
    assert_eq!(budget.polls_at(2 * READER, THRESHOLD), 0);
}

/// A spinner does not begin where spinning is disabled.
#[test]
fn a_disabled_spinner_has_no_polls() {
    let mut budget = SpinBudget::new(DOCUMENT, true);
    assert_eq!(budget.polls_at(READER, THRESHOLD), 0);
}

#[test]
fn the_time_grows_with_the_readers_up_to_25_us() {
    let times = [1, 2, 10, 30, 31, 1000].map(reader_spin_ns);
    assert_eq!(times, [10_500, 11_000, 15_000, 25_000, 25_000, 25_000]);
}

/// A writer spins while readers hold the lock, and takes it when the last one leaves.
fn a_writer_outlasts_readers<Y: Policy>() {
    let lock = leak::<Y>();
    lock.read();
    lock.read();
    at(Point::Wait, move || as_thread(0, || end_read(lock)));
    at(Point::Wait, move || as_thread(0, || end_read(lock)));
    as_thread(1, || lock.write());
    assert_eq!((halts(), kicks()), (0, 0));
    assert_eq!(lock.owner.load(Relaxed), 2 << 1);
    end_write(lock);
    assert_clean(lock);
}

#[test]
fn writers_spin_on_readers_by_polls_and_by_time() {
    a_writer_outlasts_readers::<Counted>();
    a_writer_outlasts_readers::<Timed>();
}

/// Asserts that `part` does not spin: it would have to queue behind another spinner, and even one
/// poll is too many.
fn sleeps_at_once<Y: Policy>(lock: Lock<Y>, part: &Actor) {
    let head = ManuallyDrop::new(as_thread(7, || lock.osq.lock(Spin::Forever, || false)));
    part.sleep_before(Point::Seen);
    // Only now: had the part failed within the queue, the queue's head would wait for it.
    drop(ManuallyDrop::into_inner(head));
}

/// `ON_READERS` in `can_spin`.
#[test]
fn without_spinning_on_readers_a_writer_still_spins_on_a_writer() {
    let lock = leak::<policy::None>();
    lock.read();
    let part = writer(1, lock);
    sleeps_at_once(lock, &part);
    end_read(lock);
    part.end();
    at(Point::Wait, move || as_thread(1, || end_write(lock)));
    as_thread(2, || lock.write());
    assert_eq!(halts(), 0);
    end_write(lock);
    assert_clean(lock);
}

/// The disable bit: a spinner that gives up sets it, and `can_spin` heeds it until the owner word
/// is a writer's. `Counted` keeps it when the readers leave; with `Timed` the last of them clears
/// it (`reenable_spinning`).
fn readers_that_stay_disable_spinning<Y: Policy>(outlasts_readers: bool) {
    let lock = leak::<Y>();
    lock.read();
    let [first] = asleep([writer(1, lock)]);
    assert_eq!(lock.owner.load(Relaxed), DISABLED);
    let second = writer(2, lock);
    sleeps_at_once(lock, &second);
    end_read(lock);
    let left = if outlasts_readers { DISABLED } else { 0 };
    assert_eq!(lock.owner.load(Relaxed), left);
    first.end();
    assert_eq!(lock.owner.load(Relaxed), 2 << 1);
    end_write(lock);
    second.end();
    end_write(lock);
    // Spinning is on again.
    lock.read();
    at(Point::Wait, move || as_thread(0, || end_read(lock)));
    lock.write();
    end_write(lock);
    assert_clean(lock);
}

#[test]
fn a_spin_in_vain_disables_spinning_until_a_writer_has_had_the_lock() {
    readers_that_stay_disable_spinning::<Counted>(true);
    readers_that_stay_disable_spinning::<Timed>(false);
}

/// The exchange in `disable`: a store would say that nobody owns the lock.
#[test]
fn a_writer_that_came_in_time_stays_the_owner() {
    let lock = leak::<Timed>();
    lock.write();
    let owner = lock.owner.load(Relaxed);
    lock.disable();
    assert_eq!(lock.owner.load(Relaxed), owner);
    end_write(lock);
    assert_clean(lock);
}

/// `owner_lost_its_cpu`, in `can_spin` and in `spin_behind_writer`.
#[test]
fn nobody_spins_on_a_writer_whose_cpu_it_runs_on() {
    fn on_the_same_cpu<Y: Policy>(writes: bool) {
        let lock = leak::<Y>();
        as_thread(0, || lock.write());
        let part = actor(1, move || {
            on_cpu(0);
            if writes { lock.write() } else { lock.read() }
        });
        sleeps_at_once(lock, &part);
        end_write(lock);
        part.end();
    }
    on_the_same_cpu::<Timed>(true);
    on_the_same_cpu::<Timed>(false);
    on_the_same_cpu::<Counted>(true);
}

/// Asserts that a spin on a writer lasts as long as the policy says, and no longer.
fn spinning_on_a_writer_takes_its_time(acquire: impl Fn(Lock)) {
    let lock = leak::<Timed>();
    acquire(lock);
    for (thread, writes) in [(1, true), (2, false)] {
        let before = Toy::now();
        at(Point::Halt, move || {
            assert!((Timed::SPIN_NS..2 * Timed::SPIN_NS).contains(&Toy::now().nanos_since(before)));
            as_thread(0, || end_write(lock));
        });
        if writes {
            as_thread(thread, || lock.write());
            end_write(lock);
            acquire(lock);
        } else {
            as_thread(thread, || lock.read());
        }
    }
    end_read(lock);
    assert_clean(lock);
}

/// The bound in time on writers.
#[test]
fn spinning_on_a_writer_ends_after_its_time() {
    spinning_on_a_writer_takes_its_time(|lock| lock.write());
}

/// A writer that has lost its CPU between its exchange and its store of `owner`.
/// `owner_lost_its_cpu` knows nothing of it, and `count` says that it holds the lock. Fails where
/// an `owner` of 0 is taken for a writer that has left, or does not run.
#[test]
fn spinners_spin_on_a_writer_that_has_not_stored_its_cpu_yet() {
    spinning_on_a_writer_takes_its_time(|lock| lock.count.store(WRITER, Relaxed));
}

/// All readers that spin on a writer see it leave, and barge past the queue. The first of them
/// finds a free lock; the second finds it read, and with a waiter: `take_read_if` without
/// `must_queue`.
#[test]
fn readers_spin_on_a_writer_together() {
    let lock = leak::<Timed>();
    lock.write();
    let [queued] = asleep([writer(1, lock)]);
    let parts = [2, 3].map(|thread| reader(thread, lock));
    parts.iter().for_each(|part| part.to(Point::Wait));
    end_write(lock);
    parts.into_iter().for_each(Actor::end);
    assert_eq!(count(lock), (2 * READER) | WAITERS | WOKEN);
    assert_eq!(halts(), 0);
    assert!(lock.try_read().is_none());
    queued.sleep();
    end_read(lock);
    end_read(lock);
    queued.end();
    end_write(lock);
    assert_clean(lock);
}

/// Not past the handoff: `allowed` in `spin_behind_writer`.
#[test]
fn readers_that_see_a_writer_leave_respect_the_handoff() {
    let lock = leak::<Timed>();
    lock.write();
    let [first] = asleep([writer(1, lock)]);
    let late = reader(2, lock);
    late.to(Point::Wait);
    lock.request_handoff(NodeId::new(1, 0));
    end_write(lock);
    late.sleep();
    first.end();
    assert_eq!(count(lock), WRITER | WAITERS);
    end_write(lock);
    late.end();
    end_read(lock);
    assert_clean(lock);
}

/// The document's rule in `spin_read`: with no spinner, and the wait lock free, a reader queues.
#[test]
fn a_reader_of_the_published_forms_spins_only_with_other_spinners() {
    let lock = leak::<Counted>();
    lock.write();
    let alone = reader(1, lock);
    alone.sleep_before(Point::Seen);
    let spinner = writer(2, lock);
    spinner.to(Point::Wait);
    let second = reader(3, lock);
    second.to(Point::Wait);
    end_write(lock);
    alone.end();
    end_read(lock);
    spinner.end();
    end_write(lock);
    second.end();
    end_read(lock);
    assert_clean(lock);
}
