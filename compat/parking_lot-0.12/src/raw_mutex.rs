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

            type GuardMarker = GuardMarker;

            #[inline]
            fn lock(&self) {
                self.0.lock();
            }

            #[inline]
            fn try_lock(&self) -> bool {
                self.0.try_lock()
            }

            #[inline]
            unsafe fn unlock(&self) {
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
            unsafe fn unlock_fair(&self) {
                // SAFETY: as above.
                unsafe { self.0.unlock_fair() }
            }

            #[inline]
            unsafe fn bump(&self) {
                // SAFETY: as above.
                unsafe { self.0.bump() }
            }
        }

        // SAFETY: as above.
        unsafe impl lock_api::RawMutexTimed for $mutex {
            type Duration = Duration;
            type Instant = Instant;

            fn try_lock_for(&self, timeout: Duration) -> bool {
                self.0.lock_until(after(timeout))
            }

            fn try_lock_until(&self, timeout: Instant) -> bool {
                self.0.lock_until(Some(timeout))
            }
        }
    };
}

mutex!(RawMutex, unlock);
mutex!(RawFairMutex, unlock_fair);
