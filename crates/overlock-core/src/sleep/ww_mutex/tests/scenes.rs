//! Conflicts of contexts. Actors are named by age: `old` has the first stamp. An actor stops where
//! its closure calls [`mark`].

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::*;
use crate::platform::FutexPlatform;
use crate::sleep::wait_list::WAITING;
use crate::toy::stage::{Actor, actor};

/// A place in an actor's closure where the script may stop it.
fn mark() {
    Toy::light_barrier();
}

/// An actor with a context, and the number of its attempts.
pub(super) struct Part {
    pub(super) actor: Actor,
    attempts: Arc<AtomicU32>,
}

/// Thread `number`: takes the locks in their order, with a mark before each and one while it holds
/// all.
pub(super) fn part<const N: usize>(
    number: usize,
    class: &'static Class<Toy>,
    locks: [Lock; N],
) -> Part {
    let attempts = Arc::new(AtomicU32::new(0));
    let counter = attempts.clone();
    let actor = actor(number, move || {
        let result = acquire(class, |ctx| {
            counter.fetch_add(1, Relaxed);
            let mut held = Vec::new();
            for &lock in &locks {
                mark();
                held.push(ctx.lock(lock)?);
            }
            mark();
            Ok(())
        });
        assert_eq!(result, Ok(()));
    });
    actor.to(Point::Light); // It has its stamp now.
    Part { actor, attempts }
}

impl Part {
    /// Takes its next lock, which is free.
    pub(super) fn takes(&self) {
        self.actor.to(Point::Light);
    }

    /// Comes to its next lock, and sleeps.
    pub(super) fn sleeps(&self) {
        self.actor.sleep();
    }

    /// Takes all the rest, and ends.
    pub(super) fn ends_after(self, attempts: u32) {
        self.actor.end();
        assert_eq!(self.attempts.load(Relaxed), attempts);
    }
}

/// Thread `number`: takes the lock without a context, with a mark while it holds it. Its node has
/// served a context before.
pub(super) fn plain(number: usize, lock: Lock) -> Actor {
    actor(number, move || {
        assert_eq!(acquire(lock.class.unwrap(), |_| Ok(())), Ok(()));
        let _held = lock.hold();
        mark();
    })
}

/// Without I4 (`announce`) or I5 (`must_give_up`) both sleep. The younger one has not yet come to
/// the lock that the older one holds.
#[test]
fn two_contexts_cross_and_the_younger_one_comes_last() {
    for rule in RULES {
        let (class, [a, b]) = locks(rule);
        let old = part(1, class, [a, b]);
        let young = part(2, class, [b, a]);
        old.takes();
        young.takes();
        old.sleeps();
        young.sleeps(); // aborted, it waits for `a` and holds nothing
        assert_eq!(waiting(a), [2]);
        old.ends_after(1);
        young.ends_after(2);
        assert_clean(&[a, b]);
    }
}

/// The same, and the younger one may sleep already: without the kick in `announce` it sleeps on,
/// wounded.
#[test]
fn two_contexts_cross_and_the_older_one_comes_last() {
    for rule in RULES {
        let (class, [a, b]) = locks(rule);
        let old = part(1, class, [a, b]);
        let young = part(2, class, [b, a]);
        old.takes();
        young.takes();
        young.sleeps();
        let dies = rule == Rule::WaitDie;
        assert_eq!(
            word(b) & LOCKED == 0,
            dies,
            "a context that dies has released it"
        );
        if dies {
            old.takes();
        } else {
            old.sleeps();
            young.sleeps(); // the kick has come
        }
        old.ends_after(1);
        young.ends_after(2);
        assert_clean(&[a, b]);
    }
}

#[test]
fn a_wounded_context_that_need_not_wait_succeeds() {
    let (class, [a, b, c]) = locks(Rule::WoundWait);
    let old = part(1, class, [a, b]);
    let young = part(2, class, [b, c]);
    old.takes();
    young.takes();
    old.sleeps();
    young.ends_after(1);
    old.ends_after(1);
    assert_clean(&[a, b, c]);
}

/// `store(0)` of `info` in `may_have`: an old wound would abort the second attempt too, and all
/// others.
#[test]
fn a_wound_is_for_one_attempt() {
    let (class, [a, b, c]) = locks(Rule::WoundWait);
    let old = part(1, class, [a, b]);
    let young = part(2, class, [b, a, c]);
    old.takes();
    young.takes();
    old.sleeps();
    young.sleeps();
    old.ends_after(1);
    let middle = plain(3, c);
    middle.to(Point::Light);
    young.sleeps(); // for `c`, holding `b` and `a`
    assert_eq!(waiting(c), [2]);
    middle.end();
    young.ends_after(2);
    assert_clean(&[a, b, c]);
}

/// A context that holds nothing is in no cycle.
#[test]
fn a_context_that_holds_nothing_neither_wounds_nor_dies() {
    for rule in RULES {
        let (class, [a, b]) = locks(rule);
        let old = part(1, class, [a]);
        let middle = part(2, class, [a, b]);
        let young = part(3, class, [a]);
        middle.takes();
        young.sleeps();
        old.sleeps();
        assert_eq!(waiting(a), [1, 3]);
        let blocker = plain(4, b);
        blocker.to(Point::Light);
        middle.sleeps(); // not wounded: it is still there when `b` is free
        blocker.end();
        middle.ends_after(1);
        old.ends_after(1);
        young.ends_after(1);
        assert_clean(&[a, b]);
    }
}

