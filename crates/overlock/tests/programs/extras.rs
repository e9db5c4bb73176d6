//! The abilities of a lock beyond `RawLock` and `RawRwLock`. The compiler finds these, as the
//! registry does not list them.

use std::any::Any;

use overlock::{CancelToken, Linux};
use overlock_core::Instant;
use overlock_core::raw::{
    RawCancelLock, RawDowngradeRwLock, RawFairLock, RawFairRwLock, RawLock, RawRwLock,
    RawTimedLock, RawTimedRwLock, RawUpgradeRwLock,
};
use overlock_core::{Deadline, Platform};

use crate::how::How;

type Until<L> = fn(&L, Instant) -> Option<<L as RawLock>::Token>;

::overlock_family::abilities! {
    [L: RawLock]
    HasUntil, HasNoUntil, until, RawTimedLock, Until<L>, L::lock_until;
}

type Cancellable<L> = fn(&L, &CancelToken, Option<Deadline>) -> Option<<L as RawLock>::Token>;

::overlock_family::abilities! {
    [L: RawLock]
    HasCancel, HasNoCancel, cancellable, RawCancelLock<Linux>, Cancellable<L>, L::lock_cancellable;
}

pub struct Fair<L: RawLock> {
    pub unlock: unsafe fn(&L, L::Token),
    pub bump: unsafe fn(&L, L::Token) -> L::Token,
}

::overlock_family::abilities! {
    [L: RawLock]
    HasFair, HasNoFair, fair, RawFairLock,
    Fair<L>,
    Fair {
        unlock: L::unlock_fair,
        bump: L::bump
    };
}

/// The abilities of a [`RawLock`].
pub struct Extras<L: RawLock> {
    pub until: Option<Until<L>>,
    pub cancellable: Option<Cancellable<L>>,
    pub fair: Option<Fair<L>>,
}

impl<L: RawLock> Extras<L> {
    /// Acquires as `how` says, as far as the lock can. If it may not wait (`may_wait`), it only
    /// tries.
    pub fn acquire(
        &self,
        lock: &L,
        how: How,
        cancel: &CancelToken,
        may_wait: bool,
    ) -> Option<L::Token> {
        match (how, how.deadline(), self.until, self.cancellable) {
            (_, Some(deadline), Some(lock_until), _) => {
                let token = lock_until(lock, deadline);
                assert_in_time(L::NAME, token.is_some(), deadline);
                token
            }
            (How::Cancellable, _, _, Some(lock_cancellable)) => {
                let token = lock_cancellable(lock, cancel, None);
                assert!(token.is_some() || cancel.is_cancelled(), "{}", L::NAME);
                token
            }
            (How::Wait, ..) if may_wait => Some(lock.lock()),
            _ => lock.try_lock(),
        }
    }
}

/// A thread that gives up does so at its deadline.
pub fn assert_in_time(lock: &str, acquired: bool, deadline: Instant) {
    assert!(acquired || Linux::now() >= deadline, "{lock} gave up early");
}

/// The [`Extras`] of a lock type that is named, not a parameter.
macro_rules! extras_of {
    ($lock:ty) => {{
        #[allow(unused_imports)] // each lock needs one of each two
        use crate::extras::{
            HasCancel as _, HasFair as _, HasNoCancel as _, HasNoFair as _, HasNoUntil as _,
            HasUntil as _,
        };
        let probe = ::overlock_family::registry::Probe::<$lock>::new();
        #[allow(clippy::needless_borrow)] // the second reference is what makes it inspect twice
        crate::extras::Extras::<$lock> {
            until: (&probe).until(),
            cancellable: (&probe).cancellable(),
            fair: (&probe).fair(),
        }
    }};
}
pub(crate) use extras_of;

type ReadUntil<L> = fn(&L, Instant) -> Option<<L as RawRwLock>::Read>;
type WriteUntil<L> = fn(&L, Instant) -> Option<<L as RawRwLock>::Write>;

::overlock_family::abilities! {
    [L: RawRwLock]
    HasRwUntil, HasNoRwUntil, rw_until, RawTimedRwLock,
    (ReadUntil<L>, WriteUntil<L>),
    (L::read_until, L::write_until);
}

type Downgrade<L> = unsafe fn(&L, <L as RawRwLock>::Write) -> <L as RawRwLock>::Read;

::overlock_family::abilities! {
    [L: RawRwLock]
    HasDowngrade, HasNoDowngrade, downgrade, RawDowngradeRwLock, Downgrade<L>, L::downgrade;
}

/// An upgradable reader's token, of whatever type it is.
pub type Upgradable = Box<dyn Any>;

/// The writer, or still the upgradable reader.
type Upgraded<L> = Result<<L as RawRwLock>::Write, Upgradable>;

/// The functions of a [`RawUpgradeRwLock`]. Each takes a token of its lock and thread.
pub struct Upgrades<L: RawRwLock> {
    pub acquire: fn(&L, How, bool) -> Option<Upgradable>,
    pub unlock: unsafe fn(&L, Upgradable),
    pub upgrade: unsafe fn(&L, Upgradable, How, bool) -> Upgraded<L>,
    pub downgrade: unsafe fn(&L, Upgradable) -> L::Read,
    pub downgrade_write: unsafe fn(&L, L::Write) -> Upgradable,
}

