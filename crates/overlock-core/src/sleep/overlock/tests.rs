//! Thread 0 is the director and holds the lock at first; the others come to it. Each test of a race
//! names what prevents it.

mod freed;
mod handoff;

use std::boxed::Box;

use super::*;
use crate::toy::stage::{Actor, actor};
use crate::toy::{Point, Toy, as_thread, halts, kicks, left, took};

type Lock = &'static Overlock<Toy>;

/// Longer than one spin before a sleep, which ends with a distance between two polls, and shorter
/// than two.
const A_WHILE: u64 = 2 * SPIN;

fn leak() -> Lock {
    Box::leak(Box::new(Overlock::new()))
}

/// Thread 0 has it.
fn held() -> Lock {
    let lock = leak();
    lock.lock();
    lock
}

fn unlock(lock: Lock) {
    // SAFETY: each test unlocks what it has locked.
    unsafe { lock.unlock(()) }
}

fn unlock_fair(lock: Lock) {
    // SAFETY: as above.
    unsafe { lock.unlock_fair(()) }
}

fn locker(thread: usize, lock: Lock) -> Actor {
    actor(thread, move || lock.lock())
}

/// Thread `thread` sleeps for the lock.
fn sleeper(thread: usize, lock: Lock) -> Actor {
    let actor = locker(thread, lock);
    actor.sleep();
    actor
}

/// Thread `thread` sleeps for the lock, and gives up the next time that it would.
fn timed_sleeper(thread: usize, lock: Lock) -> Actor {
    let actor = actor(thread, move || {
        let until = Toy::now().plus_nanos(A_WHILE);
        assert!(lock.lock_until(until).is_none());
    });
    actor.sleep();
    actor
}

fn word(lock: Lock) -> u32 {
    lock.word.load(Relaxed)
}

fn has(lock: Lock, bits: u32) -> bool {
    word(lock) & bits == bits
}

fn sleepers(lock: Lock) -> u32 {
    word(lock) / SLEEPER
}

fn was(step: Step) -> bool {
    took(&DIAGRAM, step as usize)
}

/// The owner unlocks, and nothing is left behind.
fn ends(lock: Lock) {
    unlock(lock);
    let clean = |lock| word(lock) & !(SLOW | CALM) == 0;
    assert!(clean(lock), "{:#x}", word(lock));
    let before = kicks();
    lock.lock();
    unlock(lock);
    assert!(clean(lock) && kicks() == before && left() == 0);
}

#[test]
fn four_bytes_and_no_system_call_on_the_fast_path() {
    assert_eq!(size_of::<Overlock<Toy>>(), 4);
    let lock = held();
    assert!(lock.is_locked() && !lock.is_contended());
    assert!(lock.try_lock().is_none());
    unlock(lock);
    assert_eq!(word(lock), 0);
    assert!(lock.try_lock().is_some());
    unlock(lock);
    assert!(lock.lock_until(Toy::now()).is_some(), "tries once");
    unlock_fair(lock);
    assert_eq!((word(lock), kicks(), halts()), (0, 0, 0));
    assert!(was(Step::Take) && was(Step::Release));
    assert!(!Overlock::<Toy>::create().unwrap().is_locked());
    let constant: Overlock<Toy> = ConstLock::INIT;
    assert!(!constant.is_locked());
}

#[test]
fn a_waiter_that_spins_takes_a_free_lock_and_was_never_counted() {
    let lock = held();
    let one = locker(1, lock);
    one.to(Point::Wait);
    unlock(lock);
    one.end();
    assert_eq!(word(lock), LOCKED);
    assert_eq!((kicks(), halts()), (0, 0));
    ends(lock);
}

/// The halt in `sleep` expects what the join wrote.
#[test]
fn a_release_between_the_join_and_the_sleep_is_noticed() {
    let lock = held();
    let one = locker(1, lock);
    one.to(Point::Halt);
    assert!(has(lock, LOCKED | WAKE | SLOW) && sleepers(lock) == 1);
    unlock(lock);
    one.end();
    assert!(lock.is_locked() && !lock.is_contended());
    ends(lock);
}

/// `!(LOCKED | WAKE)` in `unlock_slow`, and the kick behind it.
#[test]
fn nobody_is_woken_while_one_that_was_woken_is_on_its_way() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    unlock(lock);
    assert!(kicks() == 1 && one.is_kicked());
    for _ in 0..3 {
        lock.lock();
        unlock(lock);
    }
    assert_eq!(kicks(), 1, "the first is on its way");
    one.end();
    assert!(has(lock, WAKE) && sleepers(lock) == 1);
    as_thread(1, || unlock(lock));
    assert_eq!(kicks(), 2);
    two.end();
    ends(lock);
}

