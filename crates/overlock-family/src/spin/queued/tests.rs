//! Thread 0 directs; the actors are threads 1 to 7.

use std::boxed::Box;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

use super::*;
use overlock_core::node::CONTEXTS;
use overlock_core::toy::stage::{Actor, actor};
use overlock_core::toy::watch::{self, Access, Watch, freed, touches, watch};
use overlock_core::toy::{Point, SLOTS, Toy, as_thread, at, left};

type Lock = &'static Queued<Toy>;

fn leak() -> Lock {
    Box::leak(Box::new(Queued::new()))
}

fn word(lock: Lock) -> u32 {
    lock.word.load(Relaxed)
}

fn unlock(lock: Lock) {
    // SAFETY: each test unlocks what it has locked.
    unsafe { lock.unlock(()) }
}

/// An actor that locks `lock` and keeps it.
fn locker(thread: usize, lock: Lock) -> Actor {
    actor(thread, move || lock.lock())
}

/// An actor that saw `seen` when it tried the fast path.
fn slow_locker(thread: usize, lock: Lock, seen: u32) -> Actor {
    actor(thread, move || lock.lock_slow(seen))
}

fn node(thread: usize) -> u32 {
    tail(NodeId::new(thread, 0))
}

#[test]
fn the_word_tells_who_holds_who_pends_and_who_waits() {
    let lock = leak();
    assert!(!lock.is_locked() && !lock.is_contended());
    lock.lock();
    assert_eq!(word(lock), LOCKED);
    assert!(lock.is_locked() && !lock.is_contended() && lock.try_lock().is_none());
    let [one, two, three] = [1, 2, 3].map(|thread| locker(thread, lock));
    one.to(Point::Wait);
    assert_eq!(word(lock), PENDING | LOCKED);
    assert!(lock.is_contended());
    two.to(Point::Wait);
    assert_eq!(word(lock), node(2) | PENDING | LOCKED);
    three.to(Point::Wait);
    assert_eq!(word(lock), node(3) | PENDING | LOCKED);
    unlock(lock);
    assert_eq!(word(lock), node(3) | PENDING);
    one.end();
    assert_eq!(word(lock), node(3) | LOCKED);
    unlock(lock);
    assert!(!lock.is_locked() && lock.is_contended() && lock.try_lock().is_none());
    two.end();
    unlock(lock);
    three.end();
    assert_eq!(word(lock), LOCKED);
    unlock(lock);
    assert_eq!(word(lock), 0);
}