fn own<T: 'static>(token: Upgradable) -> T {
    *token.downcast().expect("a token of this lock")
}

::overlock_family::abilities! {
    [L: RawRwLock]
    HasUpgrades, HasNoUpgrades, upgrades, RawUpgradeRwLock<Upgradable: 'static>,
    Upgrades<L>,
    Upgrades {
        acquire: |lock, how, may_wait| {
            let token = match how.deadline() {
                Some(deadline) => {
                    let token = lock.upgradable_until(deadline);
                    assert_in_time(L::NAME, token.is_some(), deadline);
                    token
                }
                None if how == How::Wait && may_wait => Some(lock.upgradable()),
                None => lock.try_upgradable(),
            };
            token.map(|token| Box::new(token) as Upgradable)
        },
        // SAFETY: here and below: the caller's promise.
        unlock: |lock, token| unsafe { lock.unlock_upgradable(own(token)) },
        upgrade: |lock, token, how, may_wait| {
            let token = own(token);
            let result = match how.deadline() {
                Some(deadline) => {
                    // SAFETY: as above.
                    let result = unsafe { lock.upgrade_until(token, deadline) };
                    assert_in_time(L::NAME, result.is_ok(), deadline);
                    result
                }
                // SAFETY: as above.
                None if how == How::Wait && may_wait => Ok(unsafe { lock.upgrade(token) }),
                // SAFETY: as above.
                None => unsafe { lock.try_upgrade(token) },
            };
            result.map_err(|token| Box::new(token) as Upgradable)
        },
        // SAFETY: as above.
        downgrade: |lock, token| unsafe { lock.downgrade_upgradable(own(token)) },
        // SAFETY: as above.
        downgrade_write: |lock, token| unsafe { Box::new(lock.downgrade_to_upgradable(token)) },
    };
}

/// The functions of a [`RawFairRwLock`]; as for [`Upgrades`].
pub struct FairRw<L: RawRwLock> {
    pub unlock_read: unsafe fn(&L, L::Read),
    pub unlock_write: unsafe fn(&L, L::Write),
    pub unlock_upgradable: unsafe fn(&L, Upgradable),
    pub bump_read: unsafe fn(&L, L::Read) -> L::Read,
    pub bump_write: unsafe fn(&L, L::Write) -> L::Write,
    pub bump_upgradable: unsafe fn(&L, Upgradable) -> Upgradable,
}

::overlock_family::abilities! {
    [L: RawRwLock]
    HasFairRw, HasNoFairRw, fair_rw, RawFairRwLock<Upgradable: 'static>,
    FairRw<L>,
    FairRw {
        unlock_read: L::unlock_read_fair,
        unlock_write: L::unlock_write_fair,
        // SAFETY: here and below: the caller's promise.
        unlock_upgradable: |lock, token| unsafe { lock.unlock_upgradable_fair(own(token)) },
        bump_read: L::bump_read,
        bump_write: L::bump_write,
        // SAFETY: as above.
        bump_upgradable: |lock, token| unsafe { Box::new(lock.bump_upgradable(own(token))) },
    };
}

/// The abilities of a [`RawRwLock`] beyond that.
pub struct RwExtras<L: RawRwLock> {
    pub until: Option<(ReadUntil<L>, WriteUntil<L>)>,
    pub downgrade: Option<Downgrade<L>>,
    pub upgrades: Option<Upgrades<L>>,
    pub fair: Option<FairRw<L>>,
}

impl<L: RawRwLock> RwExtras<L> {
    /// As [`Extras::acquire`].
    pub fn read(&self, lock: &L, how: How, may_wait: bool) -> Option<L::Read> {
        match (how.deadline(), self.until) {
            (Some(deadline), Some((read_until, _))) => {
                let token = read_until(lock, deadline);
                assert_in_time(L::NAME, token.is_some(), deadline);
                token
            }
            _ if how == How::Wait && may_wait => Some(lock.read()),
            _ => lock.try_read(),
        }
    }

    /// As [`Extras::acquire`].
    pub fn write(&self, lock: &L, how: How, may_wait: bool) -> Option<L::Write> {
        match (how.deadline(), self.until) {
            (Some(deadline), Some((_, write_until))) => {
                let token = write_until(lock, deadline);
                assert_in_time(L::NAME, token.is_some(), deadline);
                token
            }
            _ if how == How::Wait && may_wait => Some(lock.write()),
            _ => lock.try_write(),
        }
    }
}

/// The [`RwExtras`] of a lock type that is named, not a parameter.
macro_rules! rw_extras_of {
    ($lock:ty) => {{
        #[allow(unused_imports)] // each lock needs one of each two
        use crate::extras::{
            HasDowngrade as _, HasFairRw as _, HasNoDowngrade as _, HasNoFairRw as _,
            HasNoRwUntil as _, HasNoUpgrades as _, HasRwUntil as _, HasUpgrades as _,
        };
        let probe = ::overlock_family::registry::Probe::<$lock>::new();
        #[allow(clippy::needless_borrow)] // the second reference is what makes it inspect twice
        crate::extras::RwExtras::<$lock> {
            until: (&probe).rw_until(),
            downgrade: (&probe).downgrade(),
            upgrades: (&probe).upgrades(),
            fair: (&probe).fair_rw(),
        }
    }};
}
pub(crate) use rw_extras_of;
