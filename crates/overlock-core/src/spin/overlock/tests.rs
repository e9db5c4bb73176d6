//! Thread 0 holds the lock at first; the others come to it. Each test of a race names what prevents it.

mod deferred;
mod fair;
mod fork;
mod hand_over;
mod looks;
mod marked;
mod release;
mod turns;

use core::sync::atomic::Ordering::Release;
use std::boxed::Box;

use super::queue::{CALLED, CLAIMING};
use super::sleep::{Next, Sleeper};
use super::*;
use crate::node::NodeId;
use crate::platform::{Instant, Spin};
use crate::sleep::cancel::CancelToken;
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
fn ended<Y: Policy>(lock: Lock<Y>, id: NodeId) {
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

/// What a sleeper that has failed before asks for when it fails again: `passed` acquisitions later, the last of them on `cpu`, while it runs on CPU 0.
fn request_of_one_that_fails_again(passed: u32, cpu: u32, limit: &Limit<'_, Toy>) -> u8 {
    let lock = leak::<OwnerCpu>();
    let id = NodeId::new(1, 0);
    let mut sleeper = woken();
    let mut fails = |limit| {
        let next = as_thread(1, || lock.fall_back(id, &mut sleeper, limit));
        assert!(matches!(next, Next::Again(_, false)));
        as_thread(1, || lock.queue().unlink(id));
    };
    crate::toy::on_cpu(cpu);
    lock.lock();
    crate::toy::on_cpu(0);
    fails(&Limit::NONE);
    as_thread(1, || ended(lock, id));
    lock.done.store(lock.done.load(Relaxed) + passed, Relaxed);
    fails(limit);
    let request = lock.request();
    as_thread(1, || ended(lock, id));
    unlock(lock);
    assert_clean(lock);
    request
}

/// Fails where the owner's next unlock calls a sleeper that is passed again and again: one wake-up in vain for each.
#[test]
fn a_sleeper_that_owners_without_a_cpu_pass_again_and_again_comes_by_its_timer() {
    let later = Limit::until(Instant::from_nanos(u64::MAX - 1));
    let token = CancelToken::new();
    let cancellable = Limit {
        cancel: Some(&token),
        ..Limit::NONE
    };
    let request = request_of_one_that_fails_again;
    assert_eq!(request(4, 0, &Limit::NONE), NOTHING);
    assert_eq!(request(3, 0, &Limit::NONE), KICK, "it was passed 3 times");
    assert_eq!(request(4, 1, &Limit::NONE), KICK, "the owner may run");
    assert_eq!(request(4, 0, &later), KICK, "it may give up first");
    assert_eq!(request(4, 0, &cancellable), KICK, "the same");
}

/// I6: somebody else's request stands.
#[test]
fn a_sleeper_that_comes_by_its_timer_leaves_the_request_of_another_alone() {
    let lock = leak::<OwnerCpu>();
    let [one, other] = [1, 2].map(|thread| NodeId::new(thread, 0));
    let mut sleeper = woken();
    crate::toy::on_cpu(0);
    lock.lock();
    as_thread(1, || lock.fall_back(one, &mut sleeper, &Limit::NONE));
    as_thread(1, || lock.queue().unlink(one));
    let asked = as_thread(2, || lock.queue().ask_for_hand_over(other, CALLED));
    assert!(asked);
    lock.done.store(lock.done.load(Relaxed) + 4, Relaxed);
    as_thread(1, || lock.fall_back(one, &mut sleeper, &Limit::NONE));
    assert!(Step::AgainLater.was_taken());
    assert_eq!(lock.request(), HAND_OVER);
    as_thread(1, || lock.queue().unlink(one));
    as_thread(2, || ended(lock, other));
    unlock(lock);
    assert_clean(lock);
}

/// Fails where one that is about to claim leaves no request: its next sleep would be one more for its bound.
#[test]
fn a_sleeper_that_is_about_to_claim_is_called() {
    let lock = leak::<OwnerCpu>();
    let id = NodeId::new(1, 0);
    let mut sleeper = woken();
    crate::toy::on_cpu(0);
    lock.lock();
    as_thread(1, || lock.fall_back(id, &mut sleeper, &Limit::NONE));
    as_thread(1, || lock.queue().unlink(id));
    lock.done.store(lock.done.load(Relaxed) + 4, Relaxed);
    Toy::pause(10_000_001);
    let next = as_thread(1, || lock.fall_back(id, &mut sleeper, &Limit::NONE));
    assert!(matches!(next, Next::Again(_, true)));
    assert_eq!(lock.request(), KICK);
    as_thread(1, || {
        lock.queue().unlink(id);
        ended(lock, id);
    });
    unlock(lock);
    assert_clean(lock);
}

/// Fails where one that others have passed goes on to wake by its timer in a section that is long.
#[test]
fn a_sleeper_that_was_passed_is_called_when_nobody_passes_it_any_more() {
    let lock = leak::<OwnerCpu>();
    let id = NodeId::new(1, 0);
    let mut sleeper = woken();
    crate::toy::on_cpu(0);
    lock.lock();
    for (passed, request) in [(0, KICK), (4, NOTHING), (0, KICK), (1, NOTHING)] {
        lock.done.store(lock.done.load(Relaxed) + passed, Relaxed);
        as_thread(1, || {
            lock.fall_back(id, &mut sleeper, &Limit::NONE);
            assert_eq!(lock.request(), request, "after {passed} more");
            lock.queue().unlink(id);
        });
    }
    as_thread(1, || ended(lock, id));
    unlock(lock);
    assert_clean(lock);
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
