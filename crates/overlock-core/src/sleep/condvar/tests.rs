//! Thread 0 runs the script; the actors are threads 1 to 7.

use std::boxed::Box;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

mod locks;
mod requeue;
mod spins;

use super::*;
use crate::links::BACKOFF_SLEEP_NS;
use crate::raw::{ConstLock, forward};
use crate::sleep::Overlock;
use crate::toy::stage::{Actor, actor};
use crate::toy::{Point, SLOTS, Toy, as_thread, at, first_spins, halts, kicks, left, set_rank};
use locks::{Loud, WithNode};

struct Scene {
    condvar: Condvar<Toy>,
    lock: Loud,
    token: CancelToken<Toy>,
    /// The threads that are back, and whether they were notified.
    back: Mutex<Vec<(usize, bool)>>,
}

type Stage = &'static Scene;

fn stage() -> Stage {
    Box::leak(Box::new(Scene {
        condvar: Condvar::new(),
        lock: Loud::INIT,
        token: CancelToken::new(),
        back: Mutex::default(),
    }))
}

impl Scene {
    fn unlock(&self) {
        // SAFETY: each test unlocks what it has locked.
        unsafe { self.lock.unlock(()) }
    }

    fn wait(&self, number: usize, deadline: Option<Deadline>, cancel: bool) {
        let cancel = cancel.then_some(&self.token);
        // SAFETY: the callers hold the lock.
        let ((), notified) = unsafe { self.condvar.wait_limited(&self.lock, (), deadline, cancel) };
        assert!(self.lock.is_locked());
        self.back.lock().unwrap().push((number, notified));
    }

    fn back(&self) -> Vec<(usize, bool)> {
        core::mem::take(&mut *self.back.lock().unwrap())
    }

    fn waiter(
        &'static self,
        number: usize,
        limit: impl FnOnce() -> (Option<Deadline>, bool) + Send + 'static,
    ) -> Actor {
        actor(number, move || {
            let (deadline, cancel) = limit();
            self.lock.lock();
            self.wait(number, deadline, cancel);
            // The owner again; the next one is woken.
            Toy::heavy_barrier();
            self.unlock();
        })
    }

    /// An actor that waits without a limit, asleep.
    fn sleeper(&'static self, number: usize) -> Actor {
        let part = self.waiter(number, || (None, false));
        part.sleep();
        part
    }

    /// An actor whose deadline passes in its first sleep.
    fn timed(&'static self, number: usize) -> Actor {
        let part = self.waiter(number, || (Some(Toy::now().plus_nanos(2).into()), false));
        part.sleep();
        part.startle();
        part
    }
}

/// Whether thread `number` was woken.
fn woken(number: usize) -> bool {
    state(number) == WOKEN
}

fn state(number: usize) -> u32 {
    NodeId::new(number, 0).node::<Toy>().state.load(Relaxed)
}

/// I1. Fails where `wait_limited` releases the lock before it joins the list.
#[test]
fn the_next_owner_finds_the_waiter_in_the_list() {
    let scene = stage();
    let waiter = scene.waiter(1, || (None, false));
    waiter.to(Point::Light); // It has just released the lock.
    scene.lock.lock();
    assert!(scene.condvar.notify_one());
    scene.unlock();
    waiter.end();
    assert_eq!(scene.back(), [(1, true)]);
}

/// Fails where `detach` does not begin with the first, or does not stop at `most`.
#[test]
fn each_notification_wakes_the_waiter_that_came_first() {
    let scene = stage();
    assert!(!scene.condvar.notify_one());
    let sleepers = [1, 2, 3].map(|number| scene.sleeper(number));
    for (index, sleeper) in sleepers.into_iter().enumerate() {
        assert!(scene.condvar.is_in_use());
        assert!(scene.condvar.notify_one());
        sleeper.end();
        assert_eq!(scene.back(), [(index + 1, true)]);
    }
    assert!(!scene.condvar.notify_one() && scene.condvar.notify_all() == 0);
    assert!(!scene.condvar.is_in_use());
}

