//! Thread 0 forks. The actors that wait at that moment never run again, and new threads get their
//! slots.

use std::boxed::Box;
use std::vec::Vec;

use overlock_core::Platform;
use overlock_core::sleep::{Barrier, Condvar, Semaphore};

use super::*;
use crate::rw::{OverlockRw, PerCpuRwSem};
use crate::sleep::{KernelMutex, KernelMutexInside, Overlock, RwSem};
use crate::spin::pv::lock_hash;
use crate::spin::pv_ticket::waiters;
use crate::spin::{Hybrid, PvQueued};
use core::sync::atomic::Ordering::Relaxed;
use overlock_core::node::{NodeGuard, NodeId};
use overlock_core::raw::{
    RawFairLock, RawFork, RawForkRwLock, RawLock, RawRwLock, RawUpgradeRwLock,
};
use overlock_core::toy::stage::actor;
use overlock_core::toy::{Point, SLOTS, Toy, kicks};

/// Forks. Returns the slots that new threads may have.
fn fork() -> Vec<usize> {
    let mut free = Vec::new();
    // SAFETY: the actors never run again.
    unsafe { forget_others::<Toy>(Some(0), |slot| free.push(slot)) };
    free
}

/// A thread that waits when the process forks.
fn lost(thread: usize, wait: impl FnOnce() + Send + 'static) {
    let waiter = actor(thread, move || {
        wait();
        unreachable!("it exists only in the parent");
    });
    waiter.sleep();
    core::mem::forget(waiter);
}

fn leak<T>(it: T) -> &'static T {
    Box::leak(Box::new(it))
}

fn create<L: RawLock>() -> &'static L {
    leak(L::create().unwrap())
}

/// Unlocks with `token`, and locks again with a waiter.
fn stays_usable<L: RawLock + RawFork>(lock: &'static L, token: L::Token) {
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
    stays_usable(lock, token);
}

#[test]
fn an_overlock_held_at_the_fork_stays_held() {
    held_stays_held::<Overlock<Toy>>(2);
}

#[test]
fn a_mutex_held_at_the_fork_stays_held() {
    held_stays_held::<KernelMutex<Toy>>(2);
}

#[test]
fn a_mutex_inside_held_at_the_fork_stays_held() {
    held_stays_held::<KernelMutexInside<Toy>>(2);
}

/// With one waiter: a second one would spin in unfair mode.
#[test]
fn a_hybrid_lock_held_at_the_fork_stays_held() {
    held_stays_held::<Hybrid<Toy>>(1);
}

#[test]
fn a_pv_queued_lock_held_at_the_fork_stays_held() {
    held_stays_held::<PvQueued<Toy>>(2);
}

#[test]
fn the_child_does_not_spin_behind_a_spinner_of_the_parent() {
    let lock = create::<KernelMutex<Toy>>();
    lock.lock();
    let spins = actor(1, move || lock.lock());
    spins.to(Point::Wait);
    core::mem::forget(spins);
    fork();
    // SAFETY: `fork` was called.
    unsafe { lock.forget_waiters() };
    stays_usable(lock, ());
}

fn handed_off_is_free<L: RawFairLock + RawFork>() {
    let lock = create::<L>();
    let token = lock.lock();
    lost(1, || _ = lock.lock());
    // SAFETY: locked above.
    unsafe { lock.unlock_fair(token) };
    assert!(lock.try_lock().is_none());
    fork();
    // SAFETY: `fork` was called.
    unsafe { lock.forget_waiters() };
    assert!(!lock.is_locked() && !lock.is_contended());
    assert!(lock.try_lock().is_some());
}

#[test]
fn a_lock_handed_off_to_a_waiter_of_the_parent_is_free() {
    handed_off_is_free::<Overlock<Toy>>();
    handed_off_is_free::<KernelMutex<Toy>>();
}