/// I5, with one pending and five queued waiters that poll in the reverse order of their arrival.
#[test]
fn served_in_the_order_of_arrival() {
    let lock = leak();
    let order = Arc::new(Mutex::new(Vec::new()));
    lock.lock();
    let mut waiters: Vec<_> = (1..=6)
        .map(|thread| {
            let order = order.clone();
            actor(thread, move || {
                lock.lock();
                order.lock().unwrap().push(thread);
                unlock(lock);
            })
        })
        .collect();
    for waiter in &waiters {
        waiter.to(Point::Wait);
    }
    unlock(lock);
    for waiter in waiters.iter().skip(1).rev() {
        waiter.to(Point::Wait);
    }
    for waiter in waiters.drain(..) {
        waiter.end();
    }
    assert_eq!(*order.lock().unwrap(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(word(lock), 0);
}

/// I2. Fails where `lock_pending` clears a bit that another thread has set (its
/// `if ... PENDING != 0` dropped).
#[test]
fn a_newcomer_leaves_another_waiters_pending_bit_alone() {
    let lock = leak();
    lock.lock();
    let pending = locker(1, lock);
    pending.to(Point::Wait);
    let newcomer = slow_locker(2, lock, LOCKED); // It loaded the word before `pending` came.
    newcomer.to(Point::Wait);
    assert_eq!(word(lock), node(2) | PENDING | LOCKED);
    unlock(lock);
    pending.end();
    unlock(lock);
    newcomer.end();
}

/// I1. Fails where a newcomer keeps pending though it sees a tail (the second load dropped): two
/// would hold the lock. Fails where it does not undo its bit (the `byte1_store`): the head waits
/// for ever.
#[test]
fn a_newcomer_that_set_pending_behind_a_queue_undoes_it_and_joins() {
    let lock = leak();
    lock.lock();
    let [pending, head] = [1, 2].map(|thread| locker(thread, lock));
    pending.to(Point::Wait);
    head.to(Point::Wait);
    unlock(lock);
    pending.end();
    let newcomer = slow_locker(3, lock, LOCKED); // It loaded the word before the others came.
    newcomer.to(Point::Wait);
    assert_eq!(word(lock), node(3) | LOCKED);
    unlock(lock);
    head.end();
    assert_eq!(word(lock), node(3) | LOCKED);
    unlock(lock);
    newcomer.end();
}

/// The wait for a pending waiter that takes over is bounded. Fails ("stuck") with
/// `PENDING_HANDOFF` for ever.
#[test]
fn a_newcomer_does_not_wait_for_ever_for_a_handoff() {
    let lock = leak();
    lock.word.store(PENDING, Relaxed); // The pending waiter has lost its CPU.
    for _ in 1..512 {
        at(Point::Wait, move || assert_eq!(word(lock), PENDING));
    }
    at(Point::Wait, move || {
        assert_eq!(word(lock), node(0) | PENDING);
        lock.word.low_store(LOCKED as u16, Relaxed); // It has its CPU back.
        unlock(lock);
    });
    lock.lock();
    assert_eq!((word(lock), left()), (LOCKED, 0));
    // One that ends in time is waited for: no queue.
    lock.word.store(PENDING, Relaxed);
    at(Point::Wait, move || lock.word.store(LOCKED, Relaxed));
    at(Point::Wait, move || {
        assert_eq!(word(lock), PENDING | LOCKED);
        unlock(lock);
    });
    lock.lock();
    assert_eq!(left(), 0);
}

/// Thread 2 is the head of a queue of one. It has seen the lock free and not taken it yet.
fn head_before_its_exchange(lock: Lock) -> Actor {
    lock.lock();
    let [pending, head] = [1, 2].map(|thread| locker(thread, lock));
    pending.to(Point::Wait);
    head.to(Point::Wait);
    unlock(lock);
    pending.end();
    unlock(lock);
    head.to(Point::Seen);
    head
}

/// I6: the head's exchange of its own tail fails though no thread has queued, since a newcomer has
/// just set pending. The newcomer takes the bit back, and has no node to queue with. Fails where
/// `lock_queued` takes the bit for a successor (no `PendingBeforeHead`): the head holds the lock
/// and waits for a link.
#[test]
fn a_pending_bit_that_comes_and_goes_does_not_confuse_the_head() {
    let lock = leak();
    let head = head_before_its_exchange(lock);
    lock.word.fetch_or(PENDING, Relaxed); // Half a newcomer.
    head.to(Point::Wait);
    assert_eq!(word(lock), node(2) | PENDING);
    lock.word.byte1_store(0, Relaxed); // The other half of one without a node.
    head.end();
    assert_eq!(word(lock), LOCKED);
}

/// The newcomer queues after all, before the head has seen that the bit is gone.
#[test]
fn a_newcomer_whose_pending_bit_met_the_head_is_served_next() {
    let lock = leak();
    let head = head_before_its_exchange(lock);
    lock.word.fetch_or(PENDING, Relaxed);
    head.to(Point::Wait);
    lock.word.byte1_store(0, Relaxed);
    let newcomer = slow_locker(3, lock, node(2));
    newcomer.to(Point::Wait);
    head.end();
    assert_eq!(word(lock), node(3) | LOCKED);
    unlock(lock);
    newcomer.end();
    assert_eq!(word(lock), LOCKED);
}

/// I4. Fails where `lock_queued` drops the guard before it makes its successor the head
/// (`drop(guard)` before `successor`): the handler then waits in the node that the outer wait still
/// uses.
#[test]
fn a_node_is_in_use_until_its_successor_is_the_head() {
    let (lock, other) = (leak(), leak());
    other.lock();
    let head = head_before_its_exchange(lock);
    // Thread 3 has exchanged the tail, and not linked its node yet: the head must wait for that.
    lock.word.high_swap(NodeId::new(3, 0).bits(), Relaxed);
    head.to(Point::Wait);
    assert_eq!(word(lock), node(3) | LOCKED);
    head.interrupt_to(Point::Wait, move || other.lock_queued());
    assert_eq!(word(other), tail(NodeId::new(2, 1)) | LOCKED);
    unlock(other);
    head.end_handler();
    let behind = NodeId::new(3, 0);
    let before = NodeId::new(2, 0).node::<Toy>();
    before.next.store(behind.bits().into(), Relaxed);
    head.end();
    assert_eq!(behind.node::<Toy>().wait.load(Relaxed), 1);
}

/// Four contexts of one thread wait for four locks, a node each; a fifth gets its lock without one.
#[test]
fn handlers_nest_and_the_fifth_context_waits_without_a_node() {
    let locks: [Lock; CONTEXTS + 1] = std::array::from_fn(|_| leak());
    for lock in locks {
        lock.lock();
        // The pending bit is taken, so that waiters queue.
        lock.word.fetch_or(PENDING, Relaxed);
    }
    let [outer, inner @ ..] = locks;
    let waiter = locker(1, outer);
    waiter.to(Point::Wait);
    for lock in inner {
        waiter.interrupt_to(Point::Wait, move || lock.lock());
    }
    for (context, lock) in locks[..CONTEXTS].iter().enumerate() {
        assert_eq!(word(lock), tail(NodeId::new(1, context)) | PENDING | LOCKED);
    }
    // The fifth has no node, leaves no trace, and takes only a lock without waiters.
    assert_eq!(word(locks[CONTEXTS]), PENDING | LOCKED);
    for lock in inner.into_iter().rev() {
        lock.word.store(word(lock) & !(PENDING | LOCKED), Relaxed);
        waiter.end_handler();
        assert_eq!(word(lock), LOCKED);
    }
    outer.word.store(node(1), Relaxed);
    waiter.end();
}

#[test]
fn a_thread_without_a_slot_waits_without_a_node() {
    let lock = leak();
    lock.word.store(PENDING | LOCKED, Relaxed);
    at(Point::Wait, move || lock.word.store(LOCKED, Relaxed));
    at(Point::Wait, move || unlock(lock));
    as_thread(SLOTS, || lock.lock());
    assert_eq!(word(lock), LOCKED);
    assert_eq!(left(), 0);
}

/// A release is the store of the locked byte alone: the next owner may free the lock after it.
#[test]
fn nothing_of_the_lock_is_touched_after_its_release() {
    for waiters in [0, PENDING, node(1) | PENDING] {
        let lock = Queued::<Watch>::new();
        lock.lock();
        lock.word.fetch_or(waiters, Relaxed);
        watch(&lock);
        watch::after(Access::Store, || {
            touches();
            freed();
        });
        // SAFETY: just locked.
        unsafe { lock.unlock(()) };
        assert_eq!((watch::left(), touches()), (0, [].into()));
    }
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "unlock of a queued lock that is free")]
fn a_second_unlock_is_reported() {
    unlock(leak());
}
