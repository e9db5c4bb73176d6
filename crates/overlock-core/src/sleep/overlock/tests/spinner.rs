//! The spinner, waiters beside it, and those that make way for a sleeper.

use core::cell::Cell;
use std::thread_local;

use super::*;

thread_local! {
    static START: Cell<u64> = const { Cell::new(0) };
}

/// Lets a waiter poll until `bits` are set.
fn poll_until(bits: u32, lock: Lock, actor: &Actor) {
    while !has(lock, bits) {
        actor.to(Point::Wait);
    }
}

/// Lets a waiter poll for longer than it takes to become the spinner.
fn poll_on(actor: &Actor) {
    for _ in 0..POLLS + 3 {
        actor.to(Point::Wait);
    }
}

/// Moves the clock of the thread that runs this: the waiter's next look at it is a chosen one.
fn to_a_chosen_time() {
    while !is_chosen(Toy::now().as_nanos() + 1) {}
}

/// Thread `thread` waits beside a sleeper, as the spinner.
fn spinner(thread: usize, lock: Lock) -> Actor {
    let actor = locker(thread, lock);
    poll_until(SPINNER, lock, &actor);
    actor
}

/// A held lock for which nobody sleeps any more: thread 1 has it.
fn held_after_a_sleeper() -> Lock {
    let lock = held();
    let one = sleeper(1, lock);
    unlock(lock);
    one.end();
    assert_eq!(word(lock), LOCKED | SLOW | EMPTY);
    lock
}

/// `WAKE | SPINNER` in `unlock_slow`, and `stop_spinning` in `Contender::leave`.
#[test]
fn unlocks_wake_nobody_while_a_spinner_polls() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = spinner(2, lock);
    for _ in 0..3 {
        unlock(lock);
        lock.lock();
    }
    assert!(kicks() == 0 && has(lock, WAKE | SPINNER) && !one.is_kicked());
    unlock(lock);
    two.end();
    assert_eq!(word(lock), LOCKED | WAKE | SLOW | SLEEPER);
    as_thread(2, || unlock(lock));
    assert_eq!(kicks(), 1);
    one.end();
    ends(lock);
}

/// `stop_spinning` in `Contender::join`.
#[test]
fn a_spinner_that_goes_to_sleep_is_not_waited_for() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = spinner(2, lock);
    two.sleep();
    assert!(!has(lock, SPINNER) && sleepers(lock) == 2);
    unlock(lock);
    assert!(one.is_kicked());
    passes_on(1, one, lock);
    two.end();
    ends(lock);
}

/// `spins` in `give_up`.
#[test]
fn a_spinner_that_gives_up_is_not_waited_for() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = actor(2, move || {
        assert!(lock.lock_until(Toy::now()).is_none());
    });
    poll_until(SPINNER, lock, &two);
    two.end();
    assert_eq!(word(lock), LOCKED | WAKE | SLOW | SLEEPER);
    unlock(lock);
    one.end();
    ends(lock);
}

/// `spins` in `give_up`: the flags are those of others.
#[test]
fn a_spinner_whose_bit_was_erased_gives_up_and_changes_nothing() {
    let lock = held();
    let waiter = Contender {
        spinner: true,
        ..Contender::default()
    };
    assert!(!lock.give_up(&waiter));
    assert_eq!(word(lock), LOCKED);
    ends(lock);
}

/// `stop_spinning` in `sleep_apart`.
#[test]
fn a_spinner_sleeps_apart_while_the_lock_is_handed_off_to_another_thread() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = spinner(2, lock);
    unlock_fair(lock);
    two.sleep();
    assert!(has(lock, LOCKED | PICKUP | APART) && !has(lock, SPINNER));
    passes_on(1, one, lock);
    two.end();
    ends(lock);
}

/// `knows_spinner` in `Contender::join`: the spinner may have been stopped, and wake up nobody.
#[test]
fn who_sleeps_does_not_wait_for_a_spinner_that_does_not_run() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = spinner(2, lock);
    let three = sleeper(3, lock);
    assert!(!has(lock, SPINNER) && sleepers(lock) == 2);
    unlock(lock);
    assert!(one.is_kicked());
    passes_on(1, one, lock);
    passes_on(3, three, lock);
    two.end();
    ends(lock);
}

/// `lacks_spinner` in `spin`: until then unlocks wake sleepers in vain.
#[test]
fn a_newcomer_becomes_the_spinner_at_its_first_look() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = locker(2, lock);
    two.to(Point::Wait);
    assert!(has(lock, SPINNER));
    unlock(lock);
    passes_on(2, two, lock);
    one.end();
    ends(lock);
}

/// `EMPTY` in `lacks_spinner`: who could not become the spinner watches the lock for a while.
#[test]
fn a_newcomer_looks_for_longer_while_nobody_sleeps() {
    let lock = held_after_a_sleeper();
    let two = locker(2, lock);
    two.to(Point::Wait);
    two.interrupt(|| START.set(Toy::now().as_nanos()));
    for _ in 2..POLLS {
        two.to(Point::Wait);
    }
    // Reading the clock moves it, and a distance between polls does.
    two.interrupt(|| assert_eq!(Toy::now().as_nanos(), START.get() + 1));
    unlock(lock);
    two.end();
    ends(lock);
}

