use super::*;
use crate::toy::stage::{Actor, actor};
use crate::toy::watch::{self, Access, Watch, freed, touches, watch};
use crate::toy::{Point, SLOTS, Toy, as_thread, at, left};
use std::boxed::Box;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

type Lock = &'static Hemlock<Toy>;

fn leak() -> Lock {
    Box::leak(Box::new(Hemlock::new()))
}

fn unlock(lock: Lock, token: HemlockToken<Toy>) {
    // SAFETY: each test passes what it got from `lock`, on the same thread.
    unsafe { lock.unlock(token) }
}

fn tail(lock: Lock) -> u32 {
    lock.tail.load(Relaxed)
}

/// The name of a thread that the test plays.
fn name(thread: usize) -> u32 {
    thread as u32 + 1
}

fn grant(thread: usize) -> usize {
    Toy::tables().slots[thread].grant.load(Relaxed)
}

/// A part that waits for the lock, says so, and unlocks. It stands where it waits.
fn waiter(thread: usize, lock: Lock, order: &Arc<Mutex<Vec<usize>>>) -> Actor {
    let order = order.clone();
    let waiter = actor(thread, move || {
        let token = lock.lock();
        order.lock().unwrap().push(thread);
        unlock(lock, token);
    });
    waiter.to(Point::Wait);
    waiter
}

#[test]
fn the_tail_tells_who_holds_and_who_waits() {
    let lock = leak();
    assert!(!lock.is_locked() && !lock.is_contended());
    for token in [Some(lock.lock()), lock.try_lock()] {
        let Some(token) = token else { continue };
        assert_eq!(tail(lock), name(0));
        assert!(lock.is_locked() && !lock.is_contended());
        assert!(lock.try_lock().is_none());
        unlock(lock, token);
        assert!(!lock.is_locked());
    }
    let token = lock.try_lock().unwrap();
    let waiter = waiter(1, lock, &Arc::default());
    assert_eq!(tail(lock), name(1));
    assert!(lock.is_contended());
    at(Point::Wait, move || waiter.end());
    unlock(lock, token);
    assert!(!lock.is_locked() && !lock.is_contended());
}

/// K2: the unlock waits until its one successor has taken the grant. Fails where it returns before.
#[test]
fn an_unlock_returns_when_its_successor_has_taken_the_grant() {
    let lock = leak();
    let order = Arc::default();
    let token = lock.lock();
    let waiter = waiter(1, lock, &order);
    at(Point::Wait, move || {
        assert_eq!(grant(0), lock.address());
        assert!(!Toy::tables().slots[0].is_idle(), "K4");
        waiter.end();
        assert_eq!(grant(0), 0);
    });
    unlock(lock, token);
    assert_eq!((left(), tail(lock)), (0, 0));
    assert_eq!(*order.lock().unwrap(), [1]);
    assert!(Toy::tables().slots.iter().all(Slot::is_idle));
}

/// Two locks of one owner, a waiter for each, both on the owner's grant: each goes on with its own
/// lock. Fails where a waiter takes any grant for its own.
#[test]
fn waiters_for_two_locks_of_one_owner_tell_their_grants_apart() {
    let [first, second] = [leak(), leak()];
    let order = Arc::default();
    let tokens = [first.lock(), second.lock()];
    let [one, two] = [waiter(1, first, &order), waiter(2, second, &order)];
    let [token, other] = tokens;
    at(Point::Wait, move || {
        one.to(Point::Wait); // not its lock
        two.end();
        at(Point::Wait, move || one.end());
    });
    unlock(second, other);
    unlock(first, token);
    assert_eq!((left(), grant(0)), (0, 0));
    assert_eq!(*order.lock().unwrap(), [2, 1]);
}

/// K3. Fails where `lock` does not wait for its own grant: whoever comes behind the handler takes
/// the grant that is for the first waiter, and both own the lock.
#[test]
fn a_handler_does_not_join_a_queue_whose_lock_its_thread_is_handing_off() {
    let lock = leak();
    let order = Arc::default();
    let token = lock.lock();
    let waiter = waiter(1, lock, &order);
    at(Point::Wait, move || {
        // In the handler.
        at(Point::Wait, move || {
            assert_eq!((tail(lock), grant(0)), (name(1), lock.address()));
            waiter.end();
        });
        let token = lock.lock();
        unlock(lock, token);
    });
    unlock(lock, token);
    assert_eq!((left(), tail(lock), grant(0)), (0, 0, 0));
    assert_eq!(*order.lock().unwrap(), [1]);
}

