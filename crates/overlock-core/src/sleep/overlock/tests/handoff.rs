//! Handoffs, requested or by a fair unlock, and newcomers that wait until they are picked up.

use super::*;

/// Lets time pass for the actor, which sleeps.
fn pass(actor: &Actor, nanos: u64) {
    actor.interrupt(move || {
        Toy::pause(Pause::Delay(nanos));
    });
}

/// The sleeper `actor` is woken in vain after HANDOFF_NS, requests a handoff, and sleeps. Thread 0
/// has the lock.
fn make_request(lock: Lock, actor: &Actor) {
    unlock(lock);
    lock.lock();
    pass(actor, HANDOFF_NS);
    actor.sleep();
    assert!(has(lock, LOCKED | HANDOFF | WAKE));
}

/// A lock that was handed off, with this thread counted. Thread 0 is no owner any more.
fn handed_off(sleeps: usize) -> (Lock, Actor) {
    let lock = held();
    let one = sleeper(sleeps, lock);
    unlock_fair(lock);
    assert_eq!(word(lock), HANDOFF | SLEEPER);
    (lock, one)
}

/// HANDOFF in `Contender::join`, and in `may_take`.
#[test]
fn after_a_request_newcomers_wait_until_a_counted_thread_has_had_the_lock() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    make_request(lock, &one);
    let before = kicks();
    unlock(lock);
    assert_eq!(word(lock), HANDOFF | (2 * SLEEPER));
    assert_eq!(kicks(), before + 1, "a sleeper");
    assert!(lock.try_lock().is_none(), "a newcomer");
    let three = sleeper(3, lock);
    assert_eq!(
        sleepers(lock),
        2,
        "it sleeps for a while, and is not counted"
    );
    two.end();
    assert_eq!(word(lock), LOCKED | WAKE | SLEEPER);
    assert_eq!(kicks(), before + 1, "who picks the lock up kicks nobody");
    three.startle();
    three.sleep();
    assert_eq!(sleepers(lock), 2, "it is counted now");
    as_thread(2, || unlock(lock));
    passes_on(1, one, lock);
    three.end();
    ends(lock);
}

/// `since` in `Contender::join`.
#[test]
fn a_young_waiter_requests_nothing() {
    let lock = held();
    let one = sleeper(1, lock);
    unlock(lock);
    lock.lock();
    one.sleep();
    assert!(has(lock, WAKE) && !has(lock, HANDOFF));
    unlock(lock);
    one.end();
    ends(lock);
}

/// `counted` in `Contender::join`: a newcomer has not been woken in vain.
#[test]
fn an_old_newcomer_requests_nothing() {
    as_thread(1, || {
        let since = Toy::ticks().wrapping_sub(2 * HANDOFF_NS);
        let old = |counted| Contender { since, counted };
        assert_eq!(old(false).join::<Toy>(LOCKED), LOCKED | WAKE | SLEEPER);
        let counted = LOCKED | WAKE | SLEEPER;
        assert_eq!(old(true).join::<Toy>(counted), counted | HANDOFF);
    });
}

/// `!HANDOFF` in `Contender::leave`: else the lock is handed off to nobody.
#[test]
fn a_request_ends_with_the_last_counted_thread() {
    let lock = held();
    let gone = actor(1, move || {
        assert!(!gives_up(lock));
    });
    lock.word.fetch_or(HANDOFF | WAKE, Relaxed);
    lock.word.fetch_add(SLEEPER, Relaxed);
    gone.end();
    assert_eq!(word(lock), LOCKED);
    ends(lock);
}

/// `word >= SLEEPER` in `unlock_slow`.
#[test]
fn a_fair_unlock_hands_off_where_threads_are_counted() {
    let (lock, one) = handed_off(1);
    assert!(one.is_kicked() && !lock.is_locked());
    one.end();
    unlock_fair(lock);
    assert_eq!(word(lock), 0, "nobody is counted");
}

/// Without WAKE a counted thread is awake: nobody else is woken.
#[test]
fn a_fair_unlock_hands_off_to_a_thread_that_is_on_its_way() {
    let lock = held();
    let one = sleeper(1, lock);
    unlock(lock);
    lock.lock();
    unlock_fair(lock);
    assert!(has(lock, HANDOFF) && kicks() == 1);
    one.end();
    assert_eq!(word(lock), LOCKED);
    ends(lock);
}

/// I3: `may_take` in `sleep`.
#[test]
fn a_counted_waiter_does_not_sleep_on_a_lock_that_is_handed_off() {
    let lock = held();
    let one = locker(1, lock);
    one.to(Point::Halt);
    unlock_fair(lock); // kicks nobody
    one.end();
    assert_eq!(word(lock), LOCKED);
    ends(lock);
}

/// The check of `may_take` in `sleep`.
#[test]
fn a_waiter_that_gives_up_takes_a_lock_that_was_handed_off() {
    let (lock, one) = handed_off(1);
    let two = actor(2, move || {
        assert!(gives_up(lock));
    });
    lock.word.fetch_add(SLEEPER, Relaxed);
    two.end();
    assert_eq!(word(lock), LOCKED | WAKE | SLEEPER);
    unlock(lock);
    one.end();
    ends(lock);
}

/// `is_impatient` and WAKE in `sleep`: the thread that was woken has no CPU.
#[test]
fn a_handoff_that_nobody_picks_up_is_taken_back_by_a_newcomer() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    unlock_fair(lock);
    let new = sleeper(3, lock);
    for _ in 1..PATIENCE {
        new.startle();
        new.sleep();
    }
    new.startle();
    new.end();
    assert_eq!(word(lock), LOCKED | HANDOFF | WAKE | (2 * SLEEPER));
    let before = kicks();
    as_thread(3, || unlock(lock));
    assert_eq!(kicks(), before + 1, "another sleeper");
    assert!(has(lock, HANDOFF) && !lock.is_locked());
    one.end();
    as_thread(1, || unlock(lock));
    two.end();
    ends(lock);
}

/// `is_realtime` in `sleep`: it keeps the thread that was woken from its CPU.
#[test]
fn a_realtime_newcomer_takes_a_handoff_back_at_once() {
    let (lock, one) = handed_off(1);
    let new = actor(2, move || {
        be_realtime();
        lock.lock();
    });
    new.end();
    assert_eq!(word(lock), LOCKED | HANDOFF | WAKE | SLEEPER);
    as_thread(2, || unlock(lock));
    one.end();
    ends(lock);
}

/// `Limit::nap`: the deadline is in the middle of a nap.
#[test]
fn a_newcomer_gives_up_at_its_deadline_while_the_lock_is_handed_off() {
    let (lock, one) = handed_off(1);
    as_thread(2, || {
        let until = Toy::now().plus_nanos(5 * BACKOFF_SLEEP_NS / 2);
        assert!(lock.lock_until(until).is_none());
        assert!(Toy::now() < until.plus_nanos(A_WHILE));
    });
    one.end();
    ends(lock);
}
