//! Kicks that an owner keeps until it has unlocked.

use super::*;
use crate::raw::RawFairLock;
use crate::toy::watch::{self, Access, Watch, watch};

/// How often thread 7 has been kicked.
fn kicked() -> u32 {
    NodeId::new(7, 0).node::<Toy>().kicks.load(Relaxed)
}

/// `kick_deferred` in `after_unlock`, and the address that it looks at.
#[test]
fn a_kick_that_was_kept_follows_the_unlock_of_that_lock_alone() {
    let [lock, other] = [leak::<Recommended>(), leak()];
    lock.lock();
    other.lock();
    let before = kicked();
    assert!(lock.kick_after_unlock(NodeId::new(7, 0)));
    // As if the two had the same entry of the kick table.
    other.kicks().fetch_add(1, Relaxed);
    unlock(other);
    other.kicks().fetch_sub(1, Relaxed);
    assert_eq!(kicked(), before);
    at(Point::Light, move || assert_eq!(kicked(), before));
    unlock(lock);
    assert_eq!((kicked(), left()), (before + 1, 0));
    assert_clean(lock);
    lock.lock();
    unlock(lock);
    assert_eq!(kicked(), before + 1, "once");
}

/// `kick_deferred` in `unlock_fair`: that of `unlock` does not run there.
#[test]
fn a_fair_unlock_that_hands_over_kicks_too() {
    let lock = leak::<Recommended>();
    lock.lock();
    let sleeper = locker(1, lock);
    sleeper.sleep();
    let before = kicked();
    assert!(lock.kick_after_unlock(NodeId::new(7, 0)));
    // SAFETY: locked above.
    unsafe { lock.unlock_fair(()) };
    assert_eq!(kicked(), before + 1);
    sleeper.end();
    unlock(lock);
    assert_clean(lock);
}

/// `room` in `keep`: a thread keeps one kick, and the caller does the second itself.
#[test]
fn a_second_kick_is_not_kept() {
    let [lock, other] = [leak::<Recommended>(), leak()];
    lock.lock();
    other.lock();
    let waiter = NodeId::new(7, 0);
    assert!(lock.kick_after_unlock(waiter));
    assert!(!other.kick_after_unlock(waiter) && !lock.kick_after_unlock(waiter));
    let before = kicked();
    unlock(other);
    assert_eq!(kicked(), before);
    unlock(lock);
    assert_eq!(kicked(), before + 1);
    as_thread(SLOTS, || {
        assert!(!lock.kick_after_unlock(waiter), "nowhere to keep it");
    });
    assert_clean(lock);
    assert_clean(other);
}

/// The compare-exchange in `kick`: the handler has done it, and the entry of the kick table counts nothing any more.
#[test]
fn a_handler_that_comes_in_between_kicks_instead() {
    let lock: &Overlock<Watch> = Box::leak(Box::default());
    lock.lock();
    let waiter = NodeId::new(7, 0);
    assert!(lock.kick_after_unlock(waiter));
    watch(Overlock::<Watch>::deferred().unwrap());
    // The thread's look at the node; then its look at the lock, and there the handler comes.
    watch::after(Access::Load, || {});
    watch::after(Access::Load, move || {
        assert!(lock.try_lock().is_some());
        // SAFETY: just locked.
        unsafe { lock.unlock(()) }
    });
    // SAFETY: locked above.
    unsafe { lock.unlock(()) }
    let kicks = &waiter.node::<Watch>().kicks;
    assert_eq!(Atomic::load(kicks, Relaxed), 1);
    assert_eq!(Atomic::load(lock.kicks(), Relaxed), 0);
    assert_eq!(watch::left(), 0);
}

/// `kick_deferred` in `bump`: nobody is in the list.
#[test]
fn who_lets_others_in_wakes_those_that_it_has_still_to_wake() {
    let lock = leak::<Recommended>();
    lock.lock();
    let before = kicked();
    assert!(lock.kick_after_unlock(NodeId::new(7, 0)));
    // SAFETY: locked above.
    unsafe { lock.bump(()) };
    assert_eq!(kicked(), before + 1);
    unlock(lock);
    assert_eq!(kicked(), before + 1, "once");
    assert_clean(lock);
}

/// A guard that was forgotten, or that a later destructor drops.
#[test]
fn a_thread_that_exits_owes_nothing() {
    let lock = leak::<Recommended>();
    lock.lock();
    let before = kicked();
    assert!(lock.kick_after_unlock(NodeId::new(7, 0)));
    Toy::slots()[0].settle();
    Toy::slots()[0].settle();
    assert_eq!((kicked(), lock.kicks().load(Relaxed)), (before + 1, 0));
    unlock(lock);
    assert_eq!(kicked(), before + 1);
    assert_clean(lock);
}
