//! Thread 0 holds the lock at first; the others come to it. Each test of a race names what prevents it.

mod deferred;
mod fair;
mod marked;
mod turns;

use core::sync::atomic::Ordering::Release;
use std::boxed::Box;

use super::queue::{CALLED, CLAIMING};
use super::sleep::{Next, Sleeper};
use super::*;
use crate::node::NodeId;
use crate::platform::{Instant, Spin};
use crate::toy::stage::{Actor, actor};
use crate::toy::{Point, SLOTS, Toy, as_thread, at, halts, kicks, left};

type Lock<Y = Recommended> = &'static Overlock<Toy, Y>;

fn leak<Y: Policy>() -> Lock<Y> {
    Box::leak(Box::new(Overlock::new()))
}

fn unlock<Y: Policy>(lock: Lock<Y>) {
    // SAFETY: each test unlocks what it has locked.
    unsafe { lock.unlock(()) }
}

fn locker(thread: usize, lock: Lock) -> Actor {
    actor(thread, move || lock.lock())
}

/// `lock` is free and nothing is left of anybody.
fn assert_clean<Y: Policy>(lock: Lock<Y>) {
    assert!(!lock.is_locked() && !lock.is_contended());
    assert_eq!(lock.sleepers.last(), None);
    assert_eq!(lock.request(), NOTHING);
    assert_eq!(lock.kicks().load(Relaxed), 0, "still counted (I5)");
    assert!(!lock.guard.is_held());
    assert_eq!(left(), 0);
}

/// Thread `thread` has woken, and has asked for the hand-over.
fn choose(lock: Lock, thread: usize) -> NodeId {
    let id = NodeId::new(thread, 0);
    assert!(lock.queue().ask_for_hand_over(id, CALLED));
    id
}

/// A sleeper that woke just now by its timer.
fn woken() -> Sleeper {
    Sleeper::new(Toy::now(), 0, 20_000)
}

fn learned(lock: Lock) -> &'static Learned<Toy> {
    Learned::about(core::ptr::from_ref(lock).addr()).unwrap()
}

/// Nobody has asked for anything any more.
fn ended(lock: Lock, id: NodeId) {
    assert!(lock.queue().ask_for(NOTHING, id));
}

#[test]
fn sixteen_bytes_and_one_on_the_fast_path() {
    assert_eq!(size_of::<Overlock<Toy>>(), 16);
    let lock = leak::<Recommended>();
    lock.lock();
    assert!(lock.is_locked() && !lock.is_contended() && lock.try_lock().is_none());
    unlock(lock);
    assert!(lock.try_lock().is_some());
    unlock(lock);
    assert_clean(lock);
    assert_eq!((kicks(), halts()), (0, 0));
}

/// `count` in `take` and in `take_handed`.
#[test]
fn acquisitions_are_counted_where_something_is_learned_from_that() {
    let lock = leak::<Recommended>();
    for _ in 0..3 {
        lock.lock();
        unlock(lock);
    }
    let id = choose(lock, 1);
    lock.locked.store(HANDED, Relaxed);
    assert!(lock.take_handed(id));
    assert_eq!(lock.done.load(Relaxed), 4);
    let fixed = leak::<Fixed>();
    fixed.lock();
    assert_eq!(fixed.done.load(Relaxed), 0);
}

/// OL prevents it, in both forms: the unlocker has loaded `kick` before it was set, and stores only now.
#[test]
fn a_release_that_did_not_see_the_announcement_is_seen_by_the_last_look() {
    fn look<Y: Policy>() {
        let lock = leak::<Y>();
        lock.lock();
        at(Point::Light, || lock.locked.store(FREE, Release));
        as_thread(1, || lock.lock());
        assert_eq!(halts(), 0, "slept beside a free lock");
        as_thread(1, || unlock(lock));
        assert_clean(lock);
    }
    look::<Recommended>();
    look::<Exchange>();
}

/// The second half of `brief_look`: the store comes a little later than the look.
#[test]
fn a_release_is_seen_that_leaves_the_store_buffer_a_little_later() {
    let lock = leak::<Recommended>();
    lock.lock();
    at(Point::Light, || {
        at(Point::Wait, || lock.locked.store(FREE, Release));
    });
    as_thread(1, || lock.lock());
    assert_eq!(halts(), 0, "slept beside a free lock");
    as_thread(1, || unlock(lock));
    assert_clean(lock);
}

/// I2's timer, and the look at `locked` in `halt`: without it the sleeper waits for an unlock that nobody owes it.
#[test]
fn a_release_that_comes_later_still_costs_a_sleep_and_no_more() {
    let lock = leak::<Recommended>();
    lock.lock();
    at(Point::Halt, || lock.locked.store(FREE, Release));
    let before = Toy::now();
    as_thread(1, || lock.lock());
    assert!(Toy::now().nanos_since(before) < 2 * TURN_NS);
    assert_eq!((halts(), kicks()), (1, 0));
    as_thread(1, || unlock(lock));
    assert_clean(lock);
}

