//! Fair unlock and cancellation.

use super::*;
use crate::raw::{RawCancelLock, RawFairLock};
use crate::toy::watch::{self, Access, Watch, watch};

fn unlock_fair(lock: Lock) {
    // SAFETY: each test unlocks what it has locked.
    unsafe { lock.unlock_fair(()) }
}

fn token() -> &'static CancelToken<Toy> {
    Box::leak(Box::default())
}

/// `locked` goes from held to handed in `give_away`: with FREE in between, the `try_lock` here gets it.
#[test]
fn a_fair_unlock_gives_the_lock_to_the_first_sleeper_past_everybody_else() {
    let lock = leak::<Recommended>();
    lock.lock();
    let [first, second] = [1, 2].map(|thread| {
        let sleeper = locker(thread, lock);
        sleeper.sleep();
        sleeper
    });
    unlock_fair(lock);
    assert!(lock.is_locked() && lock.try_lock().is_none());
    first.end();
    assert!(lock.is_locked() && lock.is_contended());
    unlock_fair(lock);
    assert!(lock.try_lock().is_none());
    second.end();
    unlock(lock);
    assert_clean(lock);
}

/// The branch for `HAND_OVER` in `give_away`.
#[test]
fn a_fair_unlock_serves_the_one_that_has_asked_before_those_that_sleep() {
    let lock = leak::<Recommended>();
    lock.lock();
    let sleeper = locker(2, lock);
    sleeper.sleep();
    let chosen = choose(lock, 1);
    unlock_fair(lock);
    assert!(lock.try_lock().is_none());
    let mut woken = woken();
    woken.asked = true;
    assert!(lock.take_handed(chosen), "by the chosen one");
    lock.settle(&lock.queue(), chosen, &mut woken);
    unlock(lock);
    sleeper.end();
    unlock(lock);
    assert_clean(lock);
}

#[test]
fn a_fair_unlock_with_nobody_asleep_is_an_unlock() {
    let lock = leak::<Recommended>();
    lock.lock();
    unlock_fair(lock);
    assert_clean(lock);
    lock.lock();
    // SAFETY: locked above.
    unsafe { lock.bump(()) };
    unlock(lock);
    assert_clean(lock);
}

/// `was_given` in `sleep`: the one that gives up finds that it owns the lock.
#[test]
fn the_lock_is_given_to_a_sleeper_whose_deadline_passes_at_that_moment() {
    let lock = leak::<Recommended>();
    lock.lock();
    let deadline = Toy::now().plus_nanos(1_000_000);
    at(Point::Halt, move || unlock_fair(lock));
    assert!(as_thread(1, || lock.lock_until(deadline)).is_some());
    unlock(lock);
    assert_clean(lock);
}

/// The look at the token in `halt_while`, after the kicks are read: without it the step here is a lost wake-up for as
/// long as nobody unlocks (the toy's clock then runs through the sleeper's timers for ever).
#[test]
fn a_cancelled_wait_ends_awake_or_asleep() {
    let lock = leak::<Recommended>();
    let cancelled = token();
    cancelled.cancel();
    assert!(
        lock.lock_cancellable(cancelled, None).is_some(),
        "tries once"
    );
    assert!(as_thread(1, || lock.lock_cancellable(cancelled, None)).is_none());
    let token = token();
    at(Point::Halt, || token.cancel());
    assert!(as_thread(1, || lock.lock_cancellable(token, None)).is_none());
    assert!(!lock.is_contended());
    assert_eq!(lock.request(), NOTHING, "I5");
    unlock(lock);
    assert_clean(lock);
}

/// CN: the canceller finds the node of a sleeper, and its kick counts.
#[test]
fn cancelling_kicks_those_that_sleep_with_the_token_and_nobody_else() {
    let lock = leak::<Recommended>();
    lock.lock();
    let ours = token();
    let cancelled = actor(1, move || {
        assert!(lock.lock_cancellable(ours, None).is_none())
    });
    cancelled.sleep();
    let other = locker(2, lock);
    other.sleep();
    ours.cancel();
    assert_eq!(kicks(), 1);
    cancelled.end();
    unlock(lock);
    other.end();
    unlock(lock);
    assert_clean(lock);
}

#[test]
fn the_lock_is_given_to_a_sleeper_while_another_is_on_its_way() {
    let lock = leak::<Recommended>();
    lock.lock();
    let [called, given] = [1, 2].map(|thread| {
        let sleeper = locker(thread, lock);
        sleeper.sleep();
        sleeper
    });
    unlock(lock);
    assert!(lock.try_lock().is_some());
    unlock_fair(lock);
    given.end();
    unlock(lock);
    called.end();
    unlock(lock);
    assert_clean(lock);
}

/// The look at the token in `halt_while`: a claim has no timer.
#[test]
fn a_claim_that_was_cancelled_before_it_sleeps_does_not_sleep() {
    let lock = leak::<Recommended>();
    lock.lock();
    let token = token();
    token.cancel();
    let limit = Limit {
        deadline: None,
        cancel: Some(token),
    };
    let id = NodeId::new(1, 0);
    assert!(lock.queue().ask_for_hand_over(id, CLAIMING));
    assert!(!as_thread(1, || lock.claim(id, &limit)));
    assert_eq!(halts(), 0);
    ended(lock, id);
    unlock(lock);
    assert_clean(lock);
}

/// The order in `give_away`: a sleeper that wakes by itself and finds that it was given the lock has to find the lock
/// handed over as well. Else it would go back to the list, and nobody could ever take what was handed.
#[test]
fn the_lock_is_handed_over_before_the_sleeper_is_told() {
    let lock: &Overlock<Watch> = Box::leak(Box::default());
    lock.lock();
    let id = NodeId::new(1, 0);
    lock.queue().push_back(id, Watch::now());
    watch(&id.node::<Watch>().state);
    watch::after(Access::Store, || {
        assert_eq!(Atomic::load(&lock.locked, Relaxed), HANDED);
    });
    assert!(lock.give_away());
    assert_eq!(watch::left(), 0);
}
