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
    shown: Option<Shown>,
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
        let mut wait = Self::begin_unseen(at, holder, count);
        wait.show();
        wait
    }

    /// The same, but the wait is not [shown](Self::show) yet where it is expected to be so short
    /// that nothing but its length is of interest.
    pub fn begin_briefly(at: Spot, holder: Holder, count: u32) -> Self {
        let mut wait = Self::begin_unseen(at, holder, count);
        if !deferred::expects(&wait.at, wait.began_ns) {
            wait.show();
        }
        wait
    }

    fn begin_unseen(at: Spot, holder: Holder, count: u32) -> Self {
        Wait {
            at,
            began_ns: clock::now(),
            holder,
            count,
            shown: None,
        }
    }

    pub fn is_shown(&self) -> bool {
        self.shown.is_some()
    }

    /// Shows the wait while it lasts.
    pub fn show(&mut self) {
        let shown = single::begin(&self.at, self.began_ns, self.holder.tid, self.count);
        self.shown = Some(shown);
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
        self.hide(now, &mut waited);
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
        self.hide(now, &mut waited);
        if deferred::takes(&self.at, now, &waited) {
            return;
        }
        record::without_flight(&self.at, 1, Some((now, &waited)));
    }

    /// The wait is over, with the lock.
    fn hide(&self, now: u64, waited: &mut flight::Waited) {
        match &self.shown {
            Some(shown) => shown.over(self.at.object, now, waited),
            None => waited.has_spun = true,
        }
    }

    /// Ends the wait without the lock.
    pub fn gave_up(self) {
        let now = clock::now();
        let waited = self.ends(now, 0);
        if let Some(shown) = &self.shown {
            shown.gave_up();
        }
        record::gave_up(&self.at, now, &waited);
    }
}
