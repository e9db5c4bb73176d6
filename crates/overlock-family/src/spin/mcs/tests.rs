use super::*;
use overlock_core::node::{CONTEXTS, Node};
use overlock_core::toy::stage::{Actor, actor};
use overlock_core::toy::watch::{self, Access, Watch, freed, touches, watch};
use overlock_core::toy::{Point, SLOTS, Toy, as_thread, at, left};
use std::boxed::Box;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

type Lock = &'static Mcs<Toy>;

fn leak() -> Lock {
    Box::leak(Box::new(Mcs::new()))
}

fn unlock(lock: Lock, token: McsToken<Toy>) {
    // SAFETY: each test passes what it got from `lock`, on the same thread.
    unsafe { lock.unlock(token) }
}

fn tail(lock: Lock) -> u32 {
    lock.tail.load(Relaxed)
}

fn node(thread: usize) -> u32 {
    u32::from(NodeId::new(thread, 0).bits())
}

/// An actor that locks, appends its thread to `order`, and unlocks.
fn passer(thread: usize, lock: Lock, order: &Arc<Mutex<Vec<usize>>>) -> Actor {
    let order = order.clone();
    actor(thread, move || {
        let token = lock.lock();
        order.lock().unwrap().push(thread);
        unlock(lock, token);
    })
}

#[test]
fn the_tail_tells_who_holds_and_who_waits() {
    let lock = leak();
    assert!(!lock.is_locked() && !lock.is_contended());
    for token in [Some(lock.lock()), lock.try_lock()] {
        let Some(token) = token else { continue };
        assert_eq!(tail(lock), node(0));
        assert!(lock.is_locked() && !lock.is_contended());
        assert!(lock.try_lock().is_none());
        unlock(lock, token);
        assert!(!lock.is_locked());
    }
    let token = lock.try_lock().unwrap();
    let waiter = passer(1, lock, &Arc::default());
    waiter.to(Point::Wait);
    assert_eq!(tail(lock), node(1));
    assert!(lock.is_contended());
    unlock(lock, token);
    assert!(lock.is_locked() && !lock.is_contended());
    waiter.end();
    assert_eq!(tail(lock), 0);
    assert!((0..SLOTS).all(|slot| Toy::tables().is_idle(slot)));
}

/// N3: each unlock names one successor; storing OWNER to any other node would break the order.
#[test]
fn served_in_the_order_of_arrival() {
    let lock = leak();
    let order = Arc::default();
    let token = lock.lock();
    let waiters: Vec<_> = [3, 1, 2]
        .into_iter()
        .map(|thread| {
            let waiter = passer(thread, lock, &order);
            waiter.to(Point::Wait);
            waiter
        })
        .collect();
    unlock(lock, token);
    waiters.into_iter().for_each(Actor::end);
    assert_eq!(*order.lock().unwrap(), [3, 1, 2]);
    assert_eq!(tail(lock), 0);
}

/// An owner that finds no link and whose exchange fails has a successor that is about to link.
/// Without the wait in `hand_off` the successor would never be served. If the exchange's failure
/// were ignored, the queue would be lost.
#[test]
fn an_owner_waits_for_a_successor_that_has_come_but_not_linked() {
    let lock = leak();
    let token = lock.lock();
    let guard = as_thread(1, || NodeGuard::<Toy>::new().unwrap());
    guard.node().wait.store(WAITING, Relaxed);
    assert_eq!(lock.tail.swap(name(&guard), AcqRel), node(0)); // arrives ...
    at(Point::Wait, || {
        // N2: the owner's node is still in use when the successor links through it.
        assert!(!Toy::tables().is_idle(0));
        NodeId::new(0, 0).node::<Toy>().next.store(node(1), Release); // ... and links
    });
    unlock(lock, token);
    assert_eq!(guard.node().wait.load(Relaxed), OWNER);
    assert!(Toy::tables().is_idle(0));
    unlock(lock, McsToken(Some(guard)));
    assert_eq!((tail(lock), left()), (0, 0));
}

fn watched() -> &'static Mcs<Watch> {
    let lock = Box::leak(Box::new(Mcs::new()));
    watch(lock);
    lock
}

/// Thread 1 arrives. Returns its node, and a function that links it to the owner's `link`.
fn arrive(
    lock: &Mcs<Watch>,
) -> (
    &'static Node<Watch>,
    impl FnOnce(&<Watch as overlock_core::Atomics>::U32),
) {
    let guard = as_thread(1, || NodeGuard::<Watch>::new().unwrap());
    guard.node().wait.store(WAITING, Relaxed);
    lock.tail.store(name(&guard), Relaxed);
    (guard.node(), move |link| link.store(name(&guard), Release))
}

