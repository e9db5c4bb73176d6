//! Thread 0 forks. The parts that wait at that moment are never heard of again, and new threads get
//! their slots.

use std::boxed::Box;
use std::vec::Vec;

use super::*;
use crate::node::{NodeGuard, NodeId};
use crate::raw::{RawFairLock, RawFork, RawForkRwLock, RawLock, RawRwLock, RawUpgradeRwLock};
use crate::rw::{OverlockRw, PerCpuRwSem};
use crate::sleep::Overlock;
use crate::sleep::{Barrier, Condvar, Mutex, MutexInside, RwSem, Semaphore};
use crate::slot::Slot;
use crate::spin::pv::lock_hash;
use crate::spin::pv_ticket::waiters;
use crate::spin::{Hybrid, PvQueued};
use crate::toy::stage::actor;
use crate::toy::{Point, SLOTS, Toy, kicks};
use core::sync::atomic::Ordering::Relaxed;

/// The slots that new threads may have.
fn fork() -> Vec<usize> {
    let mut given = Vec::new();
    // SAFETY: the parts run no more.
    unsafe { forget_others::<Toy>(Some(0), |slot| given.push(slot)) };
    given
}

/// A thread that waits when the process forks.
fn lost(thread: usize, wait: impl FnOnce() + Send + 'static) {
    let part = actor(thread, move || {
        wait();
        unreachable!("it is gone");
    });
    part.sleep();
    core::mem::forget(part);
}

fn leak<T>(it: T) -> &'static T {
    Box::leak(Box::new(it))
}

fn create<L: RawLock>() -> &'static L {
    leak(L::create().unwrap())
}

fn goes_on<L: RawLock + RawFork>(lock: &'static L, token: L::Token) {
    // SAFETY: `token` is the lock's.
    let unlock = |token| unsafe { lock.unlock(token) };
    unlock(token);
    assert!(!lock.is_locked() && !lock.is_contended(), "{}", L::NAME);
    assert_eq!(kicks(), 0, "{} kicks the lost", L::NAME);
    let token = lock.lock();
    // Not with a node that may still be in a list.
    let next = actor(3, move || _ = lock.lock());
    next.sleep();
    unlock(token);
    next.end();
    assert!(lock.is_locked(), "{}", L::NAME);
}

fn held_stays_held<L: RawLock + RawFork>(waiters: usize) {
    let lock = create::<L>();
    let token = lock.lock();
    for thread in 1..=waiters {
        lost(thread, || _ = lock.lock());
    }
    assert!(lock.is_contended(), "{}", L::NAME);
    fork();
    // SAFETY: `fork` was called.
    unsafe { lock.forget_waiters() };
    assert!(lock.is_locked() && !lock.is_contended(), "{}", L::NAME);
    assert!(lock.try_lock().is_none());
    goes_on(lock, token);
}

#[test]
fn a_lock_that_the_forking_thread_holds_is_its_own_in_the_child() {
    held_stays_held::<Overlock<Toy>>(2);
}

#[test]
fn so_is_a_mutex() {
    held_stays_held::<Mutex<Toy>>(2);
}

#[test]
fn so_is_one_with_a_queue_of_spinners() {
    held_stays_held::<MutexInside<Toy>>(2);
}

/// A second waiter would spin beside the first, in unfair mode.
#[test]
fn so_is_a_hybrid_lock() {
    held_stays_held::<Hybrid<Toy>>(1);
}

#[test]
fn so_is_a_paravirtual_queued_lock() {
    held_stays_held::<PvQueued<Toy>>(2);
}

#[test]
fn nobody_spins_behind_one_that_is_gone() {
    let lock = create::<Mutex<Toy>>();
    lock.lock();
    let spins = actor(1, move || lock.lock());
    spins.to(Point::Wait);
    core::mem::forget(spins);
    fork();
    // SAFETY: `fork` was called.
    unsafe { lock.forget_waiters() };
    goes_on(lock, ());
}

fn given_is_free<L: RawFairLock + RawFork>() {
    let lock = create::<L>();
    let token = lock.lock();
    lost(1, || _ = lock.lock());
    // SAFETY: locked above.
    unsafe { lock.unlock_fair(token) };
    assert!(lock.is_locked() && lock.try_lock().is_none());
    fork();
    // SAFETY: `fork` was called.
    unsafe { lock.forget_waiters() };
    assert!(!lock.is_locked() && !lock.is_contended());
    assert!(lock.try_lock().is_some());
}