/// WAKE in `Waiter::leave`, at an acquisition.
#[test]
fn whoever_was_woken_sets_wake_as_the_owner() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = sleeper(2, lock);
    unlock(lock);
    assert!(!has(lock, WAKE));
    one.end();
    assert!(has(lock, LOCKED | WAKE));
    unlock(lock);
    two.end();
    assert!(!has(lock, WAKE), "nobody else is counted");
    ends(lock);
}

/// `word | WAKE` in `Waiter::join`.
#[test]
fn whoever_was_woken_in_vain_sets_wake_before_it_sleeps_again() {
    let lock = held();
    let one = sleeper(1, lock);
    unlock(lock);
    lock.lock();
    assert!(!has(lock, WAKE));
    one.sleep();
    assert!(has(lock, WAKE) && sleepers(lock) == 1);
    unlock(lock);
    one.end();
    ends(lock);
}

/// WAKE in `Waiter::leave`, in `give_up`.
#[test]
fn whoever_was_woken_sets_wake_as_it_gives_up() {
    let lock = held();
    let one = timed_sleeper(1, lock);
    let two = sleeper(2, lock);
    unlock(lock);
    lock.lock();
    one.end();
    assert!(has(lock, WAKE) && sleepers(lock) == 1);
    unlock(lock);
    two.end();
    ends(lock);
}

/// The look at `may_take` in `give_up`: the release's kick was for the leaver, and nobody else
/// hears of it.
#[test]
fn who_gives_up_takes_a_lock_that_it_finds_free() {
    let lock = held();
    let acquired = actor(1, move || {
        let waiter = Waiter {
            since: 0,
            counted: true,
            heir: false,
        };
        assert!(lock.give_up(&waiter));
    });
    lock.word.fetch_add((2 * SLEEPER) | SLOW, Relaxed);
    unlock(lock);
    acquired.end();
    assert!(has(lock, LOCKED | WAKE) && sleepers(lock) == 1);
}

#[test]
fn who_gives_up_and_is_the_last_leaves_nothing() {
    let lock = held();
    let one = timed_sleeper(1, lock);
    one.startle();
    one.end();
    assert_eq!(word(lock), LOCKED | SLOW | CALM);
    let two = sleeper(2, lock);
    assert!(!has(lock, CALM), "`!CALM` in `add_sleeper`");
    unlock(lock);
    two.end();
    ends(lock);
}

#[test]
fn who_gives_up_before_it_is_counted_changes_nothing() {
    let lock = held();
    assert!(lock.lock_until(Toy::now().plus_nanos(10)).is_none());
    assert!(was(Step::GiveUpUncounted));
    assert_eq!(word(lock), LOCKED);
    ends(lock);
}

/// WAKE in `add_sleeper`. Without it the second waiter, which joins while the first is on its way
/// and is slow to sleep, would miss the kick that is meant for it, find the word as it wrote it,
/// and sleep on a word without WAKE.
#[test]
fn a_waiter_that_is_slow_to_sleep_does_not_sleep_past_its_kick() {
    let lock = held();
    let one = sleeper(1, lock);
    unlock(lock);
    lock.lock();
    let slow = locker(2, lock);
    slow.to(Point::Halt);
    let joined = word(lock);
    unlock(lock);
    one.end();
    as_thread(1, || unlock(lock)); // kicks nobody: the second does not sleep yet
    lock.lock();
    let three = sleeper(3, lock);
    assert_eq!(word(lock), joined);
    slow.sleep();
    unlock(lock);
    assert!(slow.is_kicked() || three.is_kicked(), "lost wake-up");
    slow.end();
    as_thread(2, || unlock(lock));
    three.end();
    ends(lock);
}

/// CALM at `EndSlow`.
#[test]
fn slow_stays_while_somebody_is_counted() {
    let lock = held();
    let one = sleeper(1, lock);
    unlock(lock);
    lock.lock();
    unlock(lock);
    assert!(has(lock, SLOW), "one is counted, and on its way");
    one.end();
    assert!(has(lock, SLOW));
    unlock(lock);
    assert!(was(Step::EndSlow) && !has(lock, SLOW));
}

/// `add_sleeper` in `adopt`.
#[test]
fn who_is_adopted_is_woken_by_an_unlock() {
    let lock = held();
    let one = actor(1, move || lock.lock_adopted());
    assert!(lock.adopt(NodeId::new(1, 0), || ()));
    assert!(has(lock, WAKE | SLOW) && sleepers(lock) == 1);
    let before = kicks();
    unlock(lock);
    assert_eq!(kicks(), before + 1);
    one.end();
    assert_eq!(sleepers(lock), 0);
    ends(lock);
    assert!(
        !lock.adopt(NodeId::new(1, 0), || ()),
        "nobody would wake it"
    );
}

/// The look at the end of `adopt`.
#[test]
fn an_unlock_before_the_requeue_is_made_up_for() {
    let lock = held();
    let before = kicks();
    assert!(lock.adopt(NodeId::new(1, 0), move || unlock(lock)));
    // The unlock's, for nobody; the requeue's, which does without on this platform; the adopter's.
    assert_eq!(kicks(), before + 3);
}