/// From here on the next owner may free the lock. Fails where `empty` loads the tail once more.
#[test]
fn an_unlock_without_waiters_ends_with_the_tails_exchange() {
    for spare in [false, true] {
        let lock = watched();
        let token = if spare {
            lock.tail.store(SPARE, Relaxed);
            McsToken(None)
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

/// An owner with a node needs nothing of the lock once it knows of an arrival. Fails where
/// `hand_off` accesses the lock.
#[test]
fn a_handoff_does_not_touch_the_lock() {
    let link = &NodeId::new(0, 0).node::<Watch>().next;
    for linked in [false, true] {
        let lock = watched();
        let token = lock.lock();
        let (successor, links) = arrive(lock);
        if linked {
            links(link);
            freed();
        } else {
            watch::after(Access::Exchange, move || {
                links(link);
                freed();
            });
        }
        touches();
        // SAFETY: locked above.
        unsafe { lock.unlock(token) };
        assert_eq!((watch::left(), touches()), (0, [].into()));
        assert_eq!(successor.wait.load(Relaxed), OWNER);
    }
}

/// Fails where `hand_off` clears `spare_next` after the handoff.
#[test]
fn the_spares_link_is_cleared_before_the_handoff_and_nothing_touched_after_it() {
    let lock = watched();
    lock.tail.store(SPARE, Relaxed);
    let (successor, links) = arrive(lock);
    links(&lock.spare_next);
    watch::before(Access::Store, || {
        assert_eq!(successor.wait.load(Relaxed), WAITING);
    });
    watch::after(Access::Store, freed);
    // SAFETY: locked with the spare, above.
    unsafe { lock.unlock(McsToken(None)) };
    assert_eq!((watch::left(), touches()), (0, [].into()));
    assert_eq!(successor.wait.load(Relaxed), OWNER);
}

/// More locks held than a thread has nodes, and handlers nested deeper: each takes the spare of its
/// own lock. N4: without `spare_next.store(0)` the second round would hand off to a node that
/// has left, and keep the lock locked.
#[test]
fn a_fifth_acquisition_uses_the_locks_spare_and_hands_off_as_any_other() {
    let held: Vec<_> = (0..CONTEXTS).map(|_| leak()).collect();
    let tokens: Vec<_> = held.iter().map(|lock| lock.lock()).collect();
    let lock = leak();
    for threads in [&[1, 3][..], &[], &[2]] {
        let token = if threads.is_empty() {
            lock.try_lock().unwrap()
        } else {
            lock.lock()
        };
        assert_eq!(tail(lock), SPARE);
        assert!(token.0.is_none() && lock.is_locked() && !lock.is_contended());
        let order = Arc::default();
        let waiters: Vec<_> = threads
            .iter()
            .map(|&thread| {
                let waiter = passer(thread, lock, &order);
                waiter.to(Point::Wait);
                assert!(lock.is_contended());
                waiter
            })
            .collect();
        unlock(lock, token);
        waiters.into_iter().for_each(Actor::end);
        assert_eq!(*order.lock().unwrap(), threads);
        assert_eq!(tail(lock), 0);
    }
    held.iter()
        .zip(tokens)
        .for_each(|(lock, token)| unlock(lock, token));
    assert!(Toy::tables().is_idle(0));
}

#[test]
fn a_thread_without_a_slot_waits_for_an_empty_queue() {
    let lock = leak();
    let token = lock.lock();
    let slotless = actor(SLOTS, move || {
        let token = lock.lock();
        assert_eq!(tail(lock), SPARE);
        assert!(lock.try_lock().is_none());
        unlock(lock, token);
    });
    slotless.to(Point::Wait);
    // It is not in the queue, and is bypassed.
    assert!(!lock.is_contended());
    unlock(lock, token);
    let token = lock.lock();
    slotless.to(Point::Wait);
    unlock(lock, token);
    slotless.end();
    assert_eq!(tail(lock), 0);
}

/// A handler that arrives while its thread waits on a lock of the same kind has a node of its own.
#[test]
fn a_handler_locks_while_its_thread_waits() {
    let [outer, inner] = [leak(), leak()];
    let token = outer.lock();
    let waiter = passer(1, outer, &Arc::default());
    waiter.to(Point::Wait);
    let link = NodeId::new(1, 0).node::<Toy>().wait.load(Relaxed);
    waiter.interrupt(move || {
        let token = inner.lock();
        assert_eq!(tail(inner), u32::from(NodeId::new(1, 1).bits()));
        unlock(inner, token);
    });
    assert_eq!(NodeId::new(1, 0).node::<Toy>().wait.load(Relaxed), link);
    unlock(outer, token);
    waiter.end();
    assert_eq!(tail(outer), 0);
}

#[test]
fn a_forgotten_token_keeps_the_lock_and_the_node() {
    let lock = leak();
    as_thread(1, || std::mem::forget(lock.lock()));
    assert!(lock.is_locked() && lock.try_lock().is_none());
    assert!(!Toy::tables().is_idle(1));
    // The thread still has its other nodes.
    let other = leak();
    let token = as_thread(1, || other.lock());
    assert_eq!(tail(other), u32::from(NodeId::new(1, 1).bits()));
    as_thread(1, || unlock(other, token));
}
