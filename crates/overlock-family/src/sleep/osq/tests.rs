//! Thread 0 is the head at first; the others come to it in the order of their numbers. Each test
//! names the step (A, B, C) or invariant that it checks.

mod steps;

use std::boxed::Box;
use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::vec::Vec;

use super::*;
use overlock_core::platform::Pause;
use overlock_core::toy::stage::{Actor, actor};
use overlock_core::toy::watch::{self, Access, Watch};
use overlock_core::toy::{Point, SLOTS, Toy, as_thread, at, halts, left, on_cpu};

type Queue = &'static Osq<Toy>;

fn leak() -> Queue {
    Box::leak(Box::new(Osq::new()))
}

/// Thread `thread` becomes the head of an empty queue.
fn head(thread: usize, queue: Queue) -> Head<'static, Toy> {
    as_thread(thread, || queue.lock(Spin::Polls(1), || true)).expect("the queue is empty")
}

/// Puts thread `thread` into the queue; the test takes its steps.
fn waiter(thread: usize, queue: Queue) -> NodeGuard<Toy> {
    as_thread(thread, || {
        let guard = NodeGuard::new().unwrap();
        assert!(!queue.join(&guard), "somebody is before it");
        guard
    })
}

fn id(thread: usize) -> NodeId {
    NodeId::new(thread, 0)
}

fn tail(queue: Queue) -> Option<NodeId> {
    NodeId::from_bits(queue.tail.load(Relaxed))
}

fn next(thread: usize) -> Option<NodeId> {
    name(id(thread).node::<Toy>().next.load(Relaxed))
}

/// Panics at the next back-off: after the steps so far it would never end.
fn no_more_backoff() {
    at(Point::Halt, || {
        panic!("backs off, and nobody will change the word that it waits for")
    });
}

/// The flags of a thread that waits until it is stopped; see [`waiting`].
#[derive(Clone, Copy)]
struct Flags {
    stop: &'static AtomicBool,
    was_head: &'static AtomicBool,
}

/// An actor that waits in the queue. It stops at [`Point::Wait`] before each poll but the first,
/// and as the head.
fn waiting(thread: usize, queue: Queue) -> (Actor, Flags) {
    let [stop, was_head] = [(); 2].map(|()| &*Box::leak(Box::new(AtomicBool::new(false))));
    let actor = actor(thread, move || {
        let head = queue.lock(Spin::Forever, || stop.load(Relaxed));
        if head.is_some() {
            was_head.store(true, Relaxed);
            Toy::pause(Pause::Iterations(1));
        }
    });
    (actor, Flags { stop, was_head })
}

#[test]
fn two_bytes() {
    assert_eq!(size_of::<Osq<Toy>>(), 2);
    assert!(!Osq::<Toy>::new().is_locked());
}

#[test]
fn the_head_has_the_queue_until_it_is_dropped() {
    let queue = leak();
    let first = head(0, queue);
    assert!(queue.is_locked());
    drop(first);
    assert!(!queue.is_locked());
    drop(head(1, queue));
}

/// OURS in `drop`, and the swap of the tail in `arrive`.
#[test]
fn waiters_become_the_head_in_the_order_of_their_arrival() {
    let queue = leak();
    let first = head(0, queue);
    let waiters: Vec<_> = (1..5)
        .map(|thread| {
            let (actor, flags) = waiting(thread, queue);
            actor.to(Point::Wait);
            (actor, flags)
        })
        .collect();
    drop(first);
    for (actor, flags) in waiters {
        assert!(!flags.was_head.load(Relaxed));
        actor.to(Point::Wait);
        assert!(flags.was_head.load(Relaxed));
        actor.end();
    }
    assert!(!queue.is_locked());
}

/// A and the first half of B, `retreat`.
#[test]
fn the_last_waiter_leaves_and_its_predecessor_is_the_tail_again() {
    let queue = leak();
    let first = head(0, queue);
    let second = as_thread(1, || queue.lock(Spin::Forever, || true));
    assert!(second.is_none());
    assert_eq!((tail(queue), next(0)), (Some(id(0)), None));
    drop(first);
    assert!(!queue.is_locked());
    assert!(as_thread(1, NodeGuard::<Toy>::new).is_some_and(|guard| guard.id() == id(1)));
}

/// The second half of B, `take_next`, and C.
#[test]
fn a_waiter_in_the_middle_leaves_and_its_neighbours_are_linked() {
    let queue = leak();
    let first = head(0, queue);
    let [second, third] = [1, 2].map(|thread| waiter(thread, queue));
    no_more_backoff();
    assert!(!queue.leave(&second));
    assert_eq!((tail(queue), next(0)), (Some(id(2)), Some(id(2))));
    drop(first);
    assert_eq!(third.node().wait.load(Relaxed), OURS);
    assert_eq!(halts(), 0);
}

