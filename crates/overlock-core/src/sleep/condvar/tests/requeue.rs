//! With a lock that adopts.

use super::*;
use crate::sleep::wait_list::WAITING;

/// A condition variable with a lock that adopts.
pub(super) struct Adopting {
    pub(super) condvar: Condvar<Toy>,
    pub(super) lock: Overlock<Toy>,
}

impl Adopting {
    pub(super) fn new() -> &'static Self {
        Box::leak(Box::new(Adopting {
            condvar: Condvar::new(),
            lock: Overlock::new(),
        }))
    }

    /// Locks, with a thread counted that is never seen again.
    fn lock_with_a_sleeper(&self) {
        self.lock.lock();
        self.lock.pretend_sleepers(1);
    }

    /// Whether that thread is the only one left.
    fn is_over(&self) -> bool {
        self.lock.pretend_sleepers(-1);
        !self.lock.is_locked() && !self.lock.is_contended()
    }

    pub(super) fn unlock(&self) {
        // SAFETY: each test unlocks what it has locked.
        unsafe { self.lock.unlock(()) }
    }

    pub(super) fn waiter(&'static self, number: usize) -> Actor {
        actor(number, move || {
            self.lock.lock();
            // SAFETY: locked above.
            unsafe { self.condvar.wait(&self.lock, ()) };
            Toy::heavy_barrier();
            self.unlock();
        })
    }

    pub(super) fn sleeper(&'static self, number: usize) -> Actor {
        let part = self.waiter(number);
        part.sleep();
        part
    }

    /// An actor that notifies one waiter without owning the lock.
    pub(super) fn notifier(&'static self, number: usize) -> Actor {
        actor(number, || assert!(self.condvar.notify_one()))
    }
}

/// `adopt` in `wake`: without it those behind the first are woken while the lock is held.
#[test]
fn the_next_is_woken_when_the_lock_is_free_again() {
    let scene = Adopting::new();
    let [one, two, three, four] = [1, 2, 3, 4].map(|number| scene.sleeper(number));
    scene.lock.lock();
    assert_eq!(scene.condvar.notify_all(), 4);
    assert_eq!(
        [1, 2, 3, 4].map(state),
        [ADOPTED, ADOPTED, WAITING, WAITING]
    );
    let sleepers = [&one, &two, &three, &four];
    let kicked = || sleepers.map(|part| part.is_kicked());
    assert_eq!(kicked(), [false; 4]);
    scene.unlock();
    // All sleep on the lock's word: one kick is for any of them.
    one.to(Point::Heavy);
    assert!(scene.lock.is_locked() && scene.lock.is_contended());
    assert_eq!([2, 3, 4].map(state), [ADOPTED, WOKEN, WAITING]);
    assert!(!two.is_kicked() && three.is_kicked());
    one.end();
    assert!(two.is_kicked());
    [two, three, four].into_iter().for_each(Actor::end);
    assert!(!scene.lock.is_locked() && !scene.lock.is_contended());
}

/// Fails where a woken waiter wakes one other, or more than two, or loses a part of its chain.
#[test]
fn waiters_notified_together_wake_as_a_tree() {
    let scene = Adopting::new();
    let parts = [1, 2, 3, 4, 5, 6, 7].map(|number| scene.sleeper(number));
    let is_woken = || [1, 2, 3, 4, 5, 6, 7].map(woken);
    let before = kicks();
    assert_eq!(scene.condvar.notify_all(), 7);
    assert_eq!(kicks() - before, 2);
    let [yes, no] = [true, false];
    assert_eq!(is_woken(), [yes, yes, no, no, no, no, no]);
    let [one, two, three, four, five, six, seven] = parts;
    one.end();
    assert_eq!(is_woken(), [yes, yes, yes, no, yes, no, no]);
    two.end();
    assert_eq!(is_woken(), [yes, yes, yes, yes, yes, yes, no]);
    three.end();
    assert_eq!(is_woken(), [yes; 7]);
    [four, five, six, seven].into_iter().for_each(Actor::end);
}

/// `requeue` in `adopt`: without it the waiter sleeps on at its node, and the unlock wakes nobody.
#[test]
fn an_unlock_wakes_a_waiter_that_was_notified_while_the_lock_was_held() {
    for all in [false, true] {
        let scene = Adopting::new();
        let waiter = scene.sleeper(1);
        scene.lock_with_a_sleeper();
        let before = kicks();
        match all {
            true => assert_eq!(scene.condvar.notify_all(), 1),
            false => assert!(scene.condvar.notify_one()),
        }
        assert_eq!(kicks(), before);
        assert!(!waiter.is_kicked());
        scene.unlock();
        assert_eq!(kicks(), before + 1);
        waiter.end();
        assert!(scene.is_over());
    }
}

/// `is_contended` in `wake`: one thread is no herd, and a requeue is a system call more.
#[test]
fn a_lone_waiter_is_woken_while_a_lock_without_sleepers_is_held() {
    let scene = Adopting::new();
    let waiter = scene.sleeper(1);
    scene.lock.lock();
    assert!(scene.condvar.notify_one());
    assert!(waiter.is_kicked() && !scene.lock.is_contended());
    scene.unlock();
    waiter.end();
    assert!(!scene.lock.is_locked());
}

/// `lock_adopted` in `wait_limited`: with `lock` the sleeper that was counted would stay counted.
#[test]
fn an_adopted_waiter_that_wakes_spuriously_stays_counted() {
    let scene = Adopting::new();
    let waiter = scene.sleeper(1);
    scene.lock_with_a_sleeper();
    assert!(scene.condvar.notify_one());
    waiter.startle();
    waiter.sleep();
    scene.unlock();
    waiter.end();
    assert!(scene.is_over());
}

/// The `kick` in `adopt`. Without it ("lost wake-up") the unlock that comes before the requeue
/// is the last.
#[test]
fn an_unlock_between_the_count_and_the_requeue_is_seen() {
    let scene = Adopting::new();
    let waiter = scene.sleeper(1);
    scene.lock.lock();
    let notifier = scene.notifier(2);
    notifier.to(Point::Kick);
    scene.unlock();
    assert!(!waiter.is_kicked());
    notifier.end();
    waiter.end();
    assert!(!scene.lock.is_locked() && !scene.lock.is_contended());
}

/// I4. Fails where `wait_limited` does not `await_requeue`: the waiter would be gone, and perhaps
/// its lock, and a later sleep of its thread would be requeued. The kick in `wake`: without it
/// ("lost wake-up") a waiter that halts after the requeue sleeps on.
#[test]
fn a_waiter_does_not_return_before_its_requeue_is_done() {
    for unlocked in [false, true] {
        let scene = Adopting::new();
        let waiter = scene.sleeper(1);
        scene.lock_with_a_sleeper();
        let notifier = scene.notifier(2);
        notifier.to(Point::Kick);
        if unlocked {
            scene.unlock();
        }
        waiter.startle();
        waiter.sleep_before(Point::Heavy);
        assert_eq!(state(1), AWAKE);
        notifier.end();
        if !unlocked {
            scene.unlock();
        }
        waiter.end();
        assert!(scene.is_over());
    }
    let scene = Adopting::new();
    let waiter = scene.sleeper(1);
    scene.lock_with_a_sleeper();
    let notifier = scene.notifier(2);
    notifier.to(Point::Kick);
    waiter.startle();
    waiter.to(Point::Halt);
    assert_eq!(state(1), AWAKE);
    notifier.end();
    scene.unlock();
    waiter.end();
}
