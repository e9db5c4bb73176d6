//! lock_api's traits for the condition variable.

use std::time::{Duration, Instant};

use crate::locks::{Waiters, after};
use crate::{GuardMarker, RawMutex};

/// The raw condition variable of [`Condvar`](crate::Condvar): overlock's.
#[derive(Debug)]
pub struct RawCondvar(Waiters);

// SAFETY: a wait releases the mutex after it has joined the waiters, and acquires it before it
// returns.
unsafe impl lock_api::RawCondvar for RawCondvar {
    const INIT: Self = RawCondvar(Waiters::new());

    type RawMutex = RawMutex;

    unsafe fn wait(&self, mutex: &RawMutex, _: &mut GuardMarker) {
        // SAFETY: the caller holds the mutex. So below.
        unsafe { self.0.wait(&mutex.0, None) };
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawCondvarTimed for RawCondvar {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        after(*timeout)
    }

    unsafe fn wait_for(&self, mutex: &RawMutex, _: &mut GuardMarker, timeout: &Duration) -> bool {
        // SAFETY: as above.
        unsafe { !self.0.wait(&mutex.0, after(*timeout)) }
    }

    unsafe fn wait_until(&self, mutex: &RawMutex, _: &mut GuardMarker, timeout: &Instant) -> bool {
        // SAFETY: as above.
        unsafe { !self.0.wait(&mutex.0, Some(*timeout)) }
    }
}
