//! The handoff target, fair unlocks, and newcomers that sleep apart.

use super::*;

/// Makes the sleeper `actor` the handoff target: it is woken in vain after HANDOFF_NS, requests the
/// lock, and sleeps. Thread 0 has the lock.
fn make_target(lock: Lock, actor: &Actor) {
    unlock(lock);
    lock.lock();
    actor.interrupt(|| {
        Toy::pause(Pause::Delay(HANDOFF_NS));
    });
    actor.sleep();
    assert!(has(lock, LOCKED | HANDOFF) && !has(lock, PICKUP));
}

/// HANDOFF in `Contender::join`, the check of it in `unlock_waking`, `may_take`, and
/// `WakeClass::Target` for the target.
#[test]
fn the_next_unlock_hands_off_to_the_target_and_nobody_else_takes_the_lock() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    make_target(lock, &one);
    unlock(lock);
    assert!(
        has(lock, LOCKED | HANDOFF | PICKUP),
        "HANDOFF says whom it is for"
    );
    assert!(one.is_kicked() && !two.is_kicked());
    assert!(lock.try_lock().is_none(), "a newcomer");
    two.startle();
    two.sleep();
    assert!(has(lock, PICKUP), "another that is counted");
    let three = sleeper(3, lock);
    assert!(has(lock, PICKUP) && sleepers(lock) == 3);
    one.end();
    assert_eq!(word(lock) & (HANDOFF | PICKUP | WAKE), WAKE);
    as_thread(1, || unlock(lock));
    passes_on(2, two, lock);
    three.end();
    ends(lock);
}

/// `word & (HANDOFF | PICKUP) == 0` in `Contender::join`.
#[test]
fn one_waiter_requests_a_handoff_at_a_time() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    make_target(lock, &one);
    two.startle();
    two.interrupt(|| {
        Toy::pause(Pause::Delay(HANDOFF_NS));
    });
    two.sleep();
    unlock(lock);
    assert!(one.is_kicked() && !two.is_kicked());
    one.end();
    assert!(!has(lock, HANDOFF));
    unlock(lock);
    two.end();
    ends(lock);
}

/// `!HANDOFF` in `Contender::leave`.
#[test]
fn a_target_that_finds_the_lock_free_takes_it_and_withdraws_its_request() {
    let lock = held();
    let one = sleeper(1, lock);
    make_target(lock, &one);
    // A restartable unlock that had loaded the word before the request.
    lock.word.fetch_and(!LOCKED, Relaxed);
    one.startle();
    one.end();
    assert_eq!(word(lock) & !(SLOW | EMPTY), LOCKED);
    ends(lock);
}

/// `!HANDOFF` in `Contender::leave`: the lock is not handed off to a thread that has gone.
#[test]
fn a_target_that_gives_up_withdraws_its_request() {
    let lock = held();
    let one = timed_sleeper(1, lock);
    let two = sleeper(2, lock);
    // A timed sleeper gives up before it would request; so the target is set up by hand.
    one.startle();
    let gone = actor(3, move || {
        let waiter = Contender {
            counted: true,
            target: true,
            ..Contender::default()
        };
        assert!(!lock.give_up(&waiter));
    });
    lock.word.fetch_add(HANDOFF + SLEEPER, Relaxed);
    gone.end();
    assert_eq!(word(lock) & (HANDOFF | WAKE), WAKE);
    one.end();
    unlock(lock);
    assert!(two.is_kicked());
    two.end();
    ends(lock);
}

/// The check of HANDOFF in `unlock_fair`.
#[test]
fn a_fair_unlock_hands_off_to_the_target() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    make_target(lock, &one);
    unlock_fair(lock);
    assert!(has(lock, HANDOFF | PICKUP) && one.is_kicked() && !two.is_kicked());
    one.end();
    unlock(lock);
    two.end();
    ends(lock);
}

/// The check of `may_take` in `give_up`.
#[test]
fn a_waiter_that_gives_up_takes_a_lock_that_was_handed_off_to_it() {
    for (handed_off, target) in [(PICKUP, false), (PICKUP | HANDOFF, true)] {
        let lock = held();
        lock.word
            .store(LOCKED | handed_off | SLOW | SLEEPER, Relaxed);
        let waiter = Contender {
            counted: true,
            target,
            ..Contender::default()
        };
        assert!(lock.give_up(&waiter));
        assert_eq!(word(lock), LOCKED | SLOW | EMPTY);
        ends(lock);
    }
}

/// The same by way of a spin.
#[test]
fn a_target_at_its_limit_takes_a_lock_that_was_handed_off_to_it() {
    let lock = held();
    let one = actor(1, move || {
        let until = Toy::now().plus_nanos(2 * HANDOFF_NS);
        assert!(lock.lock_until(until).is_some());
    });
    one.sleep();
    make_target(lock, &one);
    unlock(lock);
    one.interrupt(|| {
        Toy::pause(Pause::Delay(2 * HANDOFF_NS));
    });
    one.end();
    assert!(has(lock, LOCKED) && word(lock) & (HANDOFF | PICKUP) == 0);
    ends(lock);
}

/// PICKUP in `unlock_fair`, `self.counted` in `may_take`, `sleep_apart`, and the kick in `attempt`.
#[test]
fn a_fair_unlock_hands_off_to_a_sleeper_and_newcomers_sleep_apart() {
    let lock = held();
    let one = sleeper(1, lock);
    unlock_fair(lock);
    assert!(has(lock, LOCKED | PICKUP) && !has(lock, WAKE));
    assert!(lock.try_lock().is_none());
    let new = sleeper(2, lock);
    assert!(has(lock, APART) && sleepers(lock) == 1, "I4");
    assert!(!new.is_kicked());
    one.end();
    assert!(word(lock) & (PICKUP | APART) == 0);
    assert!(new.is_kicked());
    new.sleep();
    assert!(has(lock, WAKE) && sleepers(lock) == 1, "counted now");
    unlock(lock);
    new.end();
    ends(lock);
}

/// I4: `may_take` in `sleep`.
#[test]
fn a_counted_waiter_does_not_sleep_on_a_lock_that_it_may_pick_up() {
    let lock = held();
    let one = locker(1, lock);
    one.to(Point::Halt);
    unlock_fair(lock); // kicks nobody
    assert!(has(lock, PICKUP));
    one.end();
    assert!(!has(lock, PICKUP));
    ends(lock);
}

/// The kick in `sleep_apart`: a newcomer can take the kick of a counted thread, where the platform
/// does not tell sleepers apart or the sleep can be cancelled.
#[test]
fn a_newcomer_that_is_woken_for_another_passes_the_kick_on() {
    let lock = held();
    let one = sleeper(1, lock);
    unlock_fair(lock);
    let new = sleeper(2, lock);
    new.startle();
    new.sleep();
    new.interrupt(|| assert_eq!(kicks(), 1));
    one.end();
    new.sleep();
    unlock(lock);
    new.end();
    ends(lock);
}
