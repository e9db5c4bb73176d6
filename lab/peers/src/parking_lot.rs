//! A model of `parking_lot::Mutex` of version 0.12: a byte, a short spin, a queue of parked
//! threads, and a handoff about every half millisecond.
//!
//! Source: the documentation of the crates parking_lot and parking_lot_core, and "Locking in
//! WebKit" (Pizlo, 2016), on which they build. The process-wide hash table of queues is replaced
//! by one queue in each lock, with its own guard and its own time of the next handoff: other locks
//! never share it. [`Bucket`] has them.
//!
//! ```text
//! byte: bit 0 locked (L), bit 1 parked (P): threads are in the queue
//!
//! ()    --lock-->       (L)
//! (P)   --barge-->      (LP)    a running thread passes the queue
//! (L)   --park-->       (LP)    after ten rounds of spinning; then the thread joins the queue
//! (L)   --unlock-->     ()
//! (LP)  --unlock-->     (P)     the first of several is woken; the lock is free
//! (LP)  --unlock-->     ()      the same, and it was the last
//! (LP)  --hand off-->   (LP)    when the time has come: the first owns the lock
//! (LP)  --hand off-->   (L)     the same, and it was the last
//! ```
//!
//! - P1: the queue, the time and the seed are accessed under the guard alone.
//! - P2: P is set while the queue is not empty, and cleared under the guard with the last.
//!
//! Orderings: U, the releases of the byte, pair with L, the acquire exchanges that set L. W, the
//! release store of a node's state, pairs with the acquire load of the thread that parks: it orders
//! a handoff.
//!
//! No wake-up is lost: a thread joins the queue only under the guard, if the byte is still `LP`
//! then, and an unlock that sees P takes the guard before it frees the lock.
//!
//! A thread without a queue node sleeps for 50 us between two attempts.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::facts::{Facts, HasFacts, NeedsNode};
use overlock_core::node::NodeGuard;
use overlock_core::platform::{Atomic, FutexPlatform, Kick, Platform, backoff_sleep};
use overlock_core::raw::{Create, CreateError, RawLock};

use bucket::{Bucket, Rounds, WAITS};

mod bucket;
mod release_first;

pub use release_first::ParkingLot13;

const LOCKED: u8 = 1;
const PARKED: u8 = 2;

/// Without a queue node.
const BACKOFF_NS: u64 = 50_000;

/// Values of a node's state, beside [`WAITS`].
const WOKEN: u32 = 0;
const OWNS: u32 = 2;

/// The model of parking_lot's mutex: see `docs/evidence/peers.md`.
#[derive(Debug)]
pub struct ParkingLot<P: Platform> {
    byte: P::U8,
    /// Apart, so that the byte shares its line with the data that the lock protects.
    queue: Box<Bucket<P>>,
}

impl<P: FutexPlatform> ParkingLot<P> {
    /// Sets L if it is not set in `seen`. L: acquire, pairs with U.
    fn take(&self, seen: u8) -> bool {
        self.byte
            .compare_exchange_weak(seen, seen | LOCKED, Acquire, Relaxed)
            .is_ok()
    }

    #[cold]
    fn lock_slow(&self) {
        let mut rounds = Rounds::default();
        loop {
            let seen = self.byte.load(Relaxed);
            if seen & LOCKED == 0 {
                if self.take(seen) {
                    return;
                }
            } else if seen & PARKED != 0 || !rounds.spin::<P>() {
                let marked = seen & PARKED != 0 || {
                    let parked = seen | PARKED;
                    let exchanged = self
                        .byte
                        .compare_exchange_weak(seen, parked, Relaxed, Relaxed);
                    exchanged.is_ok()
                };
                if marked {
                    if self.park() {
                        return;
                    }
                    rounds = Rounds::default();
                }
            }
        }
    }

    /// Sleeps in the queue, unless the byte has changed. Returns whether the lock was handed off to
    /// the caller.
    fn park(&self) -> bool {
        let Some(guard) = NodeGuard::<P>::new() else {
            backoff_sleep::<P>(BACKOFF_NS);
            return false;
        };
        let joined = self.queue.guarded(|| {
            let valid = self.byte.load(Relaxed) == LOCKED | PARKED;
            if valid {
                self.queue.push(guard.id());
            }
            valid
        });
        if !joined {
            return false;
        }
        let state = &guard.node().state;
        loop {
            // Acquire: pairs with W.
            match state.load(Acquire) {
                WAITS => _ = P::halt(state, WAITS, None),
                woken => return woken == OWNS,
            }
        }
    }