#[test]
fn a_condvar_has_no_waiters_in_the_child() {
    let [condvar, other] = [(); 2].map(|()| leak(Condvar::<Toy>::new()));
    let lock = create::<Overlock<Toy>>();
    for (thread, condvar) in [(1, condvar), (2, condvar), (3, other)] {
        lost(thread, || {
            lock.lock();
            // SAFETY: just locked.
            unsafe { condvar.wait(lock, ()) };
        });
    }
    // One is notified, and the next is woken after it has the lock again.
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
fn the_free_permits_of_a_semaphore_stay() {
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
    // Not with a node that may still be in the list.
    let new = actor(3, move || semaphore.acquire());
    new.sleep();
    semaphore.release();
    new.end();
    assert_eq!(semaphore.available(), 0);
}

#[test]
fn a_barrier_begins_a_new_round() {
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
    leak(L::INIT)
}

/// The lock is free, and a thread can wait for it.
fn stays_usable_rw<L: RawForkRwLock>(lock: &'static L) {
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
    stays_usable_rw(lock);
}

#[test]
fn an_rwsem_written_at_the_fork_stays_written() {
    written_stays_written::<RwSem<Toy>>();
}

#[test]
fn an_overlock_rw_written_at_the_fork_stays_written() {
    written_stays_written::<OverlockRw<Toy>>();
}

#[test]
fn a_percpu_rwsem_written_at_the_fork_stays_written() {
    written_stays_written::<PerCpuRwSem<Toy>>();
}

/// A writer waits for the reader that forks, and holds the gate, or has it handed off to none.
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
    stays_usable_rw(lock);
}

#[test]
fn an_rwsem_read_at_the_fork_stays_read() {
    read_stays_read::<RwSem<Toy>>(RwSem::read);
}

#[test]
fn an_overlock_rw_with_a_closed_gate_stays_read() {
    read_stays_read::<OverlockRw<Toy>>(OverlockRw::read);
}

/// A writer of the parent has the inner lock, and waits for the entry.
#[test]
fn a_percpu_rwsem_with_a_visible_reader_stays_read() {
    read_stays_read::<PerCpuRwSem<Toy>>(|lock| {
        // The first one is counted.
        // SAFETY: just acquired.
        unsafe { lock.unlock_read(lock.read()) };
        lock.read()
    });
}

/// An upgrader of the parent was a reader, and counts as one for ever.
#[test]
fn an_upgrader_of_the_parent_counts_as_a_reader_for_ever() {
    let lock = create_rw::<OverlockRw<Toy>>();
    lock.read();
    lost(1, || {
        lock.upgradable();
        // SAFETY: just acquired.
        unsafe { lock.upgrade(()) };
    });
    fork();
    // SAFETY: `fork` was called.
    unsafe { lock.forget_waiters(false) };
    assert!(!lock.is_write_locked() && !lock.is_contended());
    lock.try_read().unwrap();
    for _ in 0..2 {
        // SAFETY: acquired above.
        unsafe { lock.unlock_read(()) };
    }
    assert!(lock.is_locked() && lock.try_write().is_none() && lock.try_upgradable().is_none());
}

/// Slots in the middle of acquiring a fast queue lock stay in use.
#[test]
fn slots_are_free_and_tables_are_empty() {
    let mine = NodeGuard::<Toy>::new().unwrap();
    for index in 1..SLOTS {
        overlock_core::toy::as_thread(index, || core::mem::forget(NodeGuard::<Toy>::new()));
    }
    let threads = Toy::family_tables().threads;
    threads[3].contexts.depth.store(1, Relaxed);
    lock_hash::insert::<Toy, _>(&1_u32, NodeId::new(1, 0));
    let lost = NodeGuard::<Toy>::new().unwrap();
    core::mem::forget(waiters::enter(0x1000, 2, &lost));
    let free = fork();
    assert_eq!(
        free,
        (1..SLOTS).filter(|&slot| slot != 3).collect::<Vec<_>>()
    );
    assert!((1..SLOTS).all(|slot| Toy::tables().is_idle(slot)));
    drop((mine, lost));
    assert!(!waiters::kick::<Toy>(0x1000, 2));
    assert_eq!(lock_hash::remove::<Toy, _>(&1_u32), None);
}
