//! A semaphore as a reader-writer lock: a reader takes one permit, a writer all of them.

use overlock::{CancelToken, Linux};
use overlock_core::Deadline;
use overlock_core::facts::{Bound, Facts, HasFacts};
use overlock_core::raw::{ConstLock, RawRwLock, RawTimedRwLock};
use overlock_core::sleep::semaphore::Semaphore;

use super::shared::{Cancellable, SharedExtras, Timed};

/// Permits of a [`Permits`]: so many read at a time.
const PERMITS: u32 = 3;

/// A semaphore, used as a reader-writer lock.
#[derive(Debug)]
pub struct Permits(Semaphore<Linux>);

impl Permits {
    /// Its abilities beyond its raw trait.
    pub fn extras() -> SharedExtras<Self> {
        SharedExtras {
            timed: Some(Timed {
                read: Self::read_until,
                write: Self::write_until,
            }),
            cancellable: Some(Cancellable {
                read: |lock, token| lock.take(1, None, Some(token)),
                write: |lock, token| lock.take(PERMITS, None, Some(token)),
            }),
            downgrade: Some(|lock, ()| lock.0.release_many(PERMITS - 1)),
            most_readers: Some(u64::from(PERMITS)),
            ..SharedExtras::basic()
        }
    }

    fn take(&self, n: u32, until: Option<Deadline>, token: Option<&CancelToken>) -> Option<()> {
        self.0.acquire_many_limited(n, until, token).then_some(())
    }
}

impl HasFacts for Permits {
    const FACTS: Facts = Facts {
        about: "permits: a reader takes one, a writer all",
        bound: Bound::Order,
        tried_in_handlers: true,
        ..Facts::SLEEPING
    };
}

impl ConstLock for Permits {
    const INIT: Self = Permits(Semaphore::new(PERMITS));
}

// SAFETY: there are as many permits as a writer holds, so it holds them alone.
unsafe impl RawRwLock for Permits {
    type Read = ();
    type Write = ();

    const NAME: &'static str = "semaphore";

    fn read(&self) {
        self.0.acquire();
    }

    fn try_read(&self) -> Option<()> {
        self.0.try_acquire().then_some(())
    }

    unsafe fn unlock_read(&self, (): ()) {
        self.0.release();
    }

    fn write(&self) {
        self.0.acquire_many(PERMITS);
    }

    fn try_write(&self) -> Option<()> {
        self.0.try_acquire_many(PERMITS).then_some(())
    }

    unsafe fn unlock_write(&self, (): ()) {
        self.0.release_many(PERMITS);
    }

    fn is_locked(&self) -> bool {
        self.0.available() != PERMITS
    }

    fn is_write_locked(&self) -> bool {
        self.0.available() == 0
    }

    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }
}

// SAFETY: as above.
unsafe impl RawTimedRwLock for Permits {
    fn read_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.take(1, Some(deadline.into()), None)
    }

    fn write_until(&self, deadline: impl Into<Deadline>) -> Option<()> {
        self.take(PERMITS, Some(deadline.into()), None)
    }
}