/// GIVEN in the look at the end of `adopt`. A fair unlock has kicked nobody, as neither sleeps on
/// the lock yet; then the second adopter sets WAKE on a lock that nobody will unlock.
#[test]
fn a_fair_unlock_before_the_requeue_is_made_up_for() {
    let lock = held();
    let before = kicks();
    let adopted = lock.adopt(NodeId::new(1, 0), move || {
        unlock_fair(lock);
        assert!(has(lock, LOCKED | GIVEN));
        assert!(lock.adopt(NodeId::new(2, 0), || ()));
    });
    assert!(adopted && has(lock, LOCKED | GIVEN | WAKE));
    // The unlock's, for nobody; two requeues', which do without on this platform; two adopters'.
    assert_eq!(kicks(), before + 5);
}

/// The limits of `add_sleeper` and `Waiter::leave`.
#[test]
fn a_count_that_is_full_stays_and_the_lock_goes_on() {
    let lock = held();
    lock.word.store(LOCKED | SLOW | (MANY - SLEEPER), Relaxed);
    let one = sleeper(1, lock);
    assert!(has(lock, MANY | WAKE), "the last that is counted");
    let two = sleeper(2, lock);
    unlock(lock);
    assert_eq!(word(lock), MANY | SLOW);
    lock.lock();
    let three = timed_sleeper(3, lock);
    assert!(has(lock, MANY | WAKE), "a joiner sets WAKE");
    unlock(lock);
    one.end();
    assert!(has(lock, MANY | WAKE | LOCKED), "so does an owner");
    unlock(lock);
    two.end();
    three.startle();
    three.end();
    assert!(has(lock, MANY | WAKE), "and who gives up");
    unlock(lock);
    assert_eq!(word(lock), MANY | SLOW);
    lock.lock();
    lock.word.fetch_or(WAKE, Relaxed);
    unlock_fair(lock);
    assert!(!lock.is_locked(), "there may be nobody to give it to");
}

/// Stands for the store of a release that has looked before anybody came, and for an owner that has
/// the lock since.
fn release_unseeing(lock: Lock, held_again: bool) {
    lock.word.byte0_store(u8::from(held_again), Release);
}

/// The loop in `sleep`, whose halt expects what the join wrote.
#[test]
fn who_has_set_slow_and_finds_it_gone_looks_again() {
    for held_again in [false, true] {
        let lock = held();
        let one = locker(1, lock);
        one.to(Point::Halt);
        release_unseeing(lock, held_again);
        if held_again {
            one.sleep();
            assert!(has(lock, LOCKED | WAKE | SLOW) && sleepers(lock) == 1);
            unlock(lock);
        }
        one.end();
        assert_eq!(word(lock), LOCKED | CALM | (word(lock) & SLOW));
        ends(lock);
    }
}

/// SLOW in `Waiter::leave`.
#[test]
fn who_takes_a_lock_whose_flags_are_gone_sets_them_again() {
    let lock = held();
    let one = locker(1, lock);
    one.to(Point::Halt);
    let two = sleeper(2, lock);
    release_unseeing(lock, false);
    one.end();
    assert!(has(lock, LOCKED | WAKE | SLOW) && sleepers(lock) == 1);
    as_thread(1, || unlock(lock));
    two.end();
    ends(lock);
}

/// The look at SLOW in `give_up`.
#[test]
fn who_gives_up_leaves_no_lock_whose_flags_are_gone() {
    let lock = held();
    // Two are counted, by an announcement that a release has taken away.
    lock.word.fetch_add(2 * SLEEPER, Relaxed);
    let gone = actor(1, move || {
        let waiter = Waiter {
            since: 0,
            counted: true,
            heir: false,
        };
        assert!(!lock.give_up(&waiter));
        assert!(was(Step::BeginSlow), "releases are restarted");
    });
    gone.end();
    assert!(has(lock, LOCKED | WAKE | SLOW) && sleepers(lock) == 1);
    let before = kicks();
    unlock(lock);
    assert_eq!(kicks(), before + 1);
}

#[test]
fn after_a_fork_only_the_owner_is_left() {
    let lock = held();
    let states = [
        (LOCKED | WAKE | ASKED | SLOW | (3 * SLEEPER), LOCKED),
        (LOCKED | GIVEN | CROWD | SLOW | SLEEPER, 0),
        (LOCKED | GIVEN | ASKED | SLOW | SLEEPER, 0),
        (SLOW | CALM, 0),
    ];
    for (before, after) in states {
        lock.word.store(before, Relaxed);
        // SAFETY: there is no other thread.
        unsafe { lock.forget_waiters() };
        assert_eq!(word(lock), after);
    }
}