/// The same in `take`, for a younger thief.
#[test]
fn a_thief_is_not_wounded_for_a_waiter_that_holds_nothing() {
    let (class, [a, b, c]) = locks(Rule::WoundWait);
    let old = part(1, class, [b]);
    let young = part(2, class, [a, b, c]);
    let held = [b, c].map(WwMutex::hold);
    old.sleeps();
    young.takes();
    let [held_b, held_c] = held;
    drop(held_b);
    young.takes();
    old.sleeps();
    young.sleeps();
    assert_eq!(word(b) & !WAITERS, held_by(2));
    drop(held_c);
    young.ends_after(1);
    old.ends_after(1);
    assert_clean(&[a, b, c]);
}

/// `take_while` in `take`: only older ones wound.
#[test]
fn a_thief_is_not_wounded_for_younger_waiters() {
    let (class, [a, b, c]) = locks(Rule::WoundWait);
    let old = part(1, class, [a, c]);
    let young = part(2, class, [b, a]);
    let held = [a, c].map(WwMutex::hold);
    young.takes();
    young.sleeps();
    let [held_a, held_c] = held;
    drop(held_a);
    old.takes();
    old.sleeps();
    assert_eq!(word(a) & !WAITERS, held_by(1));
    drop(held_c);
    old.ends_after(1);
    young.ends_after(1);
    assert_clean(&[a, b, c]);
}

/// `notify_if_it_holds`: nobody is woken in vain.
#[test]
fn an_older_waiter_does_not_wake_contexts_that_hold_nothing() {
    let (class, [a]) = locks(Rule::WaitDie);
    let old = part(1, class, [a]);
    let young = part(2, class, [a]);
    let held = a.hold();
    young.sleeps();
    old.sleeps();
    assert_eq!(waiting(a), [1, 2]);
    let state = &NodeId::new(2, 0).node::<Toy>().state;
    assert_eq!(state.load(Relaxed), WAITING);
    drop(held);
    old.ends_after(1);
    young.ends_after(1);
    assert_clean(&[a]);
}

/// I4, `take`: a younger context takes the free lock while an older one that holds others is on its
/// way to it.
#[test]
fn a_younger_thief_wounds_itself() {
    let (class, [a, b]) = locks(Rule::WoundWait);
    let old = part(1, class, [a, b]);
    let young = part(2, class, [b, a]);
    old.takes();
    let held = b.hold();
    old.sleeps();
    drop(held);
    young.takes();
    old.sleeps(); // bypassed
    young.sleeps(); // for `a`, and holds nothing
    assert_eq!(word(b), held_by(1));
    old.ends_after(1);
    young.ends_after(2);
    assert_clean(&[a, b]);
}

/// I5, `take`: the waiter behind the one that is on its way is a younger context that holds other
/// locks, and sleeps. Then an older one takes the lock, and would wait for the sleeper.
#[test]
fn an_older_thief_makes_a_sleeper_die() {
    let (class, [a, b]) = locks(Rule::WaitDie);
    let old = part(1, class, [a, b]);
    let young = part(2, class, [b, a]);
    let held = a.hold();
    let first = plain(3, a);
    first.sleep();
    young.takes();
    young.sleeps();
    drop(held); // `first` is woken
    old.takes();
    old.sleeps();
    young.sleeps(); // and holds nothing
    first.sleep();
    old.ends_after(1);
    first.end();
    young.ends_after(2);
    assert_clean(&[a, b]);
}

/// I5, `announce`: the youngest holds `a`; the one in the middle waits for it, as it may; the
/// oldest enters before it, and would wait for `b`, which the sleeper holds.
#[test]
fn an_older_waiter_makes_a_younger_one_behind_it_die() {
    let (class, [a, b]) = locks(Rule::WaitDie);
    let old = part(1, class, [a, b]);
    let middle = part(2, class, [b, a]);
    let young = part(3, class, [a]);
    young.takes();
    middle.takes();
    middle.sleeps();
    assert_eq!(word(b), held_by(2), "it waits for a younger one");
    old.sleeps();
    assert_eq!(waiting(a), [1, 2]);
    middle.sleeps(); // was woken: dies, and waits, and holds nothing
    assert_eq!(word(b), 0);
    young.ends_after(1);
    old.ends_after(1);
    middle.ends_after(2);
    assert_clean(&[a, b]);
}

/// The same without an older holder: a waiter ahead is enough (`must_give_up`).
#[test]
fn a_younger_context_dies_where_an_older_one_waits_already() {
    let (class, [a, b]) = locks(Rule::WaitDie);
    let old = part(1, class, [a]);
    let young = part(2, class, [b, a]);
    let held = a.hold();
    old.sleeps();
    young.takes();
    young.sleeps();
    assert_eq!(word(b), 0);
    drop(held);
    old.ends_after(1);
    young.ends_after(2);
    assert_clean(&[a, b]);
}
