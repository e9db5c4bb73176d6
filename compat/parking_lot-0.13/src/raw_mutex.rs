//! lock_api's traits for the two mutexes.

use std::time::{Duration, Instant};

use crate::GuardMarker;
use crate::locks::{Exclusive, after};

/// The raw mutex of [`Mutex`](crate::Mutex): overlock's.
#[derive(Debug)]
pub struct RawMutex(pub(crate) Exclusive);

/// The raw mutex of [`FairMutex`](crate::FairMutex): each unlock hands it off.
#[derive(Debug)]
pub struct RawFairMutex(Exclusive);

macro_rules! mutex {
    ($mutex:ident, $unlock:ident) => {
        // SAFETY: overlock's mutex has one owner at a time, and its acquisitions and releases have
        // acquire and release ordering. So below.
        unsafe impl lock_api::RawMutex for $mutex {
            const INIT: Self = $mutex(Exclusive::new());

            type Guard = GuardMarker;

            #[inline]
            fn lock(&self) -> GuardMarker {
                self.0.lock();
                GuardMarker::new()
            }

            #[inline]
            fn try_lock(&self) -> Option<GuardMarker> {
                self.0.try_lock().then(GuardMarker::new)
            }

            #[inline]
            unsafe fn unlock(&self, _: GuardMarker) {
                // SAFETY: the caller holds the lock. So below.
                unsafe { self.0.$unlock() }
            }

            #[inline]
            fn is_locked(&self) -> bool {
                self.0.is_locked()
            }
        }

        // SAFETY: as above.
        unsafe impl lock_api::RawMutexFair for $mutex {
            #[inline]
            unsafe fn unlock_fair(&self, _: GuardMarker) {
                // SAFETY: as above.
                unsafe { self.0.unlock_fair() }
            }

            #[inline]
            unsafe fn bump(&self, _: &mut GuardMarker) {
                // SAFETY: as above.
                unsafe { self.0.bump() }
            }
        }

        // SAFETY: as above.
        unsafe impl lock_api::RawMutexTimed for $mutex {
            type Duration = Duration;
            type Instant = Instant;

            fn try_lock_for(&self, timeout: Duration) -> Option<GuardMarker> {
                self.0.lock_until(after(timeout)).then(GuardMarker::new)
            }

            fn try_lock_until(&self, timeout: Instant) -> Option<GuardMarker> {
                self.0.lock_until(Some(timeout)).then(GuardMarker::new)
            }
        }
    };
}

mutex!(RawMutex, unlock);
mutex!(RawFairMutex, unlock_fair);
