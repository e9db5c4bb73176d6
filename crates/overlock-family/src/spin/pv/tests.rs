//! Thread 0 directs, and holds the lock first; the actors are threads 1 to 7.

use std::boxed::Box;
use std::ptr;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

use super::*;
use crate::spin::hybrid::UnfairMode;
use crate::spin::pv_queued::OneSteal;
use overlock_core::node::CONTEXTS;
use overlock_core::toy::stage::{Actor, actor};
use overlock_core::toy::{Point, SLOTS, Toy, as_thread, at, left};

type Lock = &'static Core<Toy>;

/// As published, with a smaller spin budget.
#[derive(Debug)]
struct Stubborn;

impl Tuning for Stubborn {
    const HYBRID: &'static str = "";
    const UNFAIR: Spin = Spin::Forever;
    const POLLS: u32 = 4;
    const ENTER_AGAIN: bool = false;
}

/// A head that was kicked in vain sleeps again.
#[derive(Debug)]
struct Again;

impl Tuning for Again {
    const HYBRID: &'static str = "";
    const UNFAIR: Spin = Spin::Forever;
    const POLLS: u32 = 4;
    const ENTER_AGAIN: bool = true;
}

/// No waiter spins.
#[derive(Debug)]
struct Never;

impl Tuning for Never {
    const HYBRID: &'static str = "";
    const UNFAIR: Spin = Spin::Forever;
    const POLLS: u32 = 0;
    const ENTER_AGAIN: bool = true;
}

/// Runs a test on both kinds, with both policies for a head that was kicked in vain.
macro_rules! on_each_kind {
    ($($(#[$meta:meta])* $test:ident;)*) => {$(
        #[test]
        $(#[$meta])*
        fn $test() {
            fn on<K: Kind + 'static>() {
                scenes::$test::<K>();
                assert_eq!(left(), 0);
            }
            on::<OneSteal<Stubborn>>();
            on::<OneSteal<Again>>();
            on::<UnfairMode<Stubborn>>();
            on::<UnfairMode<Again>>();
        }
    )*};
}

on_each_kind! {
    the_word_tells_who_holds_who_waits_and_who_sleeps;
    the_queue_is_served_in_order_asleep_or_awake;
    an_unlock_before_the_halt_is_not_lost;
    an_unlock_between_entry_and_slow_leaves_the_lock_to_the_head;
    a_slow_handoff_does_not_enter_a_waiter_twice;
    sleepers_that_wake_spuriously_sleep_again;
    a_stale_kick_is_harmless;
    a_successor_of_a_sleeper_does_not_spin;
    a_spinning_head_is_not_bypassed;
    the_head_survives_a_thief_that_loaded_before_pending_was_set;
    handlers_nest_and_the_fifth_context_waits_without_a_node;
    nothing_of_the_lock_is_touched_after_its_release;
}

fn leak() -> Lock {
    Box::leak(Box::new(Core::new()))
}

fn word(lock: Lock) -> u32 {
    lock.word.load(Relaxed)
}

fn entries(lock: Lock) -> usize {
    lock_hash::entries::<Toy, _>(&lock.word)
}

/// An actor that locks `lock` and keeps it.
fn locker<K: Kind + 'static>(thread: usize, lock: Lock) -> Actor {
    actor(thread, move || lock.lock::<K>())
}

fn id(thread: usize) -> NodeId {
    NodeId::new(thread, 0)
}

fn tail(thread: usize) -> u32 {
    queued::tail(id(thread))
}

fn state(thread: usize) -> u32 {
    id(thread).node::<Toy>().state.load(Relaxed)
}

#[cfg(feature = "stat")]
mod counters;
mod scenes;

/// The last check of a waiter in the queue. Fails where it stores HALTED instead of exchanging it:
/// it sleeps as a head without an entry.
#[test]
fn a_waiter_that_has_become_the_head_does_not_fall_asleep() {
    let lock = Core::<Toy>::new();
    let [node, before] = [1, 2].map(|thread| id(thread).node::<Toy>());
    for (made_head, entered) in [(HEAD, false), (HASHED, true)] {
        node.state.store(made_head, Relaxed);
        assert_eq!(lock.wait_in_queue::<OneSteal<Never>>(node, before), entered);
        assert_eq!(node.state.load(Relaxed), made_head);
    }
}

