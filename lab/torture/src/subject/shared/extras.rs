//! The abilities of a reader-writer lock beyond its raw trait, by the words of the lists of locks.

use overlock::CancelToken;
use overlock::rw::OverlockRw;
use overlock_core::Instant;
use overlock_core::raw::{RawDowngradeRwLock, RawFairRwLock, RawRwLock, RawTimedRwLock};
use overlock_core::rw::overlock_rw::Passing;

use super::upgrade::{fair_visit, visit};
use super::{Inner, Shared};
use crate::plan::Step;
use crate::worker::Worker;

type Read<L> = <L as RawRwLock>::Read;
type Write<L> = <L as RawRwLock>::Write;

pub struct Timed<L: RawRwLock> {
    pub read: fn(&L, Instant) -> Option<Read<L>>,
    pub write: fn(&L, Instant) -> Option<Write<L>>,
}

/// Unless cancelled.
pub struct Cancellable<L: RawRwLock> {
    pub read: fn(&L, &CancelToken) -> Option<Read<L>>,
    pub write: fn(&L, &CancelToken) -> Option<Write<L>>,
}

/// Releases in favour of those that wait, and upgradable readers.
pub struct Fair<L: RawRwLock> {
    pub unlock_read: unsafe fn(&L, Read<L>),
    pub unlock_write: unsafe fn(&L, Write<L>),
    pub bump_read: unsafe fn(&L, Read<L>) -> Read<L>,
    pub bump_write: unsafe fn(&L, Write<L>) -> Write<L>,
    pub upgradable: Upgradable<L>,
    pub upgradable_fair: Upgradable<L>,
}

/// From writer to reader.
pub type Downgrade<L> = unsafe fn(&L, Write<L>) -> Read<L>;

/// A whole visit that begins as the upgradable reader.
pub type Upgradable<L> = fn(&Shared<L>, &Worker, usize, &Step, Inner<'_>);

/// The abilities of a lock beyond [`RawRwLock`].
pub struct SharedExtras<L: RawRwLock> {
    pub timed: Option<Timed<L>>,
    pub cancellable: Option<Cancellable<L>>,
    pub fair: Option<Fair<L>>,
    pub downgrade: Option<Downgrade<L>>,
    /// As a reader, past those that wait.
    pub past: Option<fn(&L) -> Read<L>>,
    /// No more than so many may be inside.
    pub most_readers: Option<u64>,
}

impl<L: RawRwLock> SharedExtras<L> {
    pub fn basic() -> Self {
        SharedExtras {
            timed: None,
            cancellable: None,
            fair: None,
            downgrade: None,
            past: None,
            most_readers: None,
        }
    }
}

impl<L: RawTimedRwLock + RawDowngradeRwLock> SharedExtras<L> {
    pub fn timed() -> Self {
        SharedExtras {
            timed: Some(Timed {
                read: L::read_until,
                write: L::write_until,
            }),
            downgrade: Some(L::downgrade),
            ..Self::basic()
        }
    }
}

impl SharedExtras<OverlockRw> {
    pub fn full() -> Self {
        SharedExtras {
            fair: Some(Fair {
                unlock_read: OverlockRw::unlock_read_fair,
                unlock_write: OverlockRw::unlock_write_fair,
                bump_read: OverlockRw::bump_read,
                bump_write: OverlockRw::bump_write,
                upgradable: visit,
                upgradable_fair: fair_visit,
            }),
            past: Some(|lock| {
                let passed = lock.read_passing(Passing::AtOnce, None);
                passed.expect("few readers");
            }),
            ..Self::timed()
        }
    }
}
