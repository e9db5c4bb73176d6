//! The recommended mutex, with a handoff at each unlock.

use crate::platform::{FutexPlatform, Platform};
use crate::raw::{ConstLock, RawCancelLock, RawFairLock, RawFork, RawLock, RawTimedLock, forward};
use crate::sleep::overlock::Overlock;

/// An [`Overlock`] each of whose unlocks hands it off to a sleeper, if there is one, past all other
/// threads.
///
/// A handoff costs a wake-up during which nobody is in the critical section. Waiters that still
/// spin are not in the queue: they may take a lock that nobody sleeps for.
#[derive(Debug)]
#[repr(transparent)]
pub struct FairOverlock<P: Platform>(Overlock<P>);

impl<P: Platform> FairOverlock<P> {
    /// A new, unlocked lock.
    pub const fn new() -> Self {
        FairOverlock(Overlock::new())
    }
}

impl<P: Platform> Default for FairOverlock<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> ConstLock for FairOverlock<P> {
    const INIT: Self = Self::new();
}

// SAFETY: as for `Overlock`. It is at the same address (`repr(transparent)`), so a condition
// variable may make its waiters sleepers of that.
unsafe impl<P: FutexPlatform> RawLock for FairOverlock<P> {
    type Token = ();

    const NAME: &'static str = "fair_overlock";

    forward! {
        methods RawLock
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        if self.0.is_contended() {
            // SAFETY: the caller's promise.
            unsafe { self.0.unlock_fair(()) }
        } else {
            // SAFETY: as above.
            unsafe { self.0.unlock(()) }
        }
    }
}

forward! {
    impl [P: FutexPlatform] RawTimedLock for FairOverlock<P>;
    impl [P: FutexPlatform] RawCancelLock<P> for FairOverlock<P>;
    impl [P: FutexPlatform] RawFairLock for FairOverlock<P>;
    impl [P: FutexPlatform] RawFork for FairOverlock<P>;
}