/// `knows_spinner` in `makes_way` and in `Contender::join`.
#[test]
fn a_newcomer_sleeps_beside_a_spinner_that_it_has_seen_begin() {
    let lock = held();
    let one = sleeper(1, lock);
    // It would become the spinner, but for a handoff that is requested for a moment.
    lock.word.fetch_or(HANDOFF, Relaxed);
    let three = locker(3, lock);
    three.to(Point::Wait);
    lock.word.fetch_and(!HANDOFF, Relaxed);
    lock.word.fetch_or(SPINNER, Relaxed);
    three.sleep();
    assert!(has(lock, SPINNER) && sleepers(lock) == 2);
    lock.word.fetch_and(!SPINNER, Relaxed);
    unlock(lock);
    passes_on(1, one, lock);
    three.end();
    ends(lock);
}

/// `PHASE` in `spin` and in `makes_way`: one spinner after the other, each seen from its start.
#[test]
fn a_newcomer_sleeps_beside_a_spinner_that_has_followed_another() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = spinner(2, lock);
    let phase = has(lock, PHASE);
    let three = locker(3, lock);
    poll_on(&three);
    unlock(lock);
    passes_on(2, two, lock);
    lock.lock();
    let four = spinner(4, lock);
    assert_ne!(has(lock, PHASE), phase);
    three.sleep();
    assert!(has(lock, SPINNER) && sleepers(lock) == 2);
    unlock(lock);
    passes_on(4, four, lock);
    passes_on(1, one, lock);
    three.end();
    ends(lock);
}

/// `phase` after `yield_slice`: the spinner may have begun long ago, and be stopped since.
#[test]
fn a_yield_makes_a_newcomer_forget_what_it_knows_of_the_spinner() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = spinner(2, lock);
    let three = locker(3, lock);
    three.to(Point::Wait);
    three.interrupt(move || {
        end_slice(move || {
            lock.word.fetch_xor(PHASE, Relaxed);
        });
    });
    three.sleep();
    assert!(!has(lock, SPINNER) && sleepers(lock) == 2);
    unlock(lock);
    passes_on(1, one, lock);
    passes_on(3, three, lock);
    two.end();
    ends(lock);
}

/// `knows_spinner` after the halt in `sleep`.
#[test]
fn a_long_sleep_makes_a_thread_forget_what_it_knows_of_the_spinner() {
    for nap in [0, 2 * SPIN_NS] {
        let lock = held();
        let one = sleeper(1, lock);
        let two = spinner(2, lock);
        let three = locker(3, lock);
        poll_on(&three);
        lock.word.fetch_xor(PHASE, Relaxed);
        three.to(Point::Halt);
        assert!(has(lock, SPINNER) && sleepers(lock) == 2);
        // It does not sleep on the word as it was, and sleeps on this one.
        three.interrupt(move || {
            Toy::pause(Pause::Delay(nap));
            lock.word.fetch_xor(PHASE, Relaxed);
        });
        three.sleep();
        assert_eq!(has(lock, SPINNER), nap == 0);
        two.sleep();
        unlock(lock);
        passes_on(1, one, lock);
        passes_on(3, three, lock);
        two.end();
        ends(lock);
    }
}

/// `EMPTY` in `makes_way`: there is nobody to wake, and nobody who relies on a wake-up.
#[test]
fn nobody_makes_way_for_nobody() {
    let lock = held_after_a_sleeper();
    let two = locker(2, lock);
    two.to(Point::Wait);
    two.interrupt(to_a_chosen_time);
    poll_on(&two);
    assert_eq!(word(lock), LOCKED | SLOW | EMPTY);
    unlock(lock);
    two.end();
    ends(lock);
}

/// `word & SLOW` in `makes_way`: a release that looks at byte 0 must find it as it was.
#[test]
fn nobody_becomes_the_spinner_while_nobody_sleeps() {
    let lock = held();
    let one = locker(1, lock);
    poll_on(&one);
    assert_eq!(word(lock), LOCKED);
    unlock(lock);
    one.end();
    ends(lock);
}

/// `is_chosen` in `makes_way`.
#[test]
fn one_in_many_waiters_makes_way_for_the_longest_sleeper() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    lock.word.fetch_or(SPINNER, Relaxed);
    let three = locker(3, lock);
    three.to(Point::Wait);
    three.interrupt(to_a_chosen_time);
    lock.word.fetch_and(!SPINNER, Relaxed);
    three.to(Point::Kick);
    three.sleep();
    assert!(!has(lock, SPINNER) && has(lock, WAKE) && sleepers(lock) == 3);
    unlock(lock);
    passes_on(1, one, lock);
    passes_on(2, two, lock);
    three.end();
    ends(lock);
}

