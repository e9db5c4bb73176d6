//! Without the validator.

use crate::watch::How;

/// Whether attempts come before waits.
pub(crate) const TRIES: bool = false;

/// Identifies a lock's class.
pub(crate) struct Key;

impl Key {
    #[inline(always)]
    pub(crate) const fn here() -> Key {
        Key
    }

    #[inline(always)]
    pub(crate) const fn named(_: &'static str) -> Key {
        Key
    }

    /// The lock is about to be acquired, however long that takes.
    #[inline(always)]
    pub(crate) fn wanted<R>(&self, _: &R, _: How, _: u8) -> Wanted {
        Wanted
    }

    /// Acquires by `attempt`, which ends by itself.
    #[inline(always)]
    pub(crate) fn attempt<R, T>(
        &self,
        _: &R,
        _: How,
        attempt: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        attempt()
    }
}

/// An acquisition that may wait.
pub(crate) struct Wanted;

impl Wanted {
    /// The lock is not free, and the caller waits for it.
    #[inline(always)]
    pub(crate) fn waits(&mut self) {}

    /// The lock is acquired.
    #[inline(always)]
    pub(crate) fn acquired(self) {}
}

/// The lock is about to be released.
#[inline(always)]
pub(crate) fn release<R>(_: &R) {}

/// The lock is about to be held as a reader.
#[inline(always)]
pub(crate) fn downgrade<R>(_: &R) {}

/// The upgradable reader has become the writer, or the other way round.
#[inline(always)]
pub(crate) fn change<R>(_: &R, _: How) {}

/// Makes the upgradable reader the writer, by `upgrade`.
#[inline(always)]
pub(crate) fn upgrade<R, T>(_: &R, upgrade: impl FnOnce() -> T) -> T {
    upgrade()
}

/// An acquisition that is released for a while.
pub(crate) struct Paused;

#[inline(always)]
pub(crate) fn pause<R>(_: &R) -> Paused {
    Paused
}

impl Paused {
    /// Acquires again by `lock`.
    #[inline(always)]
    pub(crate) fn end<T>(self, lock: impl FnOnce() -> T) -> T {
        lock()
    }
}

/// A line of the caller's.
#[derive(Clone, Copy)]
pub(crate) struct Here;

#[inline(always)]
pub(crate) fn here() -> Here {
    Here
}

/// A lock to which a thread comes back from a sleep.
pub(crate) type Back<R> = R;

/// Releases, sleeps, and acquires again, by `f`.
#[inline(always)]
pub(crate) fn asleep<R, T>(_: Here, raw: &R, f: impl FnOnce(&Back<R>) -> T) -> T {
    f(raw)
}
