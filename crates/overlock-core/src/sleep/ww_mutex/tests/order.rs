//! The order of waiters at one lock, and its handoff.

use super::super::wait::GRANTED;
use super::scenes::{part, plain};
use super::*;
use crate::sleep::wait_list::{kick, signal};
use crate::toy::stage::Actor;

/// The published bug of an insertion before the first waiter: the walk in `enter` must see the
/// first one too, and an unlock wakes the first of that moment.
#[test]
fn an_older_context_enters_before_the_first_waiter() {
    for rule in RULES {
        let (class, [a]) = locks(rule);
        let parts = [1, 2, 3, 4].map(|thread| part(thread, class, [a]));
        let [one, two, three, four] = parts;
        let holder = plain(0, a);
        holder.to(Point::Light);
        let without = [plain(5, a), plain(6, a)];
        three.sleeps();
        assert_eq!(waiting(a), [3]);
        two.sleeps();
        assert_eq!(waiting(a), [2, 3]);
        without[0].sleep();
        four.sleeps();
        without[1].sleep();
        assert_eq!(waiting(a), [2, 3, 5, 4, 6]);
        one.sleeps();
        assert_eq!(waiting(a), [1, 2, 3, 5, 4, 6]);
        holder.end();
        for part in [one, two, three] {
            part.ends_after(1);
        }
        let [five, six] = without;
        five.end();
        four.ends_after(1);
        six.end();
        assert_clean(&[a]);
    }
}

/// The first waiter was woken, and bypassed; then an older one enters before it. The next unlock
/// serves the older one.
#[test]
fn an_older_context_enters_before_a_woken_one() {
    let (class, [a]) = locks(Rule::WoundWait);
    let old = part(1, class, [a]);
    let young = part(2, class, [a]);
    let first = a.hold();
    young.sleeps();
    drop(first);
    let second = a.hold(); // while it is on its way
    old.sleeps();
    young.sleeps();
    assert_eq!(waiting(a), [1, 2]);
    drop(second);
    assert_eq!(word(a), WAITERS, "nobody has bypassed the older one");
    old.ends_after(1);
    assert_eq!(word(a), held_by(2), "but the younger one");
    young.ends_after(1);
    assert_clean(&[a]);
}

/// BYPASSED, in `release_to`: without it thieves can keep the lock for ever.
#[test]
fn an_unlock_hands_off_to_a_waiter_that_was_bypassed_once() {
    for rule in RULES {
        let (class, [a]) = locks(rule);
        let waiters = [part(1, class, [a]).actor, plain(2, a)];
        let mut held = Some(a.hold());
        for waiter in &waiters {
            waiter.sleep();
        }
        for (waiter, name) in waiters.into_iter().zip([held_by(1), LOCKED]) {
            drop(held.take());
            assert!(a.is_contended() && !a.is_locked());
            held = a.try_hold();
            let before = kicks();
            drop(held.take());
            assert_eq!(kicks(), before, "it is on its way");
            held = a.try_hold();
            waiter.sleep();
            drop(held.take());
            assert_eq!(word(a) & !WAITERS, name);
            assert!(a.try_hold().is_none());
            waiter.to(Point::Light);
            held = Some(take_from(a, waiter));
        }
        drop(held);
        assert_clean(&[a]);
    }
}

/// `fetch_and` in `enter`: a waiter bypassed at one lock gets no handoff of the next one.
#[test]
fn bypassed_is_cleared_with_the_wait() {
    let (class, [a, b]) = locks(Rule::WoundWait);
    let waiter = part(1, class, [a, b]);
    let held = [a, b].map(WwMutex::hold);
    waiter.sleeps();
    let [held_a, held_b] = held;
    drop(held_a);
    let thief = a.hold();
    waiter.sleeps();
    drop(thief);
    assert_eq!(word(a), held_by(1));
    waiter.takes();
    waiter.sleeps();
    drop(held_b);
    assert_eq!(word(b), WAITERS);
    waiter.ends_after(1);
    assert_clean(&[a, b]);
}

/// Ends the actor that holds `lock`; thread 0 takes it then, past the waiters.
fn take_from(lock: Lock, holder: Actor) -> Held<'static, Toy> {
    holder.end();
    lock.try_hold().unwrap()
}

/// The loop in `release_slow`: the unlocker sees WAITERS, and when it holds the wait lock the last
/// waiter has left.
#[test]
fn a_waiter_that_leaves_during_the_unlock() {
    let (_, [a]) = locks(Rule::WoundWait);
    let held = a.hold();
    a.word.fetch_or(WAITERS, Relaxed);
    let guard = a.waiters.lock();
    at(Point::Wait, move || {
        a.word.store(LOCKED, Relaxed);
        drop(guard);
    });
    drop(held);
    assert_clean(&[a]);
}

/// `release_slow` frees the lock before the wait lock. The next owner may free its memory, so it
/// has to take the wait lock first, also after a handoff.
#[test]
fn a_granted_waiter_waits_for_the_wait_lock() {
    let (class, [a]) = locks(Rule::WoundWait);
    let waiter = part(1, class, [a]);
    let held = a.hold();
    waiter.sleeps();
    // As `release_to` does it, before its end.
    let guard = a.waiters.lock();
    let first = guard.first().unwrap();
    guard.unlink(first);
    a.word.store(held_by(1), Relaxed);
    signal::<Toy>(first, GRANTED);
    kick::<Toy>(first);
    waiter.actor.to(Point::Wait);
    core::mem::forget(held);
    drop(guard);
    waiter.ends_after(1);
    assert_clean(&[a]);
}
