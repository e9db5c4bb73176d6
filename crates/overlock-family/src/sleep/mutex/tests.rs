//! Thread 0 holds the mutex at first; the others come to it. Each test of a race names the code
//! that prevents it.

mod races;
mod spin;

use std::boxed::Box;
use std::vec::Vec;

use super::word::{HANDOFF, PICKUP};
use super::*;
use overlock_core::node::{CONTEXTS, NodeGuard, NodeId};
use overlock_core::sleep::wait_list::kick;
use overlock_core::toy::stage::{Actor, actor};
use overlock_core::toy::{Point, SLOTS, Toy, as_thread, at, halts, kicks, left, on_cpu};

type Lock<Y = Outside> = &'static KernelMutex<Toy, Y>;

fn leak<Y: Policy>() -> Lock<Y> {
    Box::leak(Box::new(KernelMutex::new()))
}

/// A mutex that thread 0 holds.
fn held<Y: Policy>() -> Lock<Y> {
    let lock = leak();
    lock.lock();
    lock
}

fn unlock<Y: Policy>(lock: Lock<Y>) {
    // SAFETY: each test unlocks what it has locked.
    unsafe { lock.unlock(()) }
}

fn locker<Y: Policy>(thread: usize, lock: Lock<Y>) -> Actor {
    actor(thread, move || lock.lock())
}

/// Thread `thread` sleeps for the mutex.
fn sleeper<Y: Policy>(thread: usize, lock: Lock<Y>) -> Actor {
    let actor = locker(thread, lock);
    actor.sleep();
    actor
}

fn id(thread: usize) -> NodeId {
    NodeId::new(thread, 0)
}

fn word<Y: Policy>(lock: Lock<Y>) -> u32 {
    lock.owner.load(Relaxed)
}

fn is_owner<Y: Policy>(thread: usize, lock: Lock<Y>) -> bool {
    as_thread(thread, || word::is_mine::<Toy>(word(lock)))
}

/// Thread `thread` owns the mutex and unlocks it, and no waiter or flag is left.
fn ends_with<Y: Policy>(thread: usize, lock: Lock<Y>) {
    assert!(is_owner(thread, lock));
    as_thread(thread, || unlock(lock));
    assert_eq!(word(lock), 0);
    assert!(!lock.is_contended() && lock.sleepers.looks_empty() && !lock.sleepers.is_busy());
    assert_eq!(left(), 0);
}

#[test]
fn sixteen_bytes_and_one_word_on_the_fast_path() {
    assert_eq!(size_of::<KernelMutex<Toy>>(), 16);
    let lock = leak::<Outside>();
    lock.lock();
    assert!(is_owner(0, lock) && lock.is_locked() && !lock.is_contended());
    assert!(as_thread(1, || lock.try_lock()).is_none());
    ends_with(0, lock);
    assert!(lock.try_lock().is_some());
    ends_with(0, lock);
    assert_eq!((kicks(), halts()), (0, 0));
    let lock = KernelMutex::<Toy>::INIT;
    assert!(!lock.is_locked());
    assert!(lock.lock_until(Toy::now()).is_some(), "tries once");
}

/// One kick a sleeper: the check of its state in `unlock_slow`, and the change of it there.
#[test]
fn sleepers_are_woken_once_each_in_the_order_of_their_arrival() {
    let lock = held::<Outside>();
    let sleepers = [1, 2, 3].map(|thread| (thread, sleeper(thread, lock)));
    assert!(lock.is_contended());
    let mut owner = 0;
    for (thread, next) in sleepers {
        let before = kicks();
        as_thread(owner, || unlock(lock));
        owner = thread;
        assert_eq!(kicks(), before + 1);
        assert!(lock.try_lock().is_some(), "a running thread may barge");
        unlock(lock);
        assert_eq!(kicks(), before + 1, "the first is on its way already");
        next.end();
        assert!(is_owner(thread, lock));
        assert_eq!(lock.is_contended(), thread < 3, "W goes with the last (M1)");
    }
    ends_with(3, lock);
}

/// M6. Under the wait lock the woken thread would run into it, and a sleeper that joins would wait
/// for a system call.
#[test]
fn a_kick_comes_after_the_wait_lock_and_the_mutex_are_released() {
    let lock = held::<Outside>();
    let one = sleeper(1, lock);
    at(Point::Kick, move || {
        assert!(!lock.sleepers.is_busy() && !lock.is_locked())
    });
    unlock(lock);
    one.end();
    ends_with(1, lock);
}

