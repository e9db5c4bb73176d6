//! What a fork leaves of a lock.

use super::*;
use crate::raw::RawFork;

/// Guard, list, request and called sleeper at once; and the kick table, which another lock shares, is left alone.
#[test]
fn nothing_is_left_of_those_that_are_gone() {
    let lock = leak::<Recommended>();
    lock.lock();
    let [first, chosen] = [1, 2].map(|slot| NodeId::new(slot, 0));
    let queue = lock.queue();
    queue.push_back(first, Toy::now());
    queue.set_kick(KICK);
    queue.set_awake(true);
    assert!(queue.ask_for_hand_over(chosen, CLAIMING));
    core::mem::forget(queue);
    lock.kicks().store(0, Relaxed);
    // SAFETY: those two are gone, and so is what the kick table has counted.
    unsafe { lock.forget_waiters() };
    assert!(lock.is_locked());
    assert_eq!((lock.kick.load(Relaxed), lock.chosen.load(Relaxed)), (0, 0));
    unlock(lock);
    assert_clean(lock);
    assert_eq!(kicks(), 0);
}