/// `!waiter.counted` in `makes_way`.
#[test]
fn a_woken_thread_makes_way_for_nobody() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    unlock(lock);
    lock.lock();
    one.to(Point::Wait);
    one.interrupt(to_a_chosen_time);
    poll_until(SPINNER, lock, &one);
    assert_eq!(kicks(), 1);
    unlock(lock);
    passes_on(1, one, lock);
    two.end();
    ends(lock);
}

/// `old` in `makes_way`.
#[test]
fn a_woken_thread_that_is_old_requests_a_handoff_before_it_sleeps() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = spinner(2, lock);
    one.interrupt(|| {
        Toy::pause(Pause::Delay(HANDOFF_NS));
    });
    one.startle();
    poll_until(HANDOFF, lock, &one);
    assert!(!has(lock, SPINNER), "an unlock has to see the request");
    unlock(lock);
    assert!(has(lock, LOCKED | PICKUP | HANDOFF));
    assert!(lock.try_lock().is_none());
    one.end();
    two.sleep();
    as_thread(1, || unlock(lock));
    two.end();
    ends(lock);
}

/// `word & HANDOFF` in `makes_way`.
#[test]
fn nobody_becomes_the_spinner_while_a_handoff_is_requested() {
    let lock = held();
    let one = sleeper(1, lock);
    one.startle();
    one.to(Point::Wait);
    one.interrupt(|| {
        Toy::pause(Pause::Delay(HANDOFF_NS));
    });
    one.sleep();
    assert!(has(lock, HANDOFF));
    let two = locker(2, lock);
    poll_on(&two);
    assert!(!has(lock, SPINNER));
    unlock(lock);
    one.end();
    two.sleep();
    as_thread(1, || unlock(lock));
    two.end();
    ends(lock);
}

/// `may_take` in `give_up`: the release has woken nobody, since there was a spinner.
#[test]
fn a_spinner_that_gives_up_takes_a_free_lock() {
    let lock = leak();
    let waiter = Contender {
        spinner: true,
        ..Contender::default()
    };
    lock.word.store(WAKE | SLOW | SPINNER | SLEEPER, Relaxed);
    assert!(lock.give_up(&waiter));
    assert_eq!(word(lock), LOCKED | WAKE | SLOW | SLEEPER);
    unlock(lock);
    assert_eq!(kicks(), 1);
}

/// `WAKE | SPINNER` in `unlock_waking`: the spinner came after the look at byte 0.
#[test]
fn an_unlock_wakes_nobody_beside_a_spinner_that_has_just_come() {
    let lock = held();
    let waits = WAKE | SLOW | SPINNER | SLEEPER;
    lock.word.store(LOCKED | waits, Relaxed);
    lock.unlock_waking();
    assert_eq!((word(lock), kicks()), (waits, 0));
}

/// `counted` in `is_old`: a target that is not counted would leave HANDOFF set as it acquires.
#[test]
fn a_newcomer_that_is_old_requests_nothing() {
    let lock = held();
    let one = sleeper(1, lock);
    let mut waiter = Contender {
        since: Toy::ticks(),
        ..Contender::default()
    };
    Toy::pause(Pause::Delay(2 * HANDOFF_NS));
    let now = (0..).find(|&now| !is_chosen(now)).unwrap();
    assert!(!lock.makes_way(word(lock), now, &mut waiter));
    assert!(has(lock, SPINNER) && !has(lock, HANDOFF) && waiter.spinner);
    assert!(!lock.give_up(&waiter));
    unlock(lock);
    one.end();
    ends(lock);
}

/// `!SPINNER` in `adopt`: the spinner may have lost its CPU.
#[test]
fn an_adopter_does_not_rely_on_the_spinner() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = spinner(2, lock);
    let three = actor(3, move || lock.lock_adopted());
    assert!(lock.adopt(NodeId::new(3, 0), || ()));
    assert!(!has(lock, SPINNER) && has(lock, WAKE) && sleepers(lock) == 2);
    unlock(lock);
    assert!(one.is_kicked());
    passes_on(1, one, lock);
    passes_on(2, two, lock);
    three.end();
    ends(lock);
}

/// `stop_spinning` in `Contender::leave`, and WAKE for the others there.
#[test]
fn a_fair_unlock_hands_off_to_a_woken_spinner() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    unlock(lock);
    lock.lock();
    let three = actor(3, move || lock.lock_adopted());
    assert!(lock.adopt(NodeId::new(3, 0), || ()));
    poll_until(SPINNER, lock, &one);
    unlock_fair(lock);
    assert!(has(lock, LOCKED | PICKUP | SPINNER) && two.is_kicked());
    one.end();
    assert_eq!(word(lock), LOCKED | WAKE | SLOW | (2 * SLEEPER));
    as_thread(1, || unlock(lock));
    passes_on(2, two, lock);
    three.end();
    ends(lock);
}