/// The lock is stolen between the release and the head's waking up. The head sleeps again, and the
/// thief's unlock must kick it. Fails where it does not enter itself again (`!= SLOW` never true
/// after the first).
#[test]
fn a_head_that_was_robbed_enters_itself_again() {
    fn on<K: Kind + 'static>() {
        let lock = leak();
        lock.lock::<K>();
        let head = locker::<K>(1, lock);
        head.sleep();
        for _ in 0..3 {
            lock.unlock();
            lock.lock::<K>(); // The thief.
            head.sleep();
            assert_eq!((word(lock), entries(lock)), (tail(1) | SLOW, 1));
        }
        lock.unlock();
        head.end();
        assert_eq!((word(lock), entries(lock)), (LOCKED, 0));
    }
    on::<OneSteal<Again>>();
    on::<UnfairMode<Again>>();
}

/// The published form of the same: it spins from then on, keeping thieves away. Fails where it
/// sleeps.
#[test]
fn a_robbed_head_of_the_published_form_stays_awake() {
    fn on<K: Kind + 'static>() {
        let lock = leak();
        lock.lock::<K>();
        let head = locker::<K>(1, lock);
        head.sleep();
        lock.unlock();
        lock.lock::<K>(); // The thief.
        // Its spin budget ends twice, and it starts anew.
        for _ in 0..2 * K::Tuning::POLLS {
            head.to(Point::Wait);
        }
        assert_eq!((word(lock), entries(lock)), (tail(1) | PENDING | LOCKED, 0));
        lock.unlock();
        head.end();
    }
    on::<OneSteal<Stubborn>>();
    on::<UnfairMode<Stubborn>>();
}

/// pv_queued: one attempt, whether or not the head sleeps.
#[test]
fn a_newcomer_of_pv_queued_tries_once() {
    let lock = leak();
    lock.lock::<OneSteal<Published>>();
    let [head, newcomer] = [1, 2].map(|thread| locker::<OneSteal<Published>>(thread, lock));
    head.sleep();
    newcomer.sleep_before(Point::Wait); // The lock is held: it queues.
    assert_eq!(word(lock), tail(2) | SLOW);
    lock.unlock();
    locker::<OneSteal<Published>>(3, lock).end(); // The lock is free: it steals.
    assert_eq!(word(lock), tail(2) | LOCKED);
    lock.unlock();
    head.end();
    lock.unlock();
    newcomer.end();
}

/// hybrid: unfair mode while the head sleeps, queued mode as soon as it spins. Fails where `steal`
/// joins the queue too early or too late (either half of `is_queued_mode`).
#[test]
fn a_newcomer_of_hybrid_is_unfair_while_the_head_sleeps() {
    let lock = leak();
    let newcomer = |thread| locker::<UnfairMode<Published>>(thread, lock);
    lock.lock::<UnfairMode<Published>>();
    let head = newcomer(1);
    head.sleep();
    let [two, three, four] = [2, 3, 4].map(newcomer);
    for waiter in [&two, &three, &four] {
        waiter.to(Point::Wait);
        assert_eq!(word(lock), tail(1) | SLOW); // In unfair mode: it has not joined the queue.
    }
    lock.unlock();
    two.end(); // Stolen.
    assert_eq!(word(lock), tail(1) | LOCKED);
    three.to(Point::Wait);
    lock.unlock();
    head.to(Point::Seen);
    head.end();
    // No queue: queued mode.
    three.to(Point::Wait);
    assert_eq!(word(lock), tail(3) | PENDING | LOCKED);
    // Pending: queued mode.
    four.to(Point::Wait);
    assert_eq!(word(lock), tail(4) | PENDING | LOCKED);
    lock.unlock();
    three.end();
    lock.unlock();
    four.end();
    assert_eq!(word(lock), LOCKED);
}

/// hybrid with a limit: a newcomer joins the queue once it is used up.
#[test]
fn unfair_mode_ends_at_its_limit() {
    let lock = leak();
    lock.lock::<UnfairMode<Short>>();
    let [head, newcomer] = [1, 2].map(|thread| locker::<UnfairMode<Short>>(thread, lock));
    head.sleep();
    newcomer.to(Point::Wait);
    assert_eq!(word(lock), tail(1) | SLOW);
    newcomer.sleep(); // Where there was no limit, the toy would say "stuck".
    assert_eq!(word(lock), tail(2) | SLOW);
    for waiter in [head, newcomer] {
        lock.unlock();
        waiter.end();
    }
}

#[test]
fn a_thread_without_a_slot_takes_the_lock_past_the_queue() {
    let lock = leak();
    lock.lock::<OneSteal<Published>>();
    at(Point::Wait, move || lock.unlock());
    as_thread(SLOTS, || lock.lock::<OneSteal<Published>>());
    assert_eq!(word(lock), LOCKED);
    assert_eq!(left(), 0);
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "unlock of a paravirtual queued lock that is free")]
fn a_second_unlock_is_reported() {
    leak().unlock();
}
