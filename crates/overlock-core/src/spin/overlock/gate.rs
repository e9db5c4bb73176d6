//! What a reader-writer lock needs of the lock that stands before it: an owner that lets readers pass.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::{FREE, Gate, Overlock, Policy};
use crate::diagram::diagram;
use crate::platform::{Atomic, Platform};
use crate::raw::RawLock;
use crate::sleep::wait_list::Limit;

/// Held by a reader that is on its way in: other readers need not wait for it. (No owner's CPU is
/// recorded in a gate, so the value is free.)
const PASSING: u8 = 1;

diagram! {
    "gate" {
        Open = "held -> passing: readers may enter",
    }
}

impl<P: Platform> Overlock<P, Gate> {
    /// Whether readers may enter. `SeqCst`, and so is every acquisition: of a reader that counts itself and then
    /// looks here, and a writer that acquires and then looks at the count, one sees the other. With the
    /// acquire of LA where it says yes.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.locked.load(SeqCst) <= PASSING
    }

    /// The owner is a reader on its way in.
    pub(crate) fn open(&self) {
        // held -> passing. Release, pairs with the acquire in `is_open`: who enters now sees what the last writer did.
        self.locked.store(PASSING, Gate::RELEASE);
        Step::Open.taken::<P>();
    }

    /// Whoever had closed it is gone, by a fork.
    pub(crate) fn reopen(&self) {
        self.locked.store(FREE, Relaxed);
    }

    /// Whether nobody is at the gate, not even on its way in.
    pub(crate) fn is_deserted(&self) -> bool {
        self.locked.load(Relaxed) == FREE && !self.is_contended()
    }

    /// Acquires unless `limit` is reached first. `reads` says how much has been done with the lock behind the gate
    /// that did not pass the gate.
    #[inline]
    pub(crate) fn lock_within(&self, limit: &Limit<'_, P>, reads: impl Fn() -> u32) -> bool {
        self.take() || self.lock_slow(limit, reads)
    }

    /// What has been done by those that passed the gate.
    pub(crate) fn passed(&self) -> u32 {
        self.done.load(Relaxed)
    }
}