/// The same for the exchange form, which needs no heavy barrier.
#[test]
fn the_exchange_form_runs_no_heavy_barrier() {
    let lock = leak::<Exchange>();
    lock.lock();
    at(Point::Heavy, || panic!("a barrier nobody needs"));
    at(Point::Halt, || as_thread(0, || unlock(lock)));
    as_thread(1, || lock.lock());
    assert_eq!(left(), 1);
    assert_eq!(kicks(), 1);
}

/// The node's `state` is the latch: `choose` changes it before the kick.
#[test]
fn a_kick_before_the_halt_makes_it_return() {
    let lock = leak::<Recommended>();
    lock.lock();
    at(Point::Halt, || as_thread(0, || unlock(lock)));
    as_thread(1, || lock.lock());
    assert_eq!((kicks(), halts()), (1, 0));
    as_thread(1, || unlock(lock));
    assert_clean(lock);
}

#[test]
fn sleepers_are_woken_in_the_order_of_their_arrival_one_an_unlock() {
    let lock = leak::<Recommended>();
    lock.lock();
    let [one, two, three] = [1, 2, 3].map(|thread| locker(thread, lock));
    one.to(Point::Light);
    one.sleep();
    // `kick` is set and stays so: the later ones need no look.
    two.sleep_before(Point::Light);
    three.sleep_before(Point::Light);
    assert!(lock.is_contended());
    // The lock is not busy.
    Toy::pause(10_000_000);
    for calls in 1..=3 {
        unlock(lock);
        assert_eq!(kicks(), calls);
        assert!(lock.try_lock().is_some(), "a running thread may pass");
    }
    unlock(lock);
    assert_eq!(kicks(), 3, "nobody is left to call");
    for woken in [one, two, three] {
        woken.end();
        unlock(lock);
    }
    assert_clean(lock);
}

