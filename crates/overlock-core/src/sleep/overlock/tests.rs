//! Thread 0 runs the script and holds the lock at first; the others come to it. Each test of a race
//! names the code that prevents it.

mod freed;
mod handoff;
mod turns;

use core::sync::atomic::AtomicBool;
use std::boxed::Box;

use super::*;
use crate::toy::stage::{Actor, actor};
use crate::toy::{Point, Toy, as_thread, be_realtime, halts, kicks, left};

type Lock = &'static Overlock<Toy>;

/// How long a waiter spins on this platform.
const SPIN_NS: u64 = 5_000;

/// Longer than one spin before a sleep, including the distance between its last polls, and shorter
/// than two.
const A_WHILE: u64 = 2 * SPIN_NS;

fn leak() -> Lock {
    Box::leak(Box::new(Overlock::new()))
}

/// A lock that thread 0 holds.
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

/// Thread `thread` sleeps for the lock, and gives up instead of sleeping again.
fn timed_sleeper(thread: usize, lock: Lock) -> Actor {
    let actor = actor(thread, move || {
        let until = Toy::now().plus_nanos(A_WHILE);
        assert!(lock.lock_until(until).is_none());
    });
    actor.sleep();
    actor
}

/// Thread `thread` gets the lock, and unlocks.
fn passes_on(thread: usize, waiter: Actor, lock: Lock) {
    waiter.end();
    as_thread(thread, || unlock(lock));
}

/// Ends the wait of a counted thread. Returns whether it has the lock all the same.
fn gives_up(lock: Lock) -> bool {
    let mut waiter = Contender {
        since: 0,
        counted: true,
    };
    let gone = lock.sleep(&mut waiter, &Limit::until(Toy::now()));
    gone.expect("its time is over")
}

/// The word without what is for turns.
fn word(lock: Lock) -> u32 {
    lock.word.load(Relaxed) & !(TIGHT | PARITY)
}

fn has(lock: Lock, bits: u32) -> bool {
    lock.word.load(Relaxed) & bits == bits
}

fn sleepers(lock: Lock) -> u32 {
    word(lock) / SLEEPER
}

/// The owner unlocks, and no waiter or flag is left.
fn ends(lock: Lock) {
    unlock(lock);
    assert_eq!(word(lock), 0);
    let before = kicks();
    lock.lock();
    unlock(lock);
    assert!(word(lock) == 0 && kicks() == before && left() == 0);
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
    assert!(!Overlock::<Toy>::new().is_locked());
}

#[test]
fn it_is_contended_from_the_first_sleeper_on() {
    let lock = held();
    assert!(!lock.is_contended());
    for flags in [WAKE, HANDOFF, TIGHT, PARITY, TIGHT | PARITY] {
        lock.word.store(LOCKED | flags, Relaxed);
        assert!(!lock.is_contended(), "{flags:#x}");
    }
    for sleepers in [1, 63, 64, 5_000, (1 << 14) - 1, (1 << 14) + 1] {
        lock.word
            .store(LOCKED | WAKE | (sleepers * SLEEPER), Relaxed);
        assert!(lock.is_contended(), "{sleepers}");
    }
}

#[test]
fn a_spinning_waiter_takes_a_free_lock_and_is_never_counted() {
    let lock = held();
    let one = locker(1, lock);
    one.to(Point::Wait);
    unlock(lock);
    one.end();
    assert_eq!(word(lock), LOCKED);
    assert_eq!((kicks(), halts()), (0, 0));
    ends(lock);
}

/// Fails where a watcher is told of each wait, or of none, or only after a sleep.
#[test]
fn a_watched_waiter_says_that_it_sleeps_before_it_does() {
    let told: &AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let lock = held();
    let watched = move |thread| {
        actor(thread, move || {
            lock.lock_watched(|| told.store(true, Relaxed))
        })
    };
    let spins = watched(1);
    spins.to(Point::Wait);
    unlock(lock);
    spins.end();
    assert!(!told.load(Relaxed));
    let sleeps = watched(2);
    sleeps.to(Point::Halt);
    assert!(told.load(Relaxed));
    unlock(lock);
    passes_on(2, sleeps, lock);
    assert_eq!(left(), 0);
}