/// Fails where a notification goes to a waiter that a jump may have left, or where that waits on if
/// it has not left.
#[test]
fn nobody_notifies_a_waiter_that_has_jumped() {
    let scene = stage();
    let [one, two] = [1, 2].map(|number| scene.sleeper(number));
    for _ in 0..2 {
        jump_out::<Toy>(NodeId::new(1, 0));
    }
    assert!(scene.condvar.notify_one());
    two.end();
    assert_eq!(scene.back(), [(2, true)]);
    one.end();
    assert_eq!(scene.back(), [(1, false)]);
}

/// Fails where those behind a woken waiter depend on it after its jump.
#[test]
fn a_woken_waiter_that_jumps_wakes_its_successors() {
    let scene = stage();
    let sleepers = [1, 2, 3].map(|number| scene.sleeper(number));
    scene.lock.lock();
    assert_eq!(scene.condvar.notify_all(), 3);
    assert!(woken(1) && woken(2) && !woken(3));
    jump_out::<Toy>(NodeId::new(1, 0));
    assert!(woken(3));
    scene.unlock();
    for sleeper in sleepers {
        sleeper.end();
    }
    let mut back = scene.back();
    back.sort_unstable();
    assert_eq!(back, [1, 2, 3].map(|number| (number, true)));
}

/// Fails where a waiter that is notified and not woken yet takes its chain along as it jumps.
#[test]
fn a_notified_waiter_that_jumps_is_passed_by() {
    let scene = stage();
    let [one, two, three, four, five] = [1, 2, 3, 4, 5].map(|number| scene.sleeper(number));
    scene.lock.lock();
    assert_eq!(scene.condvar.notify_all(), 5);
    for _ in 0..2 {
        jump_out::<Toy>(NodeId::new(3, 0));
    }
    assert!(woken(1) && woken(2) && !woken(3) && !woken(5));
    scene.unlock();
    one.end();
    assert!(woken(5) && state(3) == PASSED);
    // It has not left after all.
    for part in [two, three, four, five] {
        part.end();
    }
    let mut back = scene.back();
    back.sort_unstable();
    assert_eq!(back, [1, 2, 3, 4, 5].map(|number| (number, true)));
}

/// I4. Fails where a jump leaves a lock that a waker is using, and where the waiter that has jumped
/// less far does not know that it is taken out of the list.
#[test]
fn a_jump_waits_for_the_waker_that_has_claimed_the_waiter() {
    let scene = stage();
    let one = scene.sleeper(1);
    scene.lock.lock();
    let id = NodeId::new(1, 0);
    let node = id.node::<Toy>();
    assert_eq!(scene.condvar.detach(1).1, 1);
    node.state.store(CLAIMED, Relaxed);
    at(Point::Halt, move || signal::<Toy>(id, WOKEN));
    jump_out::<Toy>(id);
    assert_eq!((left(), halts()), (0, 1));
    kick::<Toy>(id);
    scene.unlock();
    one.end();
    assert_eq!(scene.back(), [(1, true)]);
}

/// Fails where a condition variable that a thread has jumped out of stays in use for ever, and
/// where a waiter that has jumped less far is taken out of the list twice.
#[test]
fn a_waiter_that_has_jumped_uses_nothing() {
    let scene = stage();
    let [one, two] = [1, 2].map(|number| scene.sleeper(number));
    jump_out::<Toy>(NodeId::new(1, 0));
    assert!(scene.condvar.is_in_use());
    assert_eq!(state(1), REMOVED);
    jump_out::<Toy>(NodeId::new(2, 0));
    scene.condvar.drain();
    assert_eq!(halts(), 0, "it did not back off");
    for part in [one, two] {
        part.end();
    }
    assert_eq!(scene.back(), [(1, false), (2, false)]);
}

/// Fails where a notifier leaves those that have jumped in its list.
#[test]
fn a_notification_clears_away_those_that_have_jumped() {
    let scene = stage();
    let [one, two, three] = [1, 2, 3].map(|number| scene.sleeper(number));
    jump_out::<Toy>(NodeId::new(1, 0));
    jump_out::<Toy>(NodeId::new(2, 0));
    // It has not left after all.
    two.end();
    assert!(scene.condvar.notify_one());
    assert!(scene.condvar.list.looks_empty());
    one.end();
    three.end();
    let mut back = scene.back();
    back.sort_unstable();
    assert_eq!(back, [(1, false), (2, false), (3, true)]);
}

