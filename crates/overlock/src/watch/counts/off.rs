//! Without statistics.

use crate::watch::{How, Sort};

/// Whether acquisitions are counted.
#[inline(always)]
pub(crate) const fn is_on() -> bool {
    false
}

/// The part of a lock that counts.
pub(crate) struct Key;

impl Key {
    #[inline(always)]
    pub(crate) const fn here(_: Sort) -> Key {
        Key
    }

    #[inline(always)]
    pub(crate) const fn named(_: &'static str, _: Sort) -> Key {
        Key
    }

    /// Acquires by `attempt`, or else by `wait`.
    #[inline(always)]
    pub(crate) fn acquire<R, T>(
        &self,
        _: &R,
        _: How,
        _: impl Fn() -> bool,
        attempt: impl FnOnce() -> Option<T>,
        wait: impl FnOnce() -> T,
        _: impl Fn(&T) -> bool,
    ) -> T {
        attempt().unwrap_or_else(wait)
    }

    /// Acquires by `attempt`.
    #[inline(always)]
    pub(crate) fn attempt<R, T>(
        &self,
        _: &R,
        _: How,
        _: impl Fn() -> bool,
        attempt: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        attempt()
    }

    /// Releases the lock by `release`.
    #[inline(always)]
    pub(crate) fn release<R, T>(&self, _: &R, release: impl FnOnce() -> T) -> T {
        release()
    }

    /// The lock is about to be held as a reader.
    #[inline(always)]
    pub(crate) fn downgrade<R>(&self, _: &R) {}

    /// The lock is about to be released for a while.
    #[inline(always)]
    pub(crate) fn pause<R>(&self, _: &R) -> Paused {
        Paused
    }

    /// It is acquired again.
    #[inline(always)]
    pub(crate) fn end(&self, _: Paused) {}
}

/// An acquisition that is released for a while.
pub(crate) struct Paused;
