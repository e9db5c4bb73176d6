//! The abilities of a lock beyond `RawLock` and `RawRwLock`, by the words of the registry.

use overlock::{CancelToken, System};
use overlock_core::Instant;
use overlock_core::raw::{
    RawCancelLock, RawDowngradeRwLock, RawFairLock, RawFairRwLock, RawLock, RawRwLock,
    RawTimedLock, RawTimedRwLock,
};
use overlock_core::{Deadline, Platform};

use crate::how::How;

type Until<L> = fn(&L, Instant) -> Option<<L as RawLock>::Token>;

type Cancellable<L> = fn(&L, &CancelToken, Option<Deadline>) -> Option<<L as RawLock>::Token>;

pub struct Fair<L: RawLock> {
    pub unlock: unsafe fn(&L, L::Token),
    pub bump: unsafe fn(&L, L::Token) -> L::Token,
}

/// The abilities of a [`RawLock`].
pub struct Extras<L: RawLock> {
    pub until: Option<Until<L>>,
    pub cancellable: Option<Cancellable<L>>,
    pub fair: Option<Fair<L>>,
}

impl<L: RawTimedLock> Extras<L> {
    pub fn timed() -> Self {
        Extras {
            until: Some(L::lock_until),
            ..Self::basic()
        }
    }
}

impl<L: RawTimedLock + RawCancelLock<System> + RawFairLock> Extras<L> {
    pub fn full() -> Self {
        Extras {
            cancellable: Some(L::lock_cancellable),
            fair: Some(Fair {
                unlock: L::unlock_fair,
                bump: L::bump,
            }),
            ..Self::timed()
        }
    }
}

impl<L: RawLock> Extras<L> {
    pub fn basic() -> Self {
        Extras {
            until: None,
            cancellable: None,
            fair: None,
        }
    }

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
    assert!(
        acquired || System::now() >= deadline,
        "{lock} gave up early"
    );
}

type ReadUntil<L> = fn(&L, Instant) -> Option<<L as RawRwLock>::Read>;
type WriteUntil<L> = fn(&L, Instant) -> Option<<L as RawRwLock>::Write>;

type Downgrade<L> = unsafe fn(&L, <L as RawRwLock>::Write) -> <L as RawRwLock>::Read;

/// The functions of a [`RawFairRwLock`]. Those of its upgradable reader have no token: all such
/// locks can do without.
pub struct FullRw<L: RawRwLock> {
    pub upgradable: fn(&L, How, bool) -> bool,
    pub unlock_upgradable: unsafe fn(&L),
    /// Returns whether it is the writer now; else it is the upgradable reader still.
    pub upgrade: unsafe fn(&L, How, bool) -> Option<L::Write>,
    pub downgrade_upgradable: unsafe fn(&L) -> L::Read,
    pub downgrade_to_upgradable: unsafe fn(&L, L::Write),
    pub unlock_read_fair: unsafe fn(&L, L::Read),
    pub unlock_write_fair: unsafe fn(&L, L::Write),
    pub unlock_upgradable_fair: unsafe fn(&L),
    pub bump_read: unsafe fn(&L, L::Read) -> L::Read,
    pub bump_write: unsafe fn(&L, L::Write) -> L::Write,
    pub bump_upgradable: unsafe fn(&L),
}

/// The abilities of a [`RawRwLock`] beyond that.
pub struct RwExtras<L: RawRwLock> {
    pub until: Option<(ReadUntil<L>, WriteUntil<L>)>,
    pub downgrade: Option<Downgrade<L>>,
    pub full: Option<FullRw<L>>,
}

impl<L: RawTimedRwLock + RawDowngradeRwLock> RwExtras<L> {
    pub fn timed() -> Self {
        RwExtras {
            until: Some((L::read_until, L::write_until)),
            downgrade: Some(L::downgrade),
            full: None,
        }
    }
}

impl<L: RawFairRwLock<Upgradable = ()>> RwExtras<L> {
    pub fn full() -> Self {
        let full = FullRw {
            upgradable: |lock: &L, how, may_wait| match how.deadline() {
                Some(deadline) => {
                    let acquired = lock.upgradable_until(deadline).is_some();
                    assert_in_time(L::NAME, acquired, deadline);
                    acquired
                }
                None if how == How::Wait && may_wait => {
                    lock.upgradable();
                    true
                }
                None => lock.try_upgradable().is_some(),
            },
            upgrade: |lock, how, may_wait| match how.deadline() {
                Some(deadline) => {
                    // SAFETY: here and below: the caller's promise.
                    let result = unsafe { lock.upgrade_until((), deadline) };
                    assert_in_time(L::NAME, result.is_ok(), deadline);
                    result.ok()
                }
                // SAFETY: as above.
                None if how == How::Wait && may_wait => Some(unsafe { lock.upgrade(()) }),
                // SAFETY: as above.
                None => unsafe { lock.try_upgrade(()) }.ok(),
            },
            // SAFETY: as above.
            unlock_upgradable: |lock| unsafe { lock.unlock_upgradable(()) },
            // SAFETY: as above.
            downgrade_upgradable: |lock| unsafe { lock.downgrade_upgradable(()) },
            // SAFETY: as above.
            downgrade_to_upgradable: |lock, token| unsafe { lock.downgrade_to_upgradable(token) },
            unlock_read_fair: L::unlock_read_fair,
            unlock_write_fair: L::unlock_write_fair,
            // SAFETY: as above.
            unlock_upgradable_fair: |lock| unsafe { lock.unlock_upgradable_fair(()) },
            bump_read: L::bump_read,
            bump_write: L::bump_write,
            // SAFETY: as above.
            bump_upgradable: |lock| unsafe { lock.bump_upgradable(()) },
        };
        RwExtras {
            full: Some(full),
            ..Self::timed()
        }
    }
}

impl<L: RawRwLock> RwExtras<L> {
    pub fn basic() -> Self {
        RwExtras {
            until: None,
            downgrade: None,
            full: None,
        }
    }

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