/// The lock does not adopt. Fails where more than two are woken at a time, and ("lost wake-up")
/// where a waiter that is back does not wake its successor.
#[test]
fn waiters_notified_together_wake_two_at_a_time() {
    let scene = stage();
    let [one, two, three, four, five] = [1, 2, 3, 4, 5].map(|number| scene.sleeper(number));
    scene.lock.lock();
    let before = kicks();
    assert_eq!(scene.condvar.notify_all(), 5);
    assert_eq!(scene.condvar.notify_all(), 0);
    assert_eq!(kicks() - before, 2);
    one.to(Point::Wait); // It contends for the lock.
    assert!(woken(1) && woken(2) && !woken(3) && !woken(4));
    scene.unlock();
    one.to(Point::Heavy); // It has it.
    assert!(woken(3) && !woken(4));
    three.to(Point::Wait);
    one.end();
    two.to(Point::Heavy);
    assert!(woken(4));
    two.end();
    assert!(!woken(5));
    for part in [three, four, five] {
        part.end();
    }
    assert_eq!(scene.back(), [1, 2, 3, 4, 5].map(|number| (number, true)));
}

/// I3. Fails where a notified waiter takes the wait lock, which nobody releases any more, or where
/// `drain` waits for those that were notified.
#[test]
fn a_thread_that_notified_all_may_free_it_while_it_owns_the_lock() {
    for all in [false, true] {
        let scene = requeue::Adopting::new();
        let parts = [1, 2].map(|number| scene.sleeper(number));
        scene.lock.lock();
        match all {
            true => assert_eq!(scene.condvar.notify_all(), 2),
            false => assert!(scene.condvar.notify_one() && scene.condvar.notify_one()),
        }
        scene.condvar.drain();
        assert_eq!(halts(), 0, "it did not back off");
        core::mem::forget(scene.condvar.list.lock());
        scene.unlock();
        parts.into_iter().for_each(Actor::end);
    }
    let scene = stage();
    let parts = [1, 2].map(|number| scene.sleeper(number));
    let late = scene.timed(3);
    scene.lock.lock();
    assert_eq!(scene.condvar.notify_all(), 3);
    scene.condvar.drain();
    assert_eq!(halts(), 0, "it did not back off");
    core::mem::forget(scene.condvar.list.lock());
    scene.unlock();
    late.sleep(); // Past its deadline.
    parts.into_iter().for_each(Actor::end);
    late.end();
    assert_eq!(scene.back(), [(1, true), (2, true), (3, true)]);
}

/// I2. Fails where `leave` unlinks without the wait lock, or `is_in_use` does not count waiters
/// that leave: one would touch freed memory.
#[test]
fn drain_waits_for_a_waiter_that_gives_up() {
    let scene = stage();
    let one = scene.timed(1);
    let guard = scene.condvar.list.lock();
    one.to(Point::Wait); // Its deadline has passed, and it waits for the wait lock.
    drop(guard);
    assert!(!scene.condvar.notify_one());
    assert!(scene.condvar.is_in_use());
    scene.lock.lock();
    one.to(Point::Wait); // It has left, and wants the lock.
    scene.condvar.drain();
    scene.unlock();
    one.end();
    assert_eq!(scene.back(), [(1, false)]);
}

/// Nobody waits for an earlier chain. Fails where `detach` leaves a successor of another chain in
/// `info`.
#[test]
fn waiters_notified_one_by_one_wake_at_the_same_time() {
    let scene = stage();
    let sleepers = [1, 2, 3, 4, 5].map(|number| scene.sleeper(number));
    scene.lock.lock();
    let before = kicks();
    assert!(scene.condvar.notify_one() && scene.condvar.notify_one());
    assert_eq!(kicks() - before, 2);
    assert_eq!(scene.condvar.notify_all(), 3);
    assert_eq!(kicks() - before, 4);
    scene.unlock();
    let [one, two, three, four, five] = sleepers;
    two.end();
    one.end();
    assert!(!woken(5));
    three.end();
    four.end();
    five.end();
}

