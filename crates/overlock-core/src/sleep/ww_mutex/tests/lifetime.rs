//! The last access of an unlock: the next owner may free the lock's memory.

use super::*;
use crate::toy::watch::{Access, Watch, after, freed, left, touches, watch};

/// Without waiters the exchange is the last access.
#[test]
fn the_unlock_ends_with_its_exchange() {
    let lock = Box::new(WwMutex::<Watch>::INIT);
    let held = lock.hold();
    watch(&*lock);
    after(Access::Exchange, freed);
    drop(held);
    assert_eq!((touches(), left()), (Vec::new(), 0));
}

/// The same where the last waiter has left meanwhile: `release_slow` releases the wait lock before.
#[test]
fn the_unlock_ends_with_its_exchange_where_a_waiter_has_left() {
    let lock: &'static WwMutex<Watch> = Box::leak(Box::new(WwMutex::INIT));
    let held = lock.hold();
    lock.word.fetch_or(WAITERS, Relaxed);
    watch(lock);
    after(Access::Exchange, || lock.word.store(LOCKED, Relaxed)); // in vain: there is a waiter; it leaves
    after(Access::Exchange, || {}); // takes the wait lock
    after(Access::Exchange, freed);
    drop(held);
    assert_eq!((touches(), left()), (Vec::new(), 0));
}

/// With waiters it is the release of the wait lock.
#[test]
fn the_unlock_ends_with_its_wait_lock() {
    let lock: &'static WwMutex<Watch> = Box::leak(Box::new(WwMutex::INIT));
    let held = lock.hold();
    let waiter = as_thread(1, || Waiter::<Watch>::new(&()).unwrap());
    waiter.prepare();
    waiter.node().lock.store(0, Relaxed);
    waiter.node().info.store(0, Relaxed);
    lock.waiters.lock().push_back(waiter.id());
    lock.word.fetch_or(WAITERS, Relaxed);
    watch(lock);
    after(Access::Store, || {}); // frees the lock
    after(Access::Store, freed);
    drop(held);
    assert_eq!((touches(), left()), (Vec::new(), 0));
    assert_eq!(lock.word.load(Relaxed), WAITERS);
}
