//! An unlocker that finds the guard held: a thread that has lost its CPU holds it, or the one that a signal handler has interrupted.

use super::*;
use crate::raw::RawFairLock;
use crate::toy::watch::{self, Access, Watch, watch};

/// `queue_or_mark` in `serve`: with `queue` the unlocker waits for itself. And `wake_one` in the guard's drop: without it
/// nobody wakes the sleeper.
#[test]
fn the_holder_of_the_guard_does_the_unlockers_work() {
    let lock = leak::<Recommended>();
    lock.lock();
    let sleeper = locker(1, lock);
    sleeper.sleep();
    let queue = lock.queue();
    let before = kicks();
    unlock(lock);
    assert_eq!((kicks(), lock.request()), (before, KICK));
    drop(queue);
    assert_eq!((kicks(), lock.request()), (before + 1, NOTHING));
    sleeper.end();
    unlock(lock);
    assert_clean(lock);
}

/// The look at `locked` in the guard's drop: the sleeper would come in vain, and the owner that it meets would not know of it.
#[test]
fn an_owner_that_has_come_meanwhile_does_it_instead() {
    let lock = leak::<Recommended>();
    lock.lock();
    let sleeper = locker(1, lock);
    sleeper.sleep();
    let queue = lock.queue();
    unlock(lock);
    lock.lock();
    drop(queue);
    assert_eq!(lock.request(), KICK);
    unlock(lock);
    sleeper.end();
    unlock(lock);
    assert_clean(lock);
}

/// The branch for `HAND_OVER`, from the guard's drop.
#[test]
fn the_holder_of_the_guard_hands_over() {
    let lock = leak::<Recommended>();
    lock.lock();
    let id = NodeId::new(1, 0);
    let queue = lock.queue();
    assert!(queue.ask_for_hand_over(id, CLAIMING));
    unlock(lock);
    assert!(!lock.is_locked());
    let before = kicks();
    drop(queue);
    assert!(lock.is_locked() && lock.try_lock().is_none());
    assert_eq!(kicks(), before + 1);
    assert_eq!(id.node::<Toy>().state.load(Relaxed), CALLED);
    assert!(lock.take_handed(id), "by the chosen one");
    unlock(lock);
    assert_clean(lock);
}

/// The loop in `wake_one`: one serves in vain, since the lock is taken again, and that owner unlocks before it is through.
#[test]
fn an_unlocker_does_the_work_of_those_that_come_meanwhile() {
    let lock: &Overlock<Watch> = Box::leak(Box::default());
    lock.lock();
    assert!(lock.queue().ask_for_hand_over(NodeId::new(1, 0), CLAIMING));
    watch(lock);
    watch::before(Access::Swap, || {
        // SAFETY: locked above.
        unsafe { lock.unlock(()) }
        assert_eq!(Atomic::load(&lock.locked, Relaxed), FREE);
    });
    lock.wake_one();
    assert_eq!(watch::left(), 0);
    assert_eq!(Atomic::load(&lock.locked, Relaxed), HANDED);
    assert_eq!(lock.request(), NOTHING);
}

/// `queue_soon` in `give_away`: with `queue` the handler waits for the thread that it has interrupted.
#[test]
fn a_fair_unlock_goes_without_the_guard_if_it_must() {
    let lock = leak::<Recommended>();
    lock.lock();
    let sleeper = locker(1, lock);
    sleeper.sleep();
    let queue = lock.queue();
    // SAFETY: locked above.
    unsafe { lock.unlock_fair(()) };
    assert_eq!((halts(), kicks()), (0, 0));
    drop(queue);
    assert_eq!(kicks(), 1);
    sleeper.end();
    unlock(lock);
    assert_clean(lock);
}