/// The check for OURS in A: without it the queue has a head that has left.
#[test]
fn a_handoff_between_the_decision_to_leave_and_step_a_is_accepted() {
    let queue = leak();
    let first = Cell::new(Some(head(0, queue)));
    no_more_backoff();
    let second = as_thread(1, || {
        queue.lock(Spin::Forever, || {
            drop(first.take());
            true
        })
    });
    assert!(second.is_some(), "lost: nobody is the head");
    drop(second);
    assert!(!queue.is_locked());
}

/// A waits where its exchange fails (Q5): the unlocker has taken the link and lost its CPU before
/// OURS.
#[test]
fn a_late_handoff_reaches_a_waiter_that_has_decided_to_leave() {
    let queue = leak();
    let first = head(0, queue);
    let second = as_thread(1, || {
        queue.lock(Spin::Forever, || {
            assert_eq!(queue.detach(id(0), 0), Some(id(1)));
            at(Point::Halt, || {
                id(1).node::<Toy>().wait.store(OURS, Release)
            });
            true
        })
    });
    assert!(second.is_some());
    assert_eq!((left(), halts()), (0, 1));
    core::mem::forget(first);
}

/// A reads `wait` again each time: the predecessor is between B and C, and the next exchange is
/// with the one before it.
#[test]
fn a_waiter_that_leaves_while_its_predecessor_leaves_gets_a_new_one() {
    let queue = leak();
    let first = head(0, queue);
    let second = waiter(1, queue);
    let third = as_thread(2, || {
        queue.lock(Spin::Forever, || {
            assert!(Osq::<Toy>::unlink(id(1), second.node().wait.load(Relaxed)));
            assert_eq!(queue.detach(id(1), id(0).bits()), Some(id(2)));
            at(Point::Halt, || Osq::<Toy>::relink(id(0), id(2)));
            no_more_backoff();
            true
        })
    });
    assert!(third.is_none());
    assert_eq!((left(), halts()), (1, 1));
    assert_eq!((tail(queue), next(0), next(1)), (Some(id(0)), None, None));
    drop(first);
    assert!(!queue.is_locked());
}

/// B takes the link by exchange (Q4): otherwise the successor's A succeeds on the node that leaves,
/// and the link in C brings back a node that has gone.
#[test]
fn a_successor_cannot_leave_once_b_has_taken_it() {
    let queue = leak();
    let first = head(0, queue);
    let [second, third] = [1, 2].map(|thread| waiter(thread, queue));
    assert!(Osq::<Toy>::unlink(id(1), second.node().wait.load(Relaxed)));
    assert_eq!(queue.detach(id(1), id(0).bits()), Some(id(2)));
    let attempt = |thread| Osq::<Toy>::unlink(id(thread), third.node().wait.load(Relaxed));
    assert!(!attempt(2), "its predecessor is about to leave");
    Osq::<Toy>::relink(id(0), id(2));
    assert!(attempt(2));
    core::mem::forget(first);
}

/// B and unlock wait for the next link (Q3), here of an arrival that has lost its CPU before it
/// linked. And `next` in `arrive`: other locks leave any value in a node.
#[test]
fn an_unlock_waits_for_the_link_of_an_arrival() {
    let queue = leak();
    id(0).node::<Toy>().next.store(id(3).bits().into(), Relaxed);
    let first = head(0, queue);
    let arriving = as_thread(1, || NodeGuard::new().unwrap());
    assert_eq!(queue.arrive(&arriving), Some(id(0)));
    at(Point::Halt, move || Osq::link(&arriving, id(0)));
    drop(first);
    assert_eq!((left(), halts()), (0, 1));
    assert_eq!(id(1).node::<Toy>().wait.load(Relaxed), OURS);
}

/// `retreat` at each try of `detach`: the successor was quicker with its A, and was the last.
#[test]
fn an_unlocker_whose_successor_has_left_is_the_last_again() {
    let queue = leak();
    let first = head(0, queue);
    let second = waiter(1, queue);
    assert!(Osq::<Toy>::unlink(id(1), second.node().wait.load(Relaxed)));
    at(Point::Halt, move || {
        assert_eq!(queue.detach(id(1), id(0).bits()), None)
    });
    no_more_backoff();
    drop(first);
    assert_eq!((left(), halts()), (1, 1));
    assert!(!queue.is_locked());
}

/// Unlock against A: the successor was quicker, and is just before its C.
#[test]
fn an_unlocker_waits_for_a_waiter_that_is_leaving() {
    let queue = leak();
    let first = head(0, queue);
    let [second, third] = [1, 2].map(|thread| waiter(thread, queue));
    assert!(Osq::<Toy>::unlink(id(1), second.node().wait.load(Relaxed)));
    assert_eq!(queue.detach(id(1), id(0).bits()), Some(id(2)));
    at(Point::Halt, || Osq::<Toy>::relink(id(0), id(2)));
    no_more_backoff();
    drop(first);
    assert_eq!((left(), halts()), (1, 1));
    assert_eq!(third.node().wait.load(Relaxed), OURS);
    assert_ne!(second.node().wait.load(Relaxed), OURS);
}

