//! lock_api's traits for the condition variable, which waits with an [`Overlock`] there.

use crate::lock_api::GuardState;
use crate::platform::{Deadline, FutexPlatform};
use crate::sleep::{Condvar, Overlock};

/// A wait ends without a notification only for a thread without a queue node: see the
/// [module](crate::sleep::condvar).
// SAFETY: the waiter is in the list before it releases the lock, and has the lock again when it
// returns. `renew` aborts the process if that panics.
unsafe impl<P: FutexPlatform> lock_api::RawCondvar for Condvar<P> {
    const INIT: Self = Condvar::new();

    type RawMutex = Overlock<P>;

    unsafe fn wait(&self, mutex: &Overlock<P>, guard: &mut GuardState<()>) {
        // SAFETY: the caller's promise.
        unsafe { wait(self, mutex, guard, None) };
    }

    fn notify_one(&self) -> bool {
        Condvar::notify_one(self)
    }

    fn notify_all(&self) -> usize {
        Condvar::notify_all(self)
    }
}

// SAFETY: as above.
unsafe impl<P: FutexPlatform> lock_api::RawCondvarTimed for Condvar<P> {
    fn checked_duration_to_instant(timeout: &core::time::Duration) -> Option<crate::Instant> {
        Some(P::now().plus(*timeout))
    }

    unsafe fn wait_until(
        &self,
        mutex: &Overlock<P>,
        guard: &mut GuardState<()>,
        timeout: &crate::Instant,
    ) -> bool {
        // SAFETY: the caller's promise.
        !unsafe { wait(self, mutex, guard, Some((*timeout).into())) }
    }
}

/// Returns whether it was notified.
///
/// # Safety
///
/// The calling thread holds `mutex`, with the state `guard`.
unsafe fn wait<P: FutexPlatform>(
    condvar: &Condvar<P>,
    mutex: &Overlock<P>,
    guard: &mut GuardState<()>,
    deadline: Option<Deadline>,
) -> bool {
    let mut notified = false;
    guard.renew(|token| {
        // SAFETY: the caller's promise.
        let (token, was_notified) = unsafe { condvar.wait_limited(mutex, token, deadline, None) };
        notified = was_notified;
        token
    });
    notified
}
