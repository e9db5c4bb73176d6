//! Thread 0 holds the lock at first; the others come to it. Each test of a race names the code that
//! prevents it.

mod flags;
mod give_up;
mod grant;
mod spin;

use std::boxed::Box;

use super::queue::{HAS_IT, MAY_TRY};
use super::*;
use overlock_core::node::NodeId;
use overlock_core::platform::Instant;
use overlock_core::platform::{Cpu, Pause};
use overlock_core::toy::stage::{Actor, actor};
use overlock_core::toy::{Point, SLOTS, Toy, as_thread, at, halts, kicks, left};

type Lock<Y = Timed> = &'static RwSem<Toy, Y>;

/// As [`Timed`], but two readers are woken at a time.
#[derive(Debug)]
struct TwoAtATime;

impl Policy for TwoAtATime {
    const NAME: &'static str = "rwsem_two";
    const ON_READERS: policy::OnReaders = policy::OnReaders::Time;
    const READERS_STEAL: bool = true;
    const BATCH: usize = 2;
}

fn leak<Y: Policy>() -> Lock<Y> {
    Box::leak(Box::new(RwSem::new()))
}

fn end_read<Y: Policy>(lock: Lock<Y>) {
    // SAFETY: each test releases what it has acquired; no token belongs to a thread.
    unsafe { lock.unlock_read(()) }
}

fn end_write<Y: Policy>(lock: Lock<Y>) {
    // SAFETY: as above.
    unsafe { lock.unlock_write(()) }
}

/// A thread that reads.
fn reader<Y: Policy>(thread: usize, lock: Lock<Y>) -> Actor {
    actor(thread, move || lock.read())
}

/// A thread that writes.
fn writer<Y: Policy>(thread: usize, lock: Lock<Y>) -> Actor {
    actor(thread, move || lock.write())
}

/// All of them, asleep.
fn asleep<const N: usize>(parts: [Actor; N]) -> [Actor; N] {
    parts.iter().for_each(Actor::sleep);
    parts
}

fn count<Y: Policy>(lock: Lock<Y>) -> u32 {
    lock.count.load(Relaxed)
}

fn readers<Y: Policy>(lock: Lock<Y>) -> u32 {
    count(lock) / READER
}

/// Whether `flags`, and no others, are set.
fn has_flags<Y: Policy>(lock: Lock<Y>, flags: u32) -> bool {
    count(lock) & (WAITERS | HANDOFF | WOKEN) == flags
}

fn state(thread: usize) -> u32 {
    NodeId::new(thread, 0).node::<Toy>().state.load(Relaxed)
}

/// Nobody holds `lock`, and no waiter or flag is left.
fn assert_clean<Y: Policy>(lock: Lock<Y>) {
    assert_eq!(count(lock), 0);
    assert_eq!(lock.owner.load(Relaxed) & !DISABLED, 0);
    assert!(lock.waiters.looks_empty() && !lock.waiters.is_busy());
    assert!(!lock.osq.is_locked());
    assert_eq!(left(), 0);
}

/// Lets 5 ms pass for the caller.
fn five_ms() {
    Toy::pause(Pause::Iterations(5_000_000));
}

#[test]
fn twenty_bytes_and_no_calls_on_the_fast_paths() {
    assert_eq!(size_of::<RwSem<Toy>>(), 20);
    let lock = leak::<Timed>();
    lock.read();
    lock.read();
    assert!(lock.is_locked() && !lock.is_write_locked() && !lock.is_contended());
    assert!(lock.try_write().is_none() && lock.try_read().is_some());
    assert_eq!(count(lock), 3 * READER);
    (0..3).for_each(|_| end_read(lock));
    lock.write();
    assert!(lock.is_locked() && lock.is_write_locked() && !lock.is_contended());
    assert!(lock.try_write().is_none() && lock.try_read().is_none());
    // SAFETY: written above.
    unsafe { lock.downgrade(()) };
    assert_eq!(count(lock), READER);
    end_read(lock);
    assert_clean(lock);
    assert_eq!((kicks(), halts()), (0, 0));
}

/// The owner word names the writer's CPU, and is 0 once it has left.
#[test]
fn the_owner_word_is_set_while_a_writer_owns_the_lock() {
    let lock = leak::<Timed>();
    as_thread(5, || lock.write());
    assert_eq!(lock.owner.load(Relaxed), 6 << 1);
    assert!(!lock.owner_lost_its_cpu());
    assert!(as_thread(5, || lock.owner_lost_its_cpu()));
    end_write(lock);
    assert_eq!(lock.owner.load(Relaxed), 0);
    assert_eq!(word::owner_on(Cpu::UNKNOWN), 0);
    assert!(!lock.owner_lost_its_cpu());
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "nobody reads")]
fn a_read_unlock_too_many_panics() {
    end_read(leak::<Timed>());
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "nobody writes")]
fn a_write_unlock_too_many_panics() {
    end_write(leak::<Timed>());
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "more than 2^23 readers")]
fn a_reader_too_many_panics() {
    let lock = leak::<Timed>();
    lock.count.store(FULL, Relaxed);
    lock.read();
}

/// FULL in `take_read_if` and in `grant_reads`: without it the count might wrap and the lock be
/// free.
#[test]
fn a_reader_too_many_waits() {
    let lock = leak::<Timed>();
    lock.count.store(FULL, Relaxed);
    assert!(lock.try_read().is_none());
    assert!(!lock.sleep_read(&Limit::until(Instant::from_nanos(0))));
    assert_eq!(count(lock), FULL);
    let late = actor(1, move || assert!(lock.sleep_read(&Limit::NONE)));
    late.sleep();
    // All but one leave, then that one.
    lock.count.fetch_sub(FULL - READER, Relaxed);
    end_read(lock);
    late.end();
    end_read(lock);
    assert_clean(lock);
}

/// `Waiter::new` and `Osq::lock` find no node: the thread backs off and tries again, and a holder
/// that leaves meanwhile lets it in.
#[test]
fn a_thread_without_a_node_gets_the_lock() {
    let lock = leak::<Timed>();
    lock.write();
    at(Point::Halt, move || end_write(lock));
    as_thread(SLOTS, || lock.read());
    at(Point::Halt, move || end_read(lock));
    as_thread(SLOTS, || lock.write());
    let soon = Toy::now().plus_nanos(60_000);
    assert!(as_thread(SLOTS, || lock.read_until(soon)).is_none());
    assert!(as_thread(SLOTS, || lock.write_until(soon)).is_none());
    end_write(lock);
    assert_clean(lock);
}

/// A reader that has counted itself in vain, and exists only in the parent, is forgotten.
#[test]
fn a_child_that_writes_has_no_readers() {
    use overlock_core::raw::RawForkRwLock;
    let lock = leak::<Timed>();
    lock.write();
    lock.count.fetch_add(READER, Relaxed);
    // SAFETY: there is no other thread, and this one writes.
    unsafe { lock.forget_waiters(true) };
    end_write(lock);
    assert!(!lock.is_locked());
}