/// Fails where a waiter takes its successor from the list instead of from its chain.
#[test]
fn a_waiter_that_comes_after_a_notification_waits_for_the_next() {
    let scene = stage();
    let [one, two] = [1, 2].map(|number| scene.sleeper(number));
    assert_eq!(scene.condvar.notify_all(), 2);
    let three = scene.sleeper(3);
    one.end();
    two.end();
    three.startle();
    three.sleep();
    assert!(!woken(3) && scene.condvar.is_in_use());
    assert!(scene.condvar.notify_one());
    three.end();
    assert_eq!(scene.back(), [(1, true), (2, true), (3, true)]);
}

/// I2. Fails where `wait_limited` goes on without its second sleep: those behind it would never be
/// woken.
#[test]
fn a_notified_waiter_at_its_deadline_keeps_its_place() {
    let scene = stage();
    let [one, two] = [1, 2].map(|number| scene.sleeper(number));
    let three = scene.timed(3);
    let four = scene.sleeper(4);
    scene.lock.lock();
    assert_eq!(scene.condvar.notify_all(), 4);
    one.to(Point::Wait);
    three.sleep(); // Past its deadline.
    scene.unlock();
    for part in [one, two, three, four] {
        part.end();
    }
    let order = [(1, true), (2, true), (3, true), (4, true)];
    assert_eq!(scene.back(), order);
}

/// I2. Fails where `detach` does not compare: the notification would be lost to a waiter that gives
/// up.
#[test]
fn a_notification_skips_a_waiter_that_is_giving_up() {
    let scene = stage();
    let one = scene.timed(1);
    let two = scene.sleeper(2);
    let guard = scene.condvar.list.lock();
    one.to(Point::Wait); // Its deadline has passed, and it waits for the wait lock.
    drop(guard);
    assert!(scene.condvar.notify_one());
    assert!(woken(2));
    one.end();
    two.end();
    assert_eq!(scene.back(), [(1, false), (2, true)]);
    assert!(!scene.condvar.is_in_use());
}

/// I2. Fails where `leave` does not compare: the notified waiter would unlink itself from a list
/// that it is not in.
#[test]
fn a_notification_counts_until_the_waiter_leaves() {
    let scene = stage();
    let one = scene.timed(1);
    let two = scene.sleeper(2);
    assert!(scene.condvar.notify_one());
    one.end();
    assert_eq!(scene.back(), [(1, true)]);
    assert!(!woken(2));
    assert_eq!(scene.condvar.notify_all(), 1);
    two.end();
}

/// Fails where `leave` does not unlink.
#[test]
fn a_notification_skips_waiters_that_gave_up() {
    let scene = stage();
    let [one, two] = [1, 2].map(|number| scene.timed(number));
    let three = scene.sleeper(3);
    let four = scene.timed(4);
    scene.lock.lock();
    for part in [&two, &four, &one] {
        part.to(Point::Wait); // It has left, and wants the lock.
    }
    assert!(scene.condvar.notify_one());
    assert_eq!(scene.condvar.notify_all(), 0);
    scene.unlock();
    three.end();
    for part in [one, two, four] {
        part.end();
    }
    assert_eq!(
        scene.back(),
        [(3, true), (1, false), (2, false), (4, false)]
    );
    assert!(!scene.condvar.is_in_use());
    // Waits and notifications work as before.
    let five = scene.sleeper(5);
    assert_eq!(scene.condvar.notify_all(), 1);
    five.end();
}

