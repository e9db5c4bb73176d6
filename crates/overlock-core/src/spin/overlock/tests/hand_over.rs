//! The lock handed over to the one that has asked for it, awake or asleep.

use super::*;

/// I4: nobody but the chosen one can take a lock that was handed over.
#[test]
fn an_unlock_hands_over_to_the_chosen_sleeper_and_nobody_passes() {
    let lock = leak::<Recommended>();
    lock.lock();
    let chosen = choose(lock, 1);
    unlock(lock);
    assert_eq!(lock.locked.load(Relaxed), HANDED);
    assert!(lock.try_lock().is_none());
    let soon = Toy::now().plus_nanos(100);
    assert!(!lock.spin(Spin::Until(soon), None));
    assert!(lock.spin(Spin::Turns(1), Some(chosen)));
    lock.settle(&lock.queue(), chosen, &mut woken());
    assert_eq!(kicks(), 0, "it was awake");
    unlock(lock);
    assert_clean(lock);
}

/// I6 prevents it: the request of the one asleep would be gone, and nobody would ever wake it.
#[test]
fn an_announcer_that_takes_the_lock_leaves_the_request_for_a_hand_over_alone() {
    let lock = leak::<Recommended>();
    lock.lock();
    let announcer = locker(1, lock);
    announcer.to(Point::Light);
    let claimant = choose(lock, 2);
    unlock(lock); // finds it free again before the announcer does: handed over
    assert_eq!(lock.locked.load(Relaxed), HANDED);
    assert!(lock.take_handed(claimant));
    let other = choose(lock, 3);
    lock.locked.store(FREE, Release); // an unlock that came before the request
    announcer.end();
    assert_eq!(lock.request(), HAND_OVER);
    assert_eq!(lock.chosen.load(Relaxed), other.bits());
    assert_ne!(claimant, other);
    ended(lock, other);
}

/// The same, where the one before it was handed the lock and has not said so yet.
#[test]
fn the_one_before_leaves_a_newer_request_for_a_hand_over_alone() {
    let lock = leak::<Recommended>();
    lock.lock();
    let first = choose(lock, 1);
    assert!(!lock.queue().ask_for_hand_over(NodeId::new(2, 0), CALLED));
    unlock(lock);
    assert!(
        !lock.queue().ask_for_hand_over(NodeId::new(2, 0), CALLED),
        "the lock is on its way to the first"
    );
    assert!(lock.take_handed(first));
    let second = choose(lock, 2);
    lock.settle(&lock.queue(), first, &mut woken());
    assert_eq!(lock.request(), HAND_OVER);
    unlock(lock);
    assert_eq!(lock.locked.load(Relaxed), HANDED);
    assert!(lock.take_handed(second));
    ended(lock, second);
    unlock(lock);
    assert_clean(lock);
}

/// I4: nobody else could ever take it.
#[test]
fn a_hand_over_that_comes_as_the_sleeper_stops_waiting_for_it_is_taken() {
    let lock = leak::<Recommended>();
    lock.lock();
    let chosen = choose(lock, 1);
    unlock(lock);
    let mut sleeper = woken();
    sleeper.asked = true;
    let passed = Limit::until(Toy::now());
    let next = lock.fall_back(chosen, &mut sleeper, &passed);
    assert!(matches!(next, Next::Owner));
    unlock(lock);
    assert_clean(lock);
}

/// What bounds the wait: a sleeper that has failed for long gets the lock even asleep.
#[test]
fn a_claim_is_handed_over_to_a_sleeper() {
    let lock = leak::<Recommended>();
    lock.lock();
    let claimant = NodeId::new(1, 0);
    at(Point::Halt, || {
        unlock(lock);
        assert!(lock.try_lock().is_none(), "it belongs to the sleeper");
    });
    as_thread(1, || {
        assert!(lock.compete(claimant, &mut woken(), true, &Limit::NONE));
        unlock(lock);
    });
    assert_eq!(kicks(), 1);
    assert_clean(lock);
}

/// OL in `claim`: the owner has unlocked before it could see the claim.
#[test]
fn a_claim_on_a_lock_that_was_just_freed_is_no_sleep() {
    let lock = leak::<Recommended>();
    lock.lock();
    let chosen = choose(lock, 1);
    at(Point::Heavy, || lock.locked.store(FREE, Release));
    as_thread(1, || assert!(lock.claim(chosen, &Limit::NONE)));
    assert_eq!(halts(), 0);
}

/// `yields` in `ask_for_hand_over`: else those that come later and are awake could keep a claim waiting for ever. And the look at `chosen` in
/// `take_handed`: the one that was awake does not take what is the claim's.
#[test]
fn a_claim_comes_before_the_request_of_a_thread_that_is_awake() {
    let lock = leak::<Recommended>();
    lock.lock();
    let awake = choose(lock, 1);
    let claim = NodeId::new(2, 0);
    assert!(lock.queue().ask_for_hand_over(claim, CLAIMING));
    assert!(!lock.queue().ask_for_hand_over(NodeId::new(3, 0), CLAIMING));
    unlock(lock);
    assert_eq!(kicks(), 1);
    assert!(!lock.spin(Spin::Turns(1), Some(awake)));
    assert!(lock.take_handed(claim));
    unlock(lock);
    assert_clean(lock);
}