/// A handler that hands another lock off waits until the interrupted handoff is through. Fails
/// where `hand_off` does not look at the grant first: the address of the outer lock is lost.
#[test]
fn a_handler_hands_off_after_the_unlock_that_it_interrupts() {
    let [outer, inner] = [leak(), leak()];
    let order = Arc::default();
    let token = outer.lock();
    let held = inner.lock();
    let [one, two] = [waiter(1, outer, &order), waiter(2, inner, &order)];
    let mut held = Some(held);
    at(Point::Wait, move || {
        // In the handler.
        at(Point::Wait, move || {
            assert_eq!(grant(0), outer.address());
            one.end();
        });
        at(Point::Wait, move || two.end());
        unlock(inner, held.take().unwrap());
    });
    unlock(outer, token);
    assert_eq!((left(), grant(0)), (0, 0));
    assert_eq!(*order.lock().unwrap(), [1, 2]);
}

fn watched() -> &'static Hemlock<Watch> {
    let lock = Box::leak(Box::new(Hemlock::new()));
    watch(lock);
    lock
}

/// From here on the next owner may free the lock. Fails where `unlock` looks at the lock once more.
#[test]
fn the_tails_exchange_is_the_last_that_an_unlock_touches_where_nobody_waits() {
    for spare in [false, true] {
        let lock = watched();
        let token = if spare {
            lock.tail.store(SPARE, Relaxed);
            HemlockToken(None)
        } else {
            lock.lock()
        };
        watch::after(Access::Exchange, || {
            touches();
            freed();
        });
        // SAFETY: just locked.
        unsafe { lock.unlock(token) };
        assert_eq!((watch::left(), touches()), (0, [].into()));
    }
}

/// The unlock waits in its own slot. Fails where `hand_off` looks at the lock.
#[test]
fn a_handoff_does_not_touch_the_lock() {
    let lock = watched();
    let token = lock.lock();
    lock.tail.store(name(1), Relaxed); // thread 1 arrives
    watch::after(Access::Exchange, freed);
    at(Point::Wait, || {
        Watch::tables().slots[0].grant.store(0, Relaxed);
    });
    touches();
    // SAFETY: locked above.
    unsafe { lock.unlock(token) };
    assert_eq!((watch::left(), left(), touches()), (0, 0, [].into()));
}

/// A thread may hold as many as it likes.
#[test]
fn a_thread_holds_more_than_it_has_nodes() {
    let locks: Vec<_> = (0..20).map(|_| leak()).collect();
    let tokens: Vec<_> = locks.iter().map(|lock| lock.lock()).collect();
    assert!(locks.iter().all(|lock| tail(lock) == name(0)));
    assert!(!Toy::tables().slots[0].is_idle());
    for (lock, token) in locks.into_iter().zip(tokens) {
        unlock(lock, token);
    }
    assert!(Toy::tables().slots[0].is_idle());
}

#[test]
fn a_thread_without_a_slot_waits_for_an_empty_queue_and_hands_off_by_the_lock() {
    let lock = leak();
    let order = Arc::default();
    let token = lock.lock();
    let stranger = actor(SLOTS, move || {
        let token = lock.lock();
        assert_eq!((tail(lock), lock.owner.load(Relaxed)), (SPARE, SPARE));
        assert!(lock.try_lock().is_none() && !lock.is_contended());
        // Its handoff waits for nobody.
        let _ = Toy::wait_until(&lock.tail, Relaxed, Spin::Forever, |tail| tail == name(1));
        unlock(lock, token);
    });
    stranger.to(Point::Wait);
    // It does not stand in the queue, and is overtaken.
    assert!(!lock.is_contended());
    unlock(lock, token);
    let token = lock.lock();
    stranger.to(Point::Wait);
    unlock(lock, token);
    stranger.to(Point::Wait);
    let waiter = waiter(1, lock, &order);
    stranger.end();
    assert_eq!(lock.owner.load(Relaxed), GRANTED);
    waiter.end();
    assert_eq!((tail(lock), lock.owner.load(Relaxed)), (0, name(1)));
}

#[test]
fn a_forgotten_token_keeps_the_lock_and_the_slot() {
    let lock = leak();
    as_thread(1, || std::mem::forget(lock.lock()));
    assert!(lock.is_locked() && lock.try_lock().is_none());
    assert!(!Toy::tables().slots[1].is_idle());
}

/// After fork() in the child, nobody takes the grant of a thread that exists only in the parent.
/// The next thread with its slot would wait for that before its first handoff.
#[test]
fn a_child_of_fork_empties_the_grants_of_lost_threads() {
    let lock = leak();
    Toy::tables().slots[1].grant.store(lock.address(), Relaxed);
    assert!(Toy::tables().slots[1].forget_nodes());
    assert_eq!(grant(1), 0);
}