/// The order of the two stores in C: as soon as `before` has its successor it may hand off to it,
/// and the other store would undo that.
#[test]
fn c_names_the_predecessor_before_it_can_hand_off() {
    let [before, after] = [1, 2].map(|thread| NodeId::new(thread, 0));
    let [before_node, after_node] = [before, after].map(NodeId::node::<Watch>);
    watch::watch(before_node);
    watch::after(Access::Store, move || {
        assert_eq!(before_node.next.load(Relaxed), u32::from(after.bits()));
        after_node.wait.store(OURS, Relaxed);
    });
    Osq::<Watch>::relink(before, after);
    assert_eq!(watch::left(), 0);
    assert_eq!(after_node.wait.load(Relaxed), OURS, "undone");
}

/// OT: a successor that links, or loads the CPU, as soon as it finds the name meets a node of this
/// wait. Fails where `arrive` writes `next` or `info` after the exchange.
#[test]
fn a_node_is_ready_before_its_name_can_be_seen() {
    let queue: &'static Osq<Watch> = Box::leak(Box::new(Osq::new()));
    let node = NodeId::new(3, 0).node::<Watch>();
    // From an earlier wait.
    node.next.store(77, Relaxed);
    node.info.store(77, Relaxed);
    watch::watch(queue);
    watch::before(Access::Swap, move || {
        let seen = (node.next.load(Relaxed), node.info.load(Relaxed));
        assert_eq!(seen, (0, 3 + 1));
    });
    let head = as_thread(3, || queue.lock(Spin::Polls(1), || true));
    assert!(head.is_some());
    assert_eq!(watch::left(), 0);
}

/// A, B and C of adjacent waiters, in each order of whole calls; `steps` has the orders within
/// them.
#[test]
fn adjacent_waiters_leave_in_any_order() {
    for order in [
        [1, 2, 3],
        [1, 3, 2],
        [2, 1, 3],
        [2, 3, 1],
        [3, 1, 2],
        [3, 2, 1],
    ] {
        let queue = leak();
        let first = head(0, queue);
        let mut waiters: Vec<_> = (1..4)
            .map(|thread| {
                let (actor, flags) = waiting(thread, queue);
                actor.to(Point::Wait);
                flags.stop.store(true, Relaxed);
                Some((actor, flags))
            })
            .collect();
        for thread in order {
            let (actor, flags) = waiters[thread - 1].take().unwrap();
            actor.end();
            assert!(!flags.was_head.load(Relaxed));
        }
        assert_eq!((tail(queue), next(0)), (Some(id(0)), None), "{order:?}");
        drop(first);
        assert!(!queue.is_locked());
    }
}

/// `lost_its_cpu`: with all threads on one CPU the one before cannot be running.
#[test]
fn nobody_waits_behind_a_thread_whose_cpu_it_runs_on() {
    let queue = leak();
    on_cpu(3);
    let first = head(0, queue);
    at(Point::Wait, || panic!("it waits"));
    let second = as_thread(1, || queue.lock(Spin::Polls(100), || false));
    assert!(second.is_none());
    assert_eq!(left(), 1);
    drop(first);
}

#[test]
fn the_limit_ends_a_wait() {
    let queue = leak();
    let first = head(0, queue);
    let polls = Cell::new(0);
    for _ in 0..9 {
        at(Point::Wait, || {});
    }
    let second = as_thread(1, || {
        queue.lock(Spin::Polls(7), || {
            polls.set(polls.get() + 1);
            false
        })
    });
    assert!(second.is_none());
    assert_eq!(polls.get(), 7);
    drop(first);
}

#[test]
fn without_a_node_nobody_queues() {
    let queue = leak();
    assert!(as_thread(SLOTS, || queue.lock(Spin::Forever, || false)).is_none());
    assert!(!queue.is_locked());
}

/// Each context has its node: a handler that comes to the queue stands behind its own thread, and
/// leaves.
#[test]
fn a_handler_comes_and_leaves_while_its_thread_waits() {
    let queue = leak();
    let first = head(0, queue);
    let (actor, flags) = waiting(1, queue);
    actor.to(Point::Wait);
    actor.interrupt(move || assert!(queue.lock(Spin::Forever, || true).is_none()));
    assert_eq!(tail(queue), Some(id(1)));
    drop(first);
    actor.to(Point::Wait);
    assert!(flags.was_head.load(Relaxed));
    actor.end();
    assert!(!queue.is_locked());
}