#[test]
fn a_cancellation_ends_waits_that_were_not_notified() {
    let scene = stage();
    let [one, two, three] = [1, 2, 3].map(|number| {
        let part = scene.waiter(number, || (None, true));
        part.sleep();
        part
    });
    assert!(scene.condvar.notify_one());
    scene.token.cancel();
    two.end();
    one.end();
    three.end();
    assert_eq!(scene.back(), [(2, false), (1, true), (3, false)]);
    // A wait with a token cancelled before releases the lock all the same.
    let four = scene.waiter(4, || (None, true));
    four.to(Point::Light);
    assert!(!scene.lock.is_locked());
    four.end();
    assert_eq!(scene.back(), [(4, false)]);
    assert!(!scene.condvar.is_in_use());
}

/// Fails where `wait_limited` keeps the node while it waits for the lock: then the lock and
/// handlers have one less.
#[test]
fn the_node_is_free_while_the_waiter_waits_for_the_lock() {
    let scene = stage();
    let waiter = scene.sleeper(1);
    scene.lock.lock();
    assert!(!Toy::tables().slot(1).is_idle());
    scene.condvar.notify_one();
    waiter.to(Point::Wait);
    assert!(Toy::tables().slot(1).is_idle());
    scene.unlock();
    waiter.end();
}

#[test]
fn a_thread_without_a_node_wakes_spuriously() {
    let scene = stage();
    scene.lock.lock();
    at(Point::Halt, || {
        assert!(!scene.lock.is_locked() && !scene.condvar.notify_one());
    });
    as_thread(SLOTS, || scene.wait(1, None, false));
    as_thread(SLOTS, || scene.wait(2, Some(Toy::now().into()), false));
    let later = Toy::now().plus_nanos(10 * BACKOFF_SLEEP_NS);
    as_thread(SLOTS, || scene.wait(3, Some(later.into()), false));
    scene.token.cancel();
    as_thread(SLOTS, || scene.wait(4, None, true));
    assert_eq!(scene.back(), [(1, true), (2, false), (3, true), (4, false)]);
    assert_eq!((left(), halts()), (0, 4));
}

/// The lock's own queue node is its token.
#[test]
fn it_works_with_a_lock_whose_token_is_a_node() {
    let condvar: &'static Condvar<Toy> = Box::leak(Box::new(Condvar::new()));
    let lock: &WithNode = Box::leak(Box::new(WithNode::INIT));
    let order = Arc::new(Mutex::new(Vec::new()));
    let parts = [1, 2, 3].map(|number| {
        let order = order.clone();
        let part = actor(number, move || {
            let token = lock.lock();
            // SAFETY: locked above.
            let token = unsafe { condvar.wait(lock, token) };
            order.lock().unwrap().push(number);
            // SAFETY: `wait` has returned with the lock held.
            unsafe { lock.unlock(token) };
        });
        part.sleep();
        part
    });
    assert_eq!(condvar.notify_all(), 3);
    parts.into_iter().for_each(Actor::end);
    assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
}

/// Fails where a waiter is counted by another lock than its own.
#[test]
fn waiters_notified_together_may_have_different_locks() {
    let condvar: &'static Condvar<Toy> = Box::leak(Box::new(Condvar::new()));
    let locks: &'static [Overlock<Toy>; 2] =
        Box::leak(Box::new([Overlock::new(), Overlock::new()]));
    let other = Box::leak(Box::new(Loud::INIT));
    fn sleeper<L: RawLock<Token = ()>>(
        number: usize,
        condvar: &'static Condvar<Toy>,
        lock: &'static L,
    ) -> Actor {
        let part = actor(number, move || {
            lock.lock();
            // SAFETY: locked above.
            unsafe { condvar.wait(lock, ()) };
            // SAFETY: `wait` has locked it again.
            unsafe { lock.unlock(()) };
        });
        part.sleep();
        part
    }
    let one = sleeper(1, condvar, &locks[0]);
    let two = sleeper(2, condvar, other);
    let three = sleeper(3, condvar, &locks[1]);
    locks[1].lock();
    assert_eq!(condvar.notify_all(), 3);
    one.end();
    two.end();
    assert!(!three.is_kicked() && locks[1].is_contended() && !locks[0].is_contended());
    // SAFETY: locked above.
    unsafe { locks[1].unlock(()) };
    three.end();
    assert!(!locks[1].is_contended());
}