#[test]
fn a_lock_that_was_given_to_one_that_is_gone_is_free() {
    given_is_free::<Overlock<Toy>>();
    given_is_free::<Mutex<Toy>>();
}

#[test]
fn nobody_waits_for_a_condition_any_more() {
    let [condvar, other] = [(); 2].map(|()| leak(Condvar::<Toy>::new()));
    let lock = create::<Overlock<Toy>>();
    for (thread, condvar) in [(1, condvar), (2, condvar), (3, other)] {
        lost(thread, || {
            lock.lock();
            // SAFETY: just locked.
            unsafe { condvar.wait(lock, ()) };
        });
    }
    // One is called, and the next waits for it to come back.
    assert_eq!(condvar.notify_all(), 2);
    fork();
    for condvar in [condvar, other] {
        // SAFETY: `fork` was called.
        unsafe { condvar.forget_waiters() };
        assert!(!condvar.is_in_use() && !condvar.notify_one());
        let new = actor(1, move || {
            lock.lock();
            // SAFETY: just locked.
            unsafe { condvar.wait(lock, ()) };
            // SAFETY: locked again.
            unsafe { lock.unlock(()) }
        });
        new.sleep();
        assert_eq!(condvar.notify_all(), 1);
        new.end();
        assert!(!condvar.is_in_use());
    }
}

#[test]
fn permits_stay() {
    let semaphore = leak(Semaphore::<Toy>::new(2));
    lost(1, || semaphore.acquire_many(3));
    lost(2, || semaphore.acquire());
    assert!(!semaphore.try_acquire());
    fork();
    // SAFETY: `fork` was called.
    unsafe { semaphore.forget_waiters() };
    assert_eq!(
        (semaphore.available(), semaphore.is_contended()),
        (2, false)
    );
    assert!(semaphore.try_acquire_many(2));
    let new = actor(1, move || semaphore.acquire());
    new.sleep();
    semaphore.release();
    new.end();
    assert_eq!(semaphore.available(), 0);
}

#[test]
fn a_round_begins_anew() {
    let barrier = leak(Barrier::<Toy>::new(3));
    lost(1, || _ = barrier.wait());
    fork();
    // SAFETY: `fork` was called.
    unsafe { barrier.forget_waiters() };
    let two = [1, 2].map(|thread| {
        let new = actor(thread, move || assert!(!barrier.wait()));
        new.sleep();
        new
    });
    assert!(barrier.wait());
    two.into_iter().for_each(|new| new.end());
}

fn create_rw<L: RawRwLock>() -> &'static L {
    leak(L::create().unwrap())
}

/// Nobody holds it, and somebody can wait for it.
fn goes_on_rw<L: RawForkRwLock>(lock: &'static L) {
    assert!(!lock.is_locked() && !lock.is_contended(), "{}", L::NAME);
    assert_eq!(kicks(), 0, "{} kicks the lost", L::NAME);
    let token = lock.write();
    // Not with a node that may still be in a list.
    let next = actor(3, move || _ = lock.read());
    next.sleep();
    // SAFETY: just acquired.
    unsafe { lock.unlock_write(token) };
    next.end();
    assert!(lock.is_locked() && !lock.is_write_locked(), "{}", L::NAME);
}

fn written_stays_written<L: RawForkRwLock>() {
    let lock = create_rw::<L>();
    let token = lock.write();
    lost(1, || _ = lock.write());
    lost(2, || _ = lock.read());
    lost(4, || _ = lock.write());
    fork();
    // SAFETY: `fork` was called, and the lock was acquired above.
    unsafe { lock.forget_waiters(true) };
    assert!(lock.is_write_locked() && !lock.is_contended());
    assert!(lock.try_read().is_none());
    // SAFETY: acquired above.
    unsafe { lock.unlock_write(token) };
    goes_on_rw(lock);
}

#[test]
fn a_lock_that_the_forking_thread_writes_is_its_own_in_the_child() {
    written_stays_written::<RwSem<Toy>>();
}