/// HANDOFF in `take_or_request`, and the check of it in `release`.
#[test]
fn the_next_unlock_hands_off_to_a_sleeper_that_was_woken_in_vain() {
    let lock = held::<Outside>();
    let one = sleeper(1, lock);
    unlock(lock);
    assert!(lock.try_lock().is_some(), "a thief");
    one.to(Point::Wait); // has failed and spins
    let before = kicks();
    unlock(lock);
    assert!(word::is_handed_to(word(lock), id(1)));
    assert_eq!(kicks(), before, "it is awake");
    assert!(
        lock.try_lock().is_none(),
        "nobody steals a mutex that is handed off"
    );
    assert!(as_thread(2, || lock.lock_until(Toy::now().plus_nanos(100))).is_none());
    one.to(Point::Seen); // while it spins, not in its last attempt
    one.end();
    ends_with(1, lock);
}

/// The same once it sleeps again: its request stands.
#[test]
fn a_request_stands_while_its_sleeper_sleeps() {
    let lock = held::<NoSpin>();
    let one = sleeper(1, lock);
    unlock(lock);
    assert!(lock.try_lock().is_some());
    one.sleep_before(Point::Wait);
    let before = kicks();
    unlock(lock);
    assert!(word::is_handed_to(word(lock), id(1)));
    assert_eq!(kicks(), before + 1);
    one.end();
    ends_with(1, lock);
}

/// `take_or_request` after each wake-up: a sleeper that requests only once, or only before its
/// first sleep, is bypassed for ever.
#[test]
fn thieves_at_each_wake_up_bypass_a_sleeper_once() {
    let lock = held::<Outside>();
    for round in 0..4 {
        let [one, two] = [1, 2].map(|thread| sleeper(thread, lock));
        let mut owner = 0;
        for (thread, next) in [(1, one), (2, two)] {
            as_thread(owner, || unlock(lock));
            as_thread(3, || lock.try_lock()).expect("steals it while the sleeper wakes up");
            if round % 2 == 0 {
                next.sleep();
            } else {
                next.to(Point::Wait);
            }
            as_thread(3, || unlock(lock));
            assert!(as_thread(3, || lock.try_lock()).is_none());
            next.end();
            owner = thread;
        }
        ends_with(2, lock);
        lock.lock();
    }
}

/// The first sleeper has requested the handoff and gives up; the next one is first then.
#[test]
fn a_handoff_request_outlives_its_sleeper_and_serves_the_next() {
    let lock = held::<NoSpin>();
    let token: &CancelToken<Toy> = Box::leak(Box::default());
    let one = actor(1, || assert!(lock.lock_cancellable(token, None).is_none()));
    one.sleep();
    let two = sleeper(2, lock);
    unlock(lock);
    lock.lock();
    one.sleep();
    assert_ne!(word(lock) & HANDOFF, 0);
    token.cancel();
    one.end();
    unlock(lock);
    assert!(word::is_handed_to(word(lock), id(2)));
    two.end();
    ends_with(2, lock);
}

/// `leave` in `give_up`: an entry left in the list, or a flag, makes the next unlock wake a thread
/// that is gone.
#[test]
fn a_sleeper_that_gives_up_leaves_nothing_behind() {
    let lock = held::<Outside>();
    let end = Toy::now().plus_nanos(1_000_000);
    assert!(as_thread(1, || lock.lock_until(end)).is_none());
    assert!(Toy::now() >= end);
    assert_eq!(halts(), 1);
    ends_with(0, lock);
    assert_eq!(kicks(), 0);
}

/// `take` at the start of `lock_slow`: the fast path fails on W alone.
#[test]
fn a_free_mutex_with_a_sleeper_is_taken_even_after_the_deadline() {
    let lock = held::<Outside>();
    let one = sleeper(1, lock);
    unlock(lock);
    assert!(lock.lock_until(Toy::now()).is_some());
    unlock(lock);
    one.end();
    ends_with(1, lock);
}

#[test]
fn a_cancelled_sleeper_gives_up() {
    let lock = held::<Outside>();
    let token: &CancelToken<Toy> = Box::leak(Box::default());
    let one = actor(1, || assert!(lock.lock_cancellable(token, None).is_none()));
    one.sleep();
    token.cancel();
    one.end();
    at(Point::Wait, || panic!("spins though it is cancelled"));
    assert!(as_thread(1, || lock.lock_cancellable(token, None)).is_none());
    assert_eq!((left(), halts()), (1, 0));
    unlock(lock);
    assert!(lock.lock_cancellable(token, None).is_some(), "tries once");
}