/// The check of `may_take` in `sleep`: an unlock between the spin and the sleep has woken nobody.
#[test]
fn a_newcomer_does_not_sleep_beside_a_free_lock() {
    let lock = leak();
    let one = actor(1, move || {
        let mut new = Contender {
            since: Toy::ticks(),
            counted: false,
        };
        assert_eq!(lock.sleep(&mut new, &Limit::NONE), None);
    });
    one.end();
}

/// The halt in `sleep` expects what the join wrote.
#[test]
fn a_release_between_the_join_and_the_sleep_makes_the_sleep_fail() {
    let lock = held();
    let one = locker(1, lock);
    one.to(Point::Halt);
    assert!(has(lock, LOCKED | WAKE) && sleepers(lock) == 1);
    unlock(lock);
    one.end();
    assert!(lock.is_locked() && !lock.is_contended());
    ends(lock);
}

/// `!(LOCKED | WAKE)` in `unlock_slow`, and the kick behind it.
#[test]
fn no_sleeper_is_woken_while_a_woken_one_is_on_its_way() {
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

/// WAKE in `Contender::leave`, at an acquisition.
#[test]
fn a_woken_sleeper_sets_wake_as_it_acquires() {
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

/// `word | WAKE` in `Contender::join`.
#[test]
fn a_sleeper_woken_in_vain_sets_wake_before_it_sleeps_again() {
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

/// WAKE in `Contender::leave`, in `sleep`.
#[test]
fn a_woken_sleeper_sets_wake_as_it_gives_up() {
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

/// The check of `may_take` in `sleep`: the release has kicked the leaver and nobody else.
#[test]
fn a_waiter_that_gives_up_takes_a_free_lock() {
    let lock = held();
    let acquired = actor(1, move || {
        assert!(gives_up(lock));
    });
    lock.word.fetch_add(2 * SLEEPER, Relaxed);
    unlock(lock);
    acquired.end();
    assert!(has(lock, LOCKED | WAKE) && sleepers(lock) == 1);
}

#[test]
fn the_last_counted_waiter_that_gives_up_leaves_nothing_to_wake() {
    let lock = held();
    let one = timed_sleeper(1, lock);
    one.startle();
    one.end();
    assert_eq!(word(lock), LOCKED);
    ends(lock);
}

#[test]
fn a_waiter_that_gives_up_uncounted_changes_nothing() {
    let lock = held();
    assert!(lock.lock_until(Toy::now().plus_nanos(10)).is_none());
    assert_eq!(word(lock), LOCKED);
    ends(lock);
}

/// WAKE in `Contender::join`. Without it the second waiter, which joins while the first is on its
/// way and is slow to sleep, sleeps on a word without WAKE: it has missed its kick, and finds the
/// word as it wrote it.
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
    passes_on(1, one, lock); // kicks nobody: the second does not sleep yet
    lock.lock();
    let three = sleeper(3, lock);
    assert_eq!(word(lock), joined);
    slow.sleep();
    unlock(lock);
    assert!(slow.is_kicked() || three.is_kicked(), "lost wake-up");
    passes_on(2, slow, lock);
    three.end();
    ends(lock);
}

/// `+ SLEEPER` in `adopt`.
#[test]
fn an_unlock_wakes_an_adopted_thread() {
    let lock = held();
    let one = actor(1, move || lock.lock_adopted());
    assert!(lock.adopt(NodeId::new(1, 0), || ()));
    assert!(has(lock, WAKE) && sleepers(lock) == 1);
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

/// The node of a thread that says that it sleeps.
fn asleep(number: usize) -> NodeId {
    let id = NodeId::new(number, 0);
    id.node::<Toy>().kicks.fetch_or(wait_list::ASLEEP, Relaxed);
    id
}

/// The check at the end of `adopt`: the lock is free by then, or held by a newcomer.
#[test]
fn an_adopter_kicks_after_an_unlock_that_came_before_the_requeue() {
    for is_taken in [false, true] {
        let lock = held();
        let before = kicks();
        let adopted = lock.adopt(asleep(1), move || {
            unlock(lock);
            assert!(!is_taken || lock.try_lock().is_some());
        });
        assert!(adopted);
        // The unlock's, for nobody; the requeue's, which does without on this platform; the
        // adopter's.
        assert_eq!(kicks(), before + 3);
    }
}

/// The same where the lock is handed off: nobody unlocks it before it is picked up.
#[test]
fn an_adopter_kicks_after_a_fair_unlock_that_came_before_the_requeue() {
    let lock = held();
    let before = kicks();
    let adopted = lock.adopt(asleep(1), move || {
        unlock_fair(lock);
        assert!(has(lock, HANDOFF) && !lock.is_locked());
        assert!(!lock.adopt(asleep(2), || ()), "nobody owns it");
    });
    assert!(adopted);
    // The unlock's, for nobody; the requeue's, which does without on this platform; the adopter's.
    assert_eq!(kicks(), before + 3);
}

/// As many threads as Linux has numbers for, less the owner.
#[test]
fn all_threads_of_linux_are_counted_and_woken() {
    const THREADS: u32 = 4 << 20;
    let lock = held();
    lock.word.fetch_add((THREADS - 2) * SLEEPER, Relaxed);
    let last = sleeper(1, lock);
    assert!(sleepers(lock) == THREADS - 1 && has(lock, LOCKED | WAKE));
    unlock(lock);
    assert!(kicks() == 1 && !has(lock, WAKE));
    last.end();
    assert!(sleepers(lock) == THREADS - 2 && has(lock, LOCKED | WAKE));
    unlock(lock);
    assert_eq!(kicks(), 2);
}

/// A waiter that spins may have no CPU, so it stands for nobody.
#[test]
fn an_unlock_wakes_a_sleeper_although_a_waiter_spins() {
    let lock = held();
    let one = sleeper(1, lock);
    let two = locker(2, lock);
    for _ in 0..POLLS {
        two.to(Point::Wait);
    }
    unlock(lock);
    assert!(one.is_kicked());
    passes_on(1, one, lock);
    two.end();
    ends(lock);
}

#[test]
fn after_a_fork_only_the_owner_is_left() {
    let lock = held();
    let states = [
        (LOCKED | WAKE | HANDOFF | (3 * SLEEPER), LOCKED),
        (HANDOFF | SLEEPER, 0),
    ];
    for (before, after) in states {
        lock.word.store(before, Relaxed);
        // SAFETY: there is no other thread.
        unsafe { lock.forget_waiters() };
        assert_eq!(word(lock), after);
    }
}

/// `refusals` in `sleep`: the word changes faster than the kernel compares it.
#[test]
fn a_waiter_whose_sleeps_are_refused_leaves_the_word_alone_for_a_while() {
    for (refusals, is_realtime, naps) in [(1, false, false), (2, false, true), (2, true, false)] {
        let lock = held();
        let one = actor(1, move || {
            if is_realtime {
                be_realtime();
            }
            lock.lock();
        });
        for _ in 0..refusals {
            one.to(Point::Halt);
            lock.word.fetch_xor(PARITY, Relaxed);
        }
        one.sleep();
        unlock(lock);
        assert_eq!(!one.is_kicked(), naps, "it does not sleep on the word");
        one.startle();
        one.end();
        assert!(lock.is_locked());
        ends(lock);
    }
}

/// `is_held` in `sleep`.
#[test]
fn a_waiter_whose_sleeps_are_refused_takes_the_lock_where_it_is_free() {
    let lock = held();
    let one = locker(1, lock);
    one.to(Point::Halt);
    lock.word.fetch_xor(PARITY, Relaxed);
    one.to(Point::Halt);
    unlock(lock);
    one.end();
    assert_eq!(word(lock), LOCKED);
    ends(lock);
}