/// `is_busy_since` in `call_first`, and `set_awake` in `settle`: sleepers of a busy lock come one at a time.
#[test]
fn the_next_sleeper_of_a_busy_lock_is_called_when_the_one_before_has_come() {
    let lock = leak::<Recommended>();
    lock.lock();
    let [one, two] = [1, 2].map(|thread| {
        let sleeper = locker(thread, lock);
        sleeper.sleep();
        sleeper
    });
    let done = lock.done.load(Relaxed);
    lock.done.store(done + (1 << 30), Relaxed);
    unlock(lock);
    lock.lock();
    unlock(lock);
    assert_eq!(kicks(), 1);
    // Else the sleeper comes late, as far as it knows, and leaves the other one to its timer.
    lock.done.store(done, Relaxed);
    one.end();
    unlock(lock);
    assert_eq!(kicks(), 2);
    two.end();
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

#[test]
fn a_sleeper_whose_time_is_over_sleeps_on_while_nobody_has_unlocked() {
    let lock = leak::<Recommended>();
    lock.lock();
    at(Point::Halt, move || {
        let before = Toy::now();
        at(Point::Halt, move || {
            let slept = Toy::now().nanos_since(before);
            assert!(slept <= TURN_NS, "an attempt in vain");
            as_thread(0, || unlock(lock));
        });
    });
    as_thread(1, || lock.lock());
    assert_eq!((kicks(), halts(), left()), (1, 1, 0));
}

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

/// `LONGEST_NS` in `halt`: each unlock calls the first again, which fails, and those behind it would never try. With the `max` there, a
/// lock that is held for long has few wake-ups.
#[test]
fn a_sleeper_tries_after_a_while_though_others_are_called_first() {
    let lock = leak::<Recommended>();
    lock.lock();
    let before = Toy::now();
    let halted = &*Box::leak(Box::new(core::cell::Cell::new(0)));
    fn count(halted: &'static core::cell::Cell<u32>) {
        halted.set(halted.get() + 1);
        at(Point::Halt, move || count(halted));
    }
    count(halted);
    as_thread(1, || {
        let id = NodeId::new(1, 0);
        let mut sleeper = woken();
        let due = lock.queue().push_back(id, Toy::now());
        lock.queue().set_kick(KICK);
        assert!(lock.halt(id, &mut sleeper, due, &Limit::NONE));
    });
    let slept = Toy::now().nanos_since(before);
    assert!((16_000_000..16_001_000).contains(&slept), "{slept}");
    assert!(halted.get() < 10, "{}", halted.get());
}

#[test]
fn a_called_sleeper_that_fails_is_called_again() {
    let lock = leak::<Recommended>();
    lock.lock();
    let one = locker(1, lock);
    one.sleep();
    for calls in 1..=3 {
        unlock(lock);
        assert_eq!(kicks(), calls);
        lock.lock();
        one.sleep();
    }
    unlock(lock);
    one.end();
    unlock(lock);
    assert_clean(lock);
}

/// OK and OL once more: the release that its request for the hand-over did not reach.
#[test]
fn a_sleeper_that_fails_takes_a_last_look_before_it_sleeps_again() {
    let lock = leak::<Recommended>();
    lock.lock();
    let one = locker(1, lock);
    one.sleep();
    unlock(lock);
    lock.lock();
    one.to(Point::Light);
    lock.locked.store(FREE, Release);
    one.end();
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

#[test]
fn a_waiter_gives_up_at_its_deadline_and_not_before() {
    let lock = leak::<Recommended>();
    lock.lock();
    for wait in [0, 1_000, 100_000, 10_000_000] {
        let deadline = Toy::now().plus_nanos(wait);
        assert!(as_thread(1, || lock.lock_until(deadline)).is_none());
        assert!(Toy::now() >= deadline);
        assert!(!lock.is_contended());
        assert_eq!(lock.request(), NOTHING, "I5");
    }
    unlock(lock);
    assert_eq!(kicks(), 0);
    assert!(
        lock.lock_until(Instant::from_nanos(0)).is_some(),
        "tries once"
    );
    unlock(lock);
    assert_clean(lock);
}

/// `pass_on` prevents it: the one that was kicked leaves, and the lock is free, and nobody would wake the next.
#[test]
fn a_chosen_waiter_that_gives_up_passes_its_kick_on() {
    let lock = leak::<Recommended>();
    lock.lock();
    let second = locker(2, lock);
    at(Point::Halt, move || {
        second.sleep();
        as_thread(0, || {
            unlock(lock); // chooses thread 1
            lock.lock();
        });
        at(Point::Heavy, || lock.locked.store(FREE, Release));
        at(Point::Kick, move || {
            // The kick is under way to the second one.
            let second = core::cell::Cell::new(Some(second));
            at(Point::Seen, move || drop(second.take()));
        });
    });
    let deadline = Toy::now().plus_nanos(3_000);
    assert!(as_thread(1, || lock.lock_until(deadline)).is_none());
    assert_eq!(kicks(), 2, "one for each of the two sleepers");
    let second = NodeId::new(2, 0).node::<Toy>();
    assert_eq!(second.state.load(Relaxed), CALLED);
}

#[test]
fn a_lock_with_the_same_entry_in_the_kick_table_costs_a_look_and_no_kick() {
    let [sleepy, other] = loop {
        let pair = [leak::<Recommended>(), leak::<Recommended>()];
        if core::ptr::eq(pair[0].kicks(), pair[1].kicks()) {
            break pair;
        }
    };
    sleepy.lock();
    let one = locker(1, sleepy);
    one.sleep();
    other.lock();
    unlock(other);
    assert_eq!(kicks(), 0);
    unlock(sleepy);
    one.end();
    unlock(sleepy);
    assert_clean(sleepy);
}

#[test]
fn a_thread_without_a_node_gets_the_lock_too() {
    let lock = leak::<Recommended>();
    lock.lock();
    at(Point::Halt, || as_thread(0, || unlock(lock)));
    as_thread(SLOTS, || lock.lock());
    unlock(lock);
    assert_clean(lock);
    lock.lock();
    let deadline = Toy::now().plus_nanos(200_000);
    assert!(as_thread(SLOTS, || lock.lock_until(deadline)).is_none());
    unlock(lock);
    assert_clean(lock);
}

#[test]
fn with_the_owners_cpu_known_a_waiter_on_it_does_not_spin() {
    let lock = leak::<OwnerCpu>();
    lock.lock();
    assert_eq!(lock.locked.load(Relaxed), 1, "CPU 0");
    crate::toy::on_cpu(0);
    at(Point::Halt, || as_thread(0, || unlock(lock)));
    at(Point::Wait, || panic!("a spin that helps nobody"));
    as_thread(1, || lock.lock());
    assert_eq!(left(), 1, "the spin that did not happen");
}

/// An unknown CPU's number is the largest there is: one more is that of a free lock.
#[test]
fn an_owner_whose_cpu_is_not_known_owns_the_lock() {
    for (cpu, locked) in [
        (0, 1),
        (252, 253),
        (253, HELD),
        (254, HELD),
        (u32::MAX, HELD),
    ] {
        let lock = leak::<OwnerCpu>();
        crate::toy::on_cpu(cpu);
        lock.lock();
        assert_eq!(lock.locked.load(Relaxed), locked);
        assert!(lock.try_lock().is_none());
    }
}

#[test]
fn a_handler_can_wait_for_another_lock_while_its_thread_sleeps_for_one() {
    let [outer, inner] = [leak::<Recommended>(), leak::<Recommended>()];
    outer.lock();
    inner.lock();
    let one = locker(1, outer);
    one.sleep();
    one.interrupt_to(Point::Light, || {
        inner.lock();
        unlock(inner);
    });
    unlock(inner);
    one.end_handler();
    unlock(outer);
    one.end();
    assert!(!inner.is_locked() && outer.is_locked());
}
