//! Without statistics.

use std::marker::PhantomData;

use crate::watch::{How, Sort};

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

    /// The lock is about to be acquired.
    #[inline(always)]
    pub(crate) fn wanted<R>(&self, _: &R, _: How, _: impl Fn() -> bool) -> Wanted<'_, R> {
        Wanted(PhantomData)
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

/// An acquisition that may wait.
pub(crate) struct Wanted<'a, R>(PhantomData<&'a R>);

impl<R> Wanted<'_, R> {
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        false
    }

    /// The lock is not free, and the caller waits for it.
    #[inline(always)]
    pub(crate) fn waits(&mut self) {}

    /// The lock is acquired.
    #[inline(always)]
    pub(crate) fn acquired(self) {}

    /// It is not.
    #[inline(always)]
    pub(crate) fn gave_up(self) {}
}