/// A lock that a validator watches.
#[derive(Debug)]
#[repr(transparent)]
struct Watched(Overlock<Toy>);

impl ConstLock for Watched {
    const INIT: Self = Watched(Overlock::new());
}

// SAFETY: as for the lock inside, at the same address.
unsafe impl RawLock for Watched {
    type Token = ();

    const NAME: &'static str = "watched";

    fn is_watched(&self) -> bool {
        true
    }

    forward! {
        methods RawLock
    }
    forward! {
        unsafe fn unlock(&self, (): ());
    }
}

/// Fails where a waiter counts that has left: the next one may use another lock.
#[test]
fn a_waiter_with_another_lock_is_seen_while_it_waits() {
    sees_waiters_of_another_lock::<Overlock<Toy>>(|lock| lock);
}

/// Fails where a lock that takes no sleepers is none that they can be known by.
#[test]
fn a_waiter_with_another_watched_lock_is_seen_while_it_waits() {
    sees_waiters_of_another_lock::<Watched>(|lock| &lock.0);
}

fn sees_waiters_of_another_lock<L: ConstLock + RawLock<Token = ()>>(
    inner: fn(&L) -> &Overlock<Toy>,
) {
    let condvar: &'static Condvar<Toy> = Box::leak(Box::new(Condvar::new()));
    let locks: &'static [L; 2] = Box::leak(Box::new([L::INIT, L::INIT]));
    let [one, another] = locks.each_ref().map(inner);
    let sleeper = |number| {
        let part = actor(number, || {
            locks[0].lock();
            // SAFETY: locked above.
            unsafe { condvar.wait(&locks[0], ()) };
            // SAFETY: `wait` has locked it again.
            unsafe { locks[0].unlock(()) };
        });
        part.sleep();
        part
    };
    assert!(!condvar.waits_with_another(another));
    let notified = sleeper(1);
    assert!(!condvar.waits_with_another(one) && condvar.waits_with_another(another));
    assert!(condvar.notify_one() && !condvar.waits_with_another(another));
    notified.end();
    let jumps = sleeper(2);
    assert!(condvar.waits_with_another(another));
    // In the list, and not a waiter any more.
    jump_out::<Toy>(NodeId::new(2, 0));
    assert!(!condvar.waits_with_another(another));
    jumps.end();
}

#[test]
fn eight_bytes() {
    static CONDVAR: Condvar<Toy> = Condvar::new();
    assert_eq!(size_of_val(&CONDVAR), 8);
}

/// Sleepers of these ranks, in order of arrival.
fn ranked(scene: Stage, ranks: &[u32]) -> Vec<Actor> {
    let sleeper = |(index, &rank): (usize, &u32)| {
        let part = scene.waiter(index + 1, move || {
            set_rank(rank);
            (None, false)
        });
        part.sleep();
        part
    };
    ranks.iter().enumerate().map(sleeper).collect()
}

/// Fails where a notification is for the thread that has waited longest, whatever its rank; and
/// where threads of equal rank change places.
#[test]
fn a_notification_is_for_the_highest_rank() {
    let scene = stage();
    let mut parts = ranked(scene, &[10, 0, 30, 10, 20, 0]);
    let mut left = [1, 2, 3, 4, 5, 6].to_vec();
    for next in [3, 5, 1, 4, 2, 6] {
        scene.condvar.notify_one();
        let at = left.iter().position(|&number| number == next).unwrap();
        for (index, part) in parts.iter().enumerate() {
            assert_eq!(part.is_kicked(), index == at, "{next} of {left:?}");
        }
        left.remove(at);
        parts.remove(at).end();
    }
}

/// Fails where some waiters depend on others, which may have no CPU.
#[test]
fn all_waiters_are_woken_at_once_where_one_has_a_rank() {
    let scene = stage();
    let parts = ranked(scene, &[0, 0, 7, 0]);
    assert_eq!(scene.condvar.notify_all(), 4);
    assert!(parts.iter().all(Actor::is_kicked));
    parts.into_iter().for_each(Actor::end);
    assert_eq!(scene.back().len(), 4);
}