#[test]
fn so_is_one_with_a_gate() {
    written_stays_written::<OverlockRw<Toy>>();
}

#[test]
fn so_is_one_with_entries() {
    written_stays_written::<PerCpuRwSem<Toy>>();
}

/// A writer waits for the reader that forks, and has closed the gate, or handed it to nobody.
fn read_stays_read<L: RawForkRwLock>(token: fn(&L) -> L::Read) {
    let lock = create_rw::<L>();
    let token = token(lock);
    lost(1, || _ = lock.write());
    lost(2, || _ = lock.read());
    lost(4, || _ = lock.write());
    fork();
    // SAFETY: `fork` was called.
    unsafe { lock.forget_waiters(false) };
    assert!(lock.is_locked() && !lock.is_write_locked() && !lock.is_contended());
    assert!(lock.try_write().is_none());
    // SAFETY: acquired above.
    unsafe { lock.unlock_read(token) };
    goes_on_rw(lock);
}

#[test]
fn a_lock_that_the_forking_thread_reads_is_still_read() {
    read_stays_read::<RwSem<Toy>>(RwSem::read);
}

#[test]
fn so_is_one_that_a_writer_has_closed() {
    read_stays_read::<OverlockRw<Toy>>(OverlockRw::read);
}

/// The writer that is gone has the inner lock, and waits for the entry.
#[test]
fn so_is_one_with_a_visible_reader() {
    read_stays_read::<PerCpuRwSem<Toy>>(|lock| {
        // The first one is counted.
        // SAFETY: just acquired.
        unsafe { lock.unlock_read(lock.read()) };
        lock.read()
    });
}

/// An upgrader that is gone was a reader, and is one for ever.
fn upgrade_ends<L: RawForkRwLock + RawUpgradeRwLock>() {
    let lock = create_rw::<L>();
    let token = lock.read();
    lost(1, || {
        // SAFETY: just acquired.
        _ = unsafe { lock.upgrade(lock.upgradable()) };
    });
    fork();
    // SAFETY: `fork` was called.
    unsafe { lock.forget_waiters(false) };
    assert!(!lock.is_write_locked() && !lock.is_contended());
    let more = lock.try_read().unwrap();
    for token in [token, more] {
        // SAFETY: acquired above.
        unsafe { lock.unlock_read(token) };
    }
    assert!(lock.is_locked() && lock.try_write().is_none() && lock.try_upgradable().is_none());
}

#[test]
fn who_waited_to_be_upgraded_reads_for_ever() {
    upgrade_ends::<RwSem<Toy>>();
    upgrade_ends::<OverlockRw<Toy>>();
}

/// What `forget_others` leaves: the caller's own, and slots whose fast queue ticket is under way.
#[test]
fn slots_are_given_back_and_tables_are_empty() {
    let mine = NodeGuard::<Toy>::new().unwrap();
    let slots = Toy::tables().slots;
    for (index, slot) in slots.iter().enumerate() {
        slot.reading.0[0].lock.store(7, Relaxed);
        slot.reading.0[0].waited.store(1, Relaxed);
        if index != 0 {
            crate::toy::as_thread(index, || core::mem::forget(NodeGuard::<Toy>::new()));
        }
    }
    slots[3].contexts.depth.store(1, Relaxed);
    lock_hash::insert::<Toy, _>(&1_u32, NodeId::new(1, 0));
    let lost = NodeGuard::<Toy>::new().unwrap();
    core::mem::forget(waiters::enter(0x1000, 2, &lost));
    let given = fork();
    assert_eq!(
        given,
        (1..SLOTS).filter(|&slot| slot != 3).collect::<Vec<_>>()
    );
    assert!(slots[1..].iter().all(Slot::is_idle));
    assert_eq!(
        slots[0].reading.0[0].lock.load(Relaxed),
        7,
        "the caller reads on"
    );
    assert!(!slots[0].is_idle());
    // Of the caller's own, too: else it would kick nobody, each time.
    let waited = |slot: &Slot<Toy>| slot.reading.0[0].waited.load(Relaxed);
    assert!(slots.iter().all(|slot| waited(slot) == 0));
    drop((mine, lost));
    assert!(!waiters::kick::<Toy>(0x1000, 2));
    assert_eq!(lock_hash::remove::<Toy, _>(&1_u32), None);
}