/// Sleepers leave from the front, the middle and the end of the list: the first one is always
/// found, and the order stays.
#[test]
fn sleepers_that_stay_are_served_in_order_when_others_leave() {
    let lock = held::<Outside>();
    let token: &CancelToken<Toy> = Box::leak(Box::default());
    let staying = |thread| thread == 3 || thread == 4;
    let (stay, leave): (Vec<_>, Vec<_>) = (1..=5)
        .map(|thread| {
            let actor = if staying(thread) {
                locker(thread, lock)
            } else {
                actor(thread, || {
                    assert!(lock.lock_cancellable(token, None).is_none())
                })
            };
            actor.sleep();
            (thread, actor)
        })
        .partition(|(thread, _)| staying(*thread));
    token.cancel();
    for (_, actor) in leave {
        actor.end();
    }
    let mut owner = 0;
    for (thread, actor) in stay {
        as_thread(owner, || unlock(lock));
        actor.end();
        assert!(is_owner(thread, lock));
        owner = thread;
    }
    ends_with(4, lock);
}

/// The pick-up flag in `is_handed_to`. Without it a thread that locks a mutex which it owns, and
/// wakes up, takes its own name for a handoff.
#[test]
fn an_owner_does_not_acquire_its_mutex_again() {
    let lock = held::<Outside>();
    assert!(is_owner(0, lock));
    for _ in 0..3 {
        at(Point::Halt, || kick::<Toy>(id(0)));
    }
    at(Point::Halt, || {
        // And signalled, as if by mistake.
        id(0).node::<Toy>().state.store(1, Relaxed);
        kick::<Toy>(id(0));
    });
    assert!(lock.lock_until(Toy::now().plus_nanos(1_000_000)).is_none());
    ends_with(0, lock);
}

#[test]
fn a_fair_unlock_hands_off_to_the_first_sleeper() {
    let lock = held::<Outside>();
    let one = sleeper(1, lock);
    // SAFETY: thread 0 has it.
    unsafe { lock.unlock_fair(()) };
    assert!(lock.try_lock().is_none() && word::is_handed_to(word(lock), id(1)));
    one.end();
    // SAFETY: thread 1 has it.
    as_thread(1, || unsafe { lock.unlock_fair(()) });
    assert_eq!(word(lock), 0, "nobody waits");
}

#[test]
fn bump_serves_a_sleeper_and_costs_nothing_without_one() {
    let lock = held::<Outside>();
    // SAFETY: thread 0 has it.
    unsafe { lock.bump(()) };
    assert!(is_owner(0, lock));
    let one = sleeper(1, lock);
    at(Point::Wait, move || {
        one.end();
        as_thread(1, || unlock(lock));
    });
    // SAFETY: thread 0 has it.
    unsafe { lock.bump(()) };
    ends_with(0, lock);
}

/// `wait_without_node`, and the reserved name.
#[test]
fn a_thread_without_a_slot_backs_off_between_attempts() {
    let lock = held::<Outside>();
    let soon = Toy::now().plus_nanos(1_000_000);
    assert!(as_thread(SLOTS, || lock.lock_until(soon)).is_none());
    assert!(Toy::now() >= soon);
    let before = halts();
    at(Point::Halt, move || as_thread(0, || unlock(lock)));
    as_thread(SLOTS, || lock.lock());
    assert_eq!((halts() - before, kicks()), (1, 0));
    assert!(lock.is_locked() && !is_owner(0, lock));
    let one = sleeper(1, lock);
    as_thread(SLOTS, || unlock(lock));
    one.end();
    ends_with(1, lock);
}

#[test]
fn a_thread_whose_nodes_are_all_in_use_backs_off_too() {
    let lock = held::<Outside>();
    as_thread(1, || {
        let guards: Vec<_> = (0..CONTEXTS)
            .map(|_| NodeGuard::<Toy>::new().unwrap())
            .collect();
        at(Point::Halt, move || as_thread(0, || unlock(lock)));
        lock.lock();
        drop(guards);
    });
    ends_with(1, lock);
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "unlock of a mutex that is free")]
fn an_unlock_of_a_free_mutex_panics() {
    unlock(leak::<Outside>());
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "by a thread that does not hold it")]
fn an_unlock_by_another_thread_panics() {
    let lock = held::<Outside>();
    as_thread(1, || unlock(lock));
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "it would wait for ever")]
fn a_thread_that_locks_its_own_mutex_panics() {
    held::<Outside>().lock();
}

/// Taking the mutex clears PICKUP; else its unlock would be taken for another thread's.
#[test]
fn a_mutex_that_was_handed_off_is_owned_like_any_other() {
    let lock = held::<Outside>();
    let one = sleeper(1, lock);
    // SAFETY: thread 0 has it.
    unsafe { lock.unlock_fair(()) };
    one.end();
    assert_eq!(word(lock) & (PICKUP | FLAGS), 0);
    ends_with(1, lock);
}
