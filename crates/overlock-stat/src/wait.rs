//! Waits for locks.

use crate::flight::{self, Holder};
use crate::single::{self, Shown};
use crate::{Spot, clock, deferred, record};

/// A wait for a lock.
#[derive(Debug)]
pub struct Wait {
    at: Spot,
    pub began_ns: u64,
    holder: Holder,
    count: u32,
    shown: Shown,
}

/// A wait that has ended with a lock.
#[derive(Clone, Copy, Debug)]
pub struct Over {
    /// The flight's number, for the release.
    pub flight: u32,
    /// When it has ended.
    pub now: u64,
}

impl Wait {
    /// Begins a wait for a lock that is held by `holder`; `count` is the lock's acquisition count.
    pub fn begin(at: Spot, holder: Holder, count: u32) -> Self {
        let began_ns = clock::now();
        Wait {
            shown: single::begin(&at, began_ns, holder.tid, count),
            at,
            began_ns,
            holder,
            count,
        }
    }

    /// The result of a wait that ends at `now`, while others have acquired the lock `passed` times.
    fn ends(&self, now: u64, passed: u32) -> flight::Waited {
        flight::Waited::new(now.saturating_sub(self.began_ns), self.holder, passed)
    }

    /// Ends the wait with the lock, whose count is `count`, this acquisition included.
    pub fn over(self, count: u32) -> Over {
        let now = clock::now();
        let ns = now.saturating_sub(self.began_ns);
        Over {
            flight: self.over_after(ns, now, count),
            now,
        }
    }

    /// The same for a wait of `ns`.
    pub fn over_after(self, ns: u64, now: u64, count: u32) -> u32 {
        let passed = count.wrapping_sub(self.count).saturating_sub(1);
        let mut waited = flight::Waited::new(ns, self.holder, passed);
        self.shown.over(self.at.object, now, &mut waited);
        if deferred::takes(&self.at, now, &waited) {
            return 0;
        }
        flight::begin(self.at, now, 1, Some(waited))
    }

    /// Ends the wait with a share of the lock, whose count is `count`, without this acquisition.
    /// Its hold time is not recorded.
    pub fn over_shared(self, count: u32) {
        let passed = count.wrapping_sub(self.count);
        let now = clock::now();
        let mut waited = self.ends(now, passed);
        self.shown.over(self.at.object, now, &mut waited);
        if deferred::takes(&self.at, now, &waited) {
            return;
        }
        record::without_flight(&self.at, 1, Some((now, &waited)));
    }

    /// Ends the wait without the lock.
    pub fn gave_up(self) {
        let now = clock::now();
        let waited = self.ends(now, 0);
        self.shown.gave_up();
        record::gave_up(&self.at, now, &waited);
    }
}