    #[cold]
    fn unlock_slow(&self) {
        let woken = self.queue.guarded(|| {
            let Some((first, more)) = self.queue.pop() else {
                // The thread that set P found the byte changed, or has no node. U: release.
                self.byte.store(0, Release);
                return None;
            };
            let left = if more { PARKED } else { 0 };
            let fair = self.queue.is_fair();
            // (LP) -> (*) or (L*). U: release, pairs with L.
            self.byte
                .store(if fair { LOCKED | left } else { left }, Release);
            // W: release, pairs with the load in `park`.
            let state = &first.node::<P>().state;
            state.store(if fair { OWNS } else { WOKEN }, Release);
            Some(state)
        });
        if let Some(state) = woken {
            P::kick(state, Kick::One);
        }
    }
}

impl<P: Platform> HasFacts for ParkingLot<P> {
    const FACTS: Facts = Facts {
        about: "model of parking_lot 0.12: a byte, a queue of its own, timed handoffs",
        node: NeedsNode::Sleep,
        ..Facts::SLEEPING
    };
}

impl<P: FutexPlatform> Create for ParkingLot<P> {
    fn create() -> Result<Self, CreateError> {
        Ok(ParkingLot {
            byte: P::U8::ZERO,
            queue: Box::new(Bucket::new()),
        })
    }
}

// SAFETY: a thread owns the lock after an exchange that set L, which only one can win, or after a
// handoff to it, which leaves L set. Only the owner's unlock clears L or hands off.
unsafe impl<P: FutexPlatform> RawLock for ParkingLot<P> {
    type Token = ();

    const NAME: &'static str = "model:parking_lot";

    #[inline]
    fn lock(&self) {
        if !self.take(0) {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        let seen = self.byte.load(Relaxed);
        // L: acquire, pairs with U.
        let free = seen & LOCKED == 0;
        let taken = free
            && self
                .byte
                .compare_exchange(seen, seen | LOCKED, Acquire, Relaxed)
                .is_ok();
        taken.then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // (L) -> (). U: release, pairs with L.
        let exchanged = self.byte.compare_exchange(LOCKED, 0, Release, Relaxed);
        if exchanged.is_err() {
            self.unlock_slow();
        }
    }

    fn is_locked(&self) -> bool {
        self.byte.load(Relaxed) & LOCKED != 0
    }

    fn is_contended(&self) -> bool {
        self.byte.load(Relaxed) & PARKED != 0
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use overlock_core::toy::stage::{Actor, actor};
    use overlock_core::toy::{Toy, kicks};

    use super::*;

    type Lock = &'static ParkingLot<Toy>;

    fn leak() -> Lock {
        Box::leak(Box::new(ParkingLot::create().unwrap()))
    }

    fn unlock(lock: Lock) {
        // SAFETY: each test unlocks what it has locked, as the same thread.
        unsafe { lock.unlock(()) }
    }

    fn sleeper(thread: usize, lock: Lock) -> Actor {
        let sleeper = actor(thread, move || {
            lock.lock();
            unlock(lock);
        });
        sleeper.sleep();
        sleeper
    }

    #[test]
    fn a_lock_that_nobody_wants_wakes_nobody() {
        let lock = leak();
        lock.lock();
        assert!(lock.is_locked() && lock.try_lock().is_none());
        unlock(lock);
        assert!(!lock.is_locked());
        assert_eq!(kicks(), 0);
    }

    /// Fails without the wait of `is_fair`: the first unlock then hands off, and the lock is not
    /// free.
    #[test]
    fn the_first_of_the_queue_is_woken_and_the_lock_is_free() {
        let lock = leak();
        lock.queue.fair_at.store(usize::MAX / 4, Relaxed);
        lock.lock();
        let sleepers = [1, 2].map(|thread| sleeper(thread, lock));
        unlock(lock);
        assert!(!lock.is_locked() && lock.is_contended());
        let [first, second] = sleepers;
        assert!(first.is_kicked() && !second.is_kicked());
        first.end();
        assert!(second.is_kicked() && !lock.is_contended());
        second.end();
        assert!(!lock.is_locked());
    }

    /// Fails where a handoff frees the lock.
    #[test]
    fn a_late_unlock_hands_off() {
        let lock = leak();
        lock.lock();
        let waiter = sleeper(1, lock);
        unlock(lock);
        assert!(lock.is_locked() && !lock.is_contended() && lock.try_lock().is_none());
        assert!(lock.queue.fair_at.load(Relaxed) > 1);
        waiter.end();
        assert!(!lock.is_locked());
    }

    /// Fails where `park` does not look at the byte again under the guard.
    #[test]
    fn nobody_joins_the_queue_of_a_lock_that_is_free() {
        let lock = leak();
        lock.byte.store(PARKED, Relaxed);
        assert!(!lock.park());
        assert!(lock.queue.pop().is_none());
    }
}
