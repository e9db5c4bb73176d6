//! Mutual exclusion.

use std::fmt;
use std::marker::PhantomData;

use overlock_core::Deadline;
use overlock_core::raw::{
    ConstLock, RawCancelLock, RawFairLock, RawLock, RawSendLock, RawTimedLock,
};

use super::monitor::{Limit, Monitor};
use crate::System;
use crate::cancel::CancelToken;

/// In the place of [`overlock_core::sleep::Overlock`].
pub struct Overlock<P>(Monitor<bool>, PhantomData<fn() -> P>);

/// In the place of [`overlock_core::sleep::FairOverlock`]: which waiter is next is the checker's
/// choice.
pub type FairOverlock<P> = Overlock<P>;

fn take(held: &mut bool) -> Option<()> {
    (!std::mem::replace(held, true)).then_some(())
}

impl<P: 'static> Overlock<P> {
    fn lock_within(&self, limit: Limit<'_>) -> Option<()> {
        self.0.until_limit(limit, take)
    }
}

impl<P: 'static> ConstLock for Overlock<P> {
    const INIT: Self = Overlock(Monitor::new(false), PhantomData);
}

// SAFETY: the state names no thread.
unsafe impl<P> RawSendLock for Overlock<P> {}

// SAFETY: the state says that it is held from `take` to the end of that acquisition, and changes
// under the monitor's lock.
unsafe impl<P: 'static> RawLock for Overlock<P> {
    type Token = ();
    const NAME: &'static str = "model";

    fn lock(&self) {
        self.0.until(take);
    }

    fn try_lock(&self) -> Option<()> {
        self.0.look(take)
    }

    unsafe fn unlock(&self, (): ()) {
        self.0.change(|held| *held = false);
    }

    fn is_locked(&self) -> bool {
        self.0.look(|held| *held)
    }

    fn is_contended(&self) -> bool {
        self.0.has_sleepers()
    }
}

// SAFETY: as above.
unsafe impl<P: 'static> RawTimedLock for Overlock<P> {
    fn lock_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.lock_within(Limit {
            deadline: Some(deadline.into()),
            cancel: None,
        })
    }
}

// SAFETY: as above.
unsafe impl<P: 'static> RawCancelLock<System> for Overlock<P> {
    fn lock_cancellable(&self, cancel: &CancelToken, deadline: Option<Deadline>) -> Option<()> {
        self.lock_within(Limit {
            deadline,
            cancel: Some(cancel),
        })
    }
}

// SAFETY: as above.
unsafe impl<P: 'static> RawFairLock for Overlock<P> {
    unsafe fn unlock_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock(()) }
    }
}

impl<P> fmt::Debug for Overlock<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
