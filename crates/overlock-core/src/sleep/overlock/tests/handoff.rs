//! The heir, fair unlocks, and newcomers that sleep apart.

use super::*;

/// Thread `thread` has slept, was woken in vain after PASSED, has asked, and sleeps. Thread 0 has
/// the lock.
fn heir(lock: Lock, actor: &Actor) {
    unlock(lock);
    lock.lock();
    actor.interrupt(|| {
        Toy::delay(PASSED);
    });
    actor.sleep();
    assert!(has(lock, LOCKED | ASKED) && was_not_given(lock));
}

fn was_not_given(lock: Lock) -> bool {
    word(lock) & GIVEN == 0
}

/// ASKED in `Waiter::join`, the look at it in `unlock_slow`, `may_take`, and `Sleeper::Apart` for
/// the heir.
#[test]
fn the_heir_is_given_the_lock_by_the_next_unlock_and_nobody_else_takes_it() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    heir(lock, &one);
    unlock(lock);
    assert!(has(lock, LOCKED | ASKED | GIVEN), "ASKED says whose it is");
    assert!(one.is_kicked() && !two.is_kicked());
    assert!(lock.try_lock().is_none(), "a newcomer");
    two.startle();
    two.sleep();
    assert!(has(lock, GIVEN), "another that is counted");
    let three = sleeper(3, lock);
    assert!(has(lock, GIVEN) && sleepers(lock) == 3);
    one.end();
    assert_eq!(word(lock) & (ASKED | GIVEN | WAKE), WAKE);
    as_thread(1, || unlock(lock));
    two.end();
    as_thread(2, || unlock(lock));
    three.end();
    ends(lock);
}

/// `word & (ASKED | GIVEN) == 0` in `Waiter::join`.
#[test]
fn one_waiter_asks_at_a_time() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    heir(lock, &one);
    two.startle();
    two.interrupt(|| {
        Toy::delay(PASSED);
    });
    two.sleep();
    unlock(lock);
    assert!(one.is_kicked() && !two.is_kicked());
    one.end();
    assert!(!has(lock, ASKED));
    unlock(lock);
    two.end();
    ends(lock);
}

/// `!ASKED` in `Waiter::leave`.
#[test]
fn an_heir_that_finds_the_lock_free_takes_it_and_asks_no_more() {
    let lock = held();
    let one = sleeper(1, lock);
    heir(lock, &one);
    // The unlock of an owner that was already through its look, as a sequence.
    lock.word.fetch_and(!LOCKED, Relaxed);
    one.startle();
    one.end();
    assert_eq!(word(lock) & !(SLOW | CALM), LOCKED);
    ends(lock);
}

/// `!ASKED` in `Waiter::leave`: what was asked for is not given to one that has gone.
#[test]
fn an_heir_that_gives_up_asks_no_more() {
    let lock = held();
    let one = timed_sleeper(1, lock);
    let two = sleeper(2, lock);
    // It gives up as soon as it would sleep again; so it becomes the heir by hand.
    one.startle();
    let gone = actor(3, move || {
        let waiter = Waiter {
            since: 0,
            counted: true,
            heir: true,
        };
        assert!(!lock.give_up(&waiter));
    });
    lock.word.fetch_add(ASKED + SLEEPER, Relaxed);
    gone.end();
    assert_eq!(word(lock) & (ASKED | WAKE), WAKE);
    one.end();
    unlock(lock);
    assert!(two.is_kicked());
    two.end();
    ends(lock);
}

/// The look at ASKED in `unlock_fair`.
#[test]
fn a_fair_unlock_gives_the_lock_to_the_heir() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    heir(lock, &one);
    unlock_fair(lock);
    assert!(has(lock, ASKED | GIVEN) && one.is_kicked() && !two.is_kicked());
    one.end();
    unlock(lock);
    two.end();
    ends(lock);
}

/// The look at `may_take` in `give_up`.
#[test]
fn who_gives_up_takes_a_lock_that_it_was_given() {
    for (given, heir) in [(GIVEN, false), (GIVEN | ASKED, true)] {
        let lock = held();
        lock.word.store(LOCKED | given | SLOW | SLEEPER, Relaxed);
        let waiter = Waiter {
            since: 0,
            counted: true,
            heir,
        };
        assert!(lock.give_up(&waiter));
        assert_eq!(word(lock), LOCKED | SLOW | CALM);
        ends(lock);
    }
}

/// The same by way of a spin.
#[test]
fn an_heir_that_gives_up_after_it_was_given_the_lock_takes_it() {
    let lock = held();
    let one = actor(1, move || {
        let until = Toy::now().plus_nanos(2 * PASSED);
        assert!(lock.lock_until(until).is_some());
    });
    one.sleep();
    heir(lock, &one);
    unlock(lock);
    one.interrupt(|| {
        Toy::delay(2 * PASSED);
    });
    one.end();
    assert!(has(lock, LOCKED) && word(lock) & (ASKED | GIVEN) == 0);
    ends(lock);
}

/// GIVEN in `unlock_fair`, `self.counted` in `may_take`, `crowd`, and the kick in `attempt`.
#[test]
fn a_fair_unlock_gives_the_lock_to_a_sleeper_and_newcomers_sleep_apart() {
    let lock = held();
    let one = sleeper(1, lock);
    unlock_fair(lock);
    assert!(has(lock, LOCKED | GIVEN) && !has(lock, WAKE));
    assert!(lock.try_lock().is_none());
    let new = sleeper(2, lock);
    assert!(has(lock, CROWD) && sleepers(lock) == 1, "I4");
    assert!(!new.is_kicked());
    one.end();
    assert!(word(lock) & (GIVEN | CROWD) == 0);
    assert!(new.is_kicked());
    new.sleep();
    assert!(has(lock, WAKE) && sleepers(lock) == 1, "as any");
    unlock(lock);
    new.end();
    ends(lock);
}

/// I4: `may_take` in `sleep`.
#[test]
fn a_counted_waiter_does_not_sleep_on_a_lock_that_is_given_to_any() {
    let lock = held();
    let one = locker(1, lock);
    one.to(Point::Halt);
    unlock_fair(lock); // kicks nobody
    assert!(has(lock, GIVEN));
    one.end();
    assert!(!has(lock, GIVEN));
    ends(lock);
}

/// The kick in `crowd`: where sleepers are not told apart, or may be cancelled, a newcomer can take
/// the kick of a counted one.
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
