//! A model of `parking_lot::Mutex` of version 0.13: its unlock releases first, then wakes.
//!
//! Source: the documentation and the change log of the crate. All but the unlock is as in
//! [`ParkingLot`], and no unlock hands off: a waiter can be bypassed without end.
//!
//! ```text
//! (L)   --unlock-->     ()
//! (LP)  --unlock-->     (P)     the lock is free; then the first of the queue is woken
//! (*P)  --the last-->   (*)     under the guard, with the last of the queue, whoever owns the lock
//! ```
//!
//! No wake-up is lost: an unlock that finds P wakes a thread after its release. A thread that joins
//! later finds, under the guard, a byte that is not `LP`, or one whose owner sees P.

use core::sync::atomic::Ordering::{Relaxed, Release};

use overlock_core::facts::{Facts, HasFacts};
use overlock_core::platform::{Atomic, FutexPlatform, Kick, Platform};
use overlock_core::raw::{Create, CreateError, RawLock};

use super::{LOCKED, PARKED, ParkingLot, WOKEN};

/// The model of parking_lot's mutex of version 0.13: see `docs/evidence/peers.md`.
#[derive(Debug)]
pub struct ParkingLot13<P: Platform>(ParkingLot<P>);

impl<P: FutexPlatform> ParkingLot13<P> {
    #[cold]
    fn wake_first(&self) {
        let ParkingLot { byte, queue } = &self.0;
        let woken = queue.guarded(|| {
            let first = queue.pop();
            if first.is_none_or(|(_, more)| !more) {
                byte.fetch_and(!PARKED, Relaxed);
            }
            first.map(|(first, _)| {
                // W: release, pairs with the load in `park`.
                let state = &first.node::<P>().state;
                state.store(WOKEN, Release);
                state
            })
        });
        if let Some(state) = woken {
            P::kick(state, Kick::One);
        }
    }
}

impl<P: Platform> HasFacts for ParkingLot13<P> {
    const FACTS: Facts = Facts {
        about: "model of parking_lot 0.13: as 0.12, but releases first and hands nothing off",
        ..<ParkingLot<P> as HasFacts>::FACTS
    };
}

impl<P: FutexPlatform> Create for ParkingLot13<P> {
    fn create() -> Result<Self, CreateError> {
        ParkingLot::create().map(Self)
    }
}

// SAFETY: a thread owns the lock after an exchange that set L, which only one can win. Only the
// owner's unlock clears L.
unsafe impl<P: FutexPlatform> RawLock for ParkingLot13<P> {
    type Token = ();

    const NAME: &'static str = "model:parking_lot-0.13";

    #[inline]
    fn lock(&self) {
        self.0.lock();
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.0.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // (L*) -> (*). U: release, pairs with L.
        if self.0.byte.fetch_sub(LOCKED, Release) & PARKED != 0 {
            self.wake_first();
        }
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use overlock_core::toy::stage::actor;
    use overlock_core::toy::{Toy, kicks};

    use super::*;

    fn unlock(lock: &ParkingLot13<Toy>) {
        // SAFETY: each test unlocks what it has locked, as the same thread.
        unsafe { lock.unlock(()) }
    }

    /// Fails where an unlock hands off, or keeps the lock until it has woken a thread.
    #[test]
    fn the_lock_is_free_before_the_first_is_woken() {
        let lock: &'static ParkingLot13<Toy> = Box::leak(Box::new(Create::create().unwrap()));
        lock.lock();
        let waiter = actor(1, || {
            lock.lock();
            unlock(lock);
        });
        waiter.sleep();
        assert!(lock.is_contended());
        unlock(lock);
        assert!(!lock.is_locked() && !lock.is_contended());
        assert!(waiter.is_kicked());
        waiter.end();
        assert!(!lock.is_locked());
        let before = kicks();
        lock.lock();
        unlock(lock);
        assert_eq!(kicks(), before, "nobody waits");
    }
}
