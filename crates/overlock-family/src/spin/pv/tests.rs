//! Thread 0 directs, and holds the lock first; the actors are threads 1 to 7.

use std::boxed::Box;
use std::ptr;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

use super::*;
use crate::spin::hybrid::{Published, Short};
use crate::spin::pv_queued::OneSteal;
use overlock_core::node::CONTEXTS;
use overlock_core::toy::stage::{Actor, actor};
use overlock_core::toy::{Point, SLOTS, Toy, as_thread, at, left};

type Lock<F> = &'static PvLock<Toy, F>;

/// A form with a smaller spin budget.
#[derive(Debug)]
struct Small<const HYBRID: bool, const ENTER_AGAIN: bool>;

impl<const HYBRID: bool, const ENTER_AGAIN: bool> Form for Small<HYBRID, ENTER_AGAIN> {
    const NAME: &'static str = "";
    const UNFAIR: Option<Spin> = if HYBRID { Some(Spin::Forever) } else { None };
    const POLLS: u32 = 4;
    const ENTER_AGAIN: bool = ENTER_AGAIN;
}

/// No waiter spins.
#[derive(Debug)]
struct Never;

impl Form for Never {
    const NAME: &'static str = "";
    const UNFAIR: Option<Spin> = None;
    const POLLS: u32 = 0;
}

/// Runs a test on both locks, with both policies for a head that was kicked in vain.
macro_rules! on_each_form {
    ($($(#[$meta:meta])* $test:ident;)*) => {$(
        #[test]
        $(#[$meta])*
        fn $test() {
            fn on<F: Form>() {
                scenes::$test::<F>();
                assert_eq!(left(), 0);
            }
            on::<Small<false, false>>();
            on::<Small<false, true>>();
            on::<Small<true, false>>();
            on::<Small<true, true>>();
        }
    )*};
}

on_each_form! {
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

fn leak<F: Form>() -> Lock<F> {
    Box::leak(Box::new(PvLock::new()))
}

fn unlock<F: Form>(lock: Lock<F>) {
    // SAFETY: each test releases what it has acquired; no token belongs to a thread.
    unsafe { lock.unlock(()) }
}

fn word<F: Form>(lock: Lock<F>) -> u32 {
    lock.word.load(Relaxed)
}

fn entries<F: Form>(lock: Lock<F>) -> usize {
    lock_hash::entries::<Toy, _>(&lock.word)
}

/// An actor that locks `lock` and keeps it.
fn locker<F: Form>(thread: usize, lock: Lock<F>) -> Actor {
    actor(thread, move || lock.lock())
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
    let lock = PvLock::<Toy, Never>::new();
    let [node, before] = [1, 2].map(|thread| id(thread).node::<Toy>());
    for (made_head, entered) in [(HEAD, false), (HASHED, true)] {
        node.state.store(made_head, Relaxed);
        assert_eq!(lock.wait_in_queue(node, before), entered);
        assert_eq!(node.state.load(Relaxed), made_head);
    }
}

/// The lock is stolen between the release and the head's waking up. The head sleeps again, and the
/// thief's unlock must kick it. Fails where it does not enter itself again (`!= SLOW` never true
/// after the first).
#[test]
fn a_head_that_was_robbed_enters_itself_again() {
    fn on<F: Form>() {
        let lock = leak::<F>();
        lock.lock();
        let head = locker(1, lock);
        head.sleep();
        for _ in 0..3 {
            unlock(lock);
            lock.lock(); // The thief.
            head.sleep();
            assert_eq!((word(lock), entries(lock)), (tail(1) | SLOW, 1));
        }
        unlock(lock);
        head.end();
        assert_eq!((word(lock), entries(lock)), (LOCKED, 0));
    }
    on::<Small<false, true>>();
    on::<Small<true, true>>();
}

/// The published form of the same: it spins from then on, keeping thieves away. Fails where it
/// sleeps.
#[test]
fn a_robbed_head_of_the_published_form_stays_awake() {
    fn on<F: Form>() {
        let lock = leak::<F>();
        lock.lock();
        let head = locker(1, lock);
        head.sleep();
        unlock(lock);
        lock.lock(); // The thief.
        // Its spin budget ends twice, and it starts anew.
        for _ in 0..2 * F::POLLS {
            head.to(Point::Wait);
        }
        assert_eq!((word(lock), entries(lock)), (tail(1) | PENDING | LOCKED, 0));
        unlock(lock);
        head.end();
    }
    on::<Small<false, false>>();
    on::<Small<true, false>>();
}

/// pv_queued: one attempt, whether or not the head sleeps.
#[test]
fn a_newcomer_of_pv_queued_tries_once() {
    let lock = leak::<OneSteal>();
    lock.lock();
    let [head, newcomer] = [1, 2].map(|thread| locker(thread, lock));
    head.sleep();
    newcomer.sleep_before(Point::Wait); // The lock is held: it queues.
    assert_eq!(word(lock), tail(2) | SLOW);
    unlock(lock);
    locker(3, lock).end(); // The lock is free: it steals.
    assert_eq!(word(lock), tail(2) | LOCKED);
    unlock(lock);
    head.end();
    unlock(lock);
    newcomer.end();
}

/// hybrid: unfair mode while the head sleeps, queued mode as soon as it spins. Fails where `steal`
/// joins the queue too early or too late (either half of `is_queued_mode`).
#[test]
fn a_newcomer_of_hybrid_is_unfair_while_the_head_sleeps() {
    let lock = leak::<Published>();
    let newcomer = |thread| locker(thread, lock);
    lock.lock();
    let head = newcomer(1);
    head.sleep();
    let [two, three, four] = [2, 3, 4].map(newcomer);
    for waiter in [&two, &three, &four] {
        waiter.to(Point::Wait);
        assert_eq!(word(lock), tail(1) | SLOW); // In unfair mode: it has not joined the queue.
    }
    unlock(lock);
    two.end(); // Stolen.
    assert_eq!(word(lock), tail(1) | LOCKED);
    three.to(Point::Wait);
    unlock(lock);
    head.to(Point::Seen);
    head.end();
    // No queue: queued mode.
    three.to(Point::Wait);
    assert_eq!(word(lock), tail(3) | PENDING | LOCKED);
    // Pending: queued mode.
    four.to(Point::Wait);
    assert_eq!(word(lock), tail(4) | PENDING | LOCKED);
    unlock(lock);
    three.end();
    unlock(lock);
    four.end();
    assert_eq!(word(lock), LOCKED);
}

/// hybrid with a limit: a newcomer joins the queue once it is used up.
#[test]
fn unfair_mode_ends_at_its_limit() {
    let lock = leak::<Short>();
    lock.lock();
    let [head, newcomer] = [1, 2].map(|thread| locker(thread, lock));
    head.sleep();
    newcomer.to(Point::Wait);
    assert_eq!(word(lock), tail(1) | SLOW);
    newcomer.sleep(); // Where there was no limit, the toy would say "stuck".
    assert_eq!(word(lock), tail(2) | SLOW);
    for waiter in [head, newcomer] {
        unlock(lock);
        waiter.end();
    }
}

#[test]
fn a_thread_without_a_slot_takes_the_lock_past_the_queue() {
    let lock = leak::<OneSteal>();
    lock.lock();
    at(Point::Wait, move || unlock(lock));
    as_thread(SLOTS, || lock.lock());
    assert_eq!(word(lock), LOCKED);
    assert_eq!(left(), 0);
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "unlock of a paravirtual queued lock that is free")]
fn a_second_unlock_is_reported() {
    unlock(leak::<OneSteal>());
}
