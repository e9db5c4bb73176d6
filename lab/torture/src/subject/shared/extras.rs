//! The abilities of a reader-writer lock beyond its raw trait, found by the compiler: the lists of
//! locks do not say.

use overlock::CancelToken;
use overlock::rw::OverlockRw;
use overlock_core::Instant;
use overlock_core::raw::{
    RawDowngradeRwLock, RawFairRwLock, RawRwLock, RawTimedRwLock, RawUpgradeRwLock,
};
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

/// In favour of those that wait.
pub struct Fair<L: RawRwLock> {
    pub unlock_read: unsafe fn(&L, Read<L>),
    pub unlock_write: unsafe fn(&L, Write<L>),
    pub bump_read: unsafe fn(&L, Read<L>) -> Read<L>,
    pub bump_write: unsafe fn(&L, Write<L>) -> Write<L>,
    pub upgradable: Upgradable<L>,
}

/// A lock whose readers may pass those that wait.
#[doc(hidden)]
pub trait ReadPast: RawRwLock {
    fn read_past(&self) -> Self::Read;
}

impl ReadPast for OverlockRw {
    fn read_past(&self) {
        self.read_passing(Passing::AtOnce, None)
            .expect("few readers");
    }
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
    pub upgradable: Option<Upgradable<L>>,
    /// As a reader, past those that wait.
    pub past: Option<fn(&L) -> Read<L>>,
    /// No more than so many may be inside.
    pub most_readers: Option<u64>,
}

::overlock_family::abilities! {
    [L: RawRwLock]
    HasTimed, NoTimed, timed, RawTimedRwLock,
    Timed<L>,
    Timed {
        read: L::read_until,
        write: L::write_until
    };
    HasDowngrade, NoDowngrade, downgrade, RawDowngradeRwLock, Downgrade<L>, L::downgrade;
    HasFair, NoFair, fair, RawFairRwLock,
    Fair<L>,
    Fair {
        unlock_read: L::unlock_read_fair,
        unlock_write: L::unlock_write_fair,
        bump_read: L::bump_read,
        bump_write: L::bump_write,
        upgradable: fair_visit::<L>
    };
    HasPast, NoPast, past, ReadPast, fn(&L) -> Read<L>, L::read_past;
    HasUpgrade, NoUpgrade, upgradable, RawUpgradeRwLock, Upgradable<L>, visit::<L>;
}

/// The [`SharedExtras`] of a lock type that is named, not a parameter.
macro_rules! shared_extras {
    ($lock:ty) => {{
        #[allow(unused_imports)] // each lock needs one of each two
        use crate::subject::shared::{
            HasDowngrade as _, HasFair as _, HasPast as _, HasTimed as _, HasUpgrade as _,
            NoDowngrade as _, NoFair as _, NoPast as _, NoTimed as _, NoUpgrade as _,
        };
        let probe = ::overlock_family::registry::Probe::<$lock>::new();
        #[allow(clippy::needless_borrow)] // the second reference is what makes it look twice
        crate::subject::SharedExtras::<$lock> {
            timed: (&probe).timed(),
            cancellable: None,
            fair: (&probe).fair(),
            downgrade: (&probe).downgrade(),
            upgradable: (&probe).upgradable(),
            past: (&probe).past(),
            most_readers: None,
        }
    }};
}
pub(crate) use shared_extras;
