//! Without the validator.

/// How a lock is acquired.
#[derive(Clone, Copy)]
pub(crate) enum How {
    Exclusive,
    Shared,
}

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
    /// Tries `attempt`, which does not wait, where the validator needs to know whether the caller
    /// waits: not here.
    #[inline(always)]
    pub(crate) fn attempt<T>(&mut self, _: impl FnOnce() -> Option<T>) -> Option<T> {
        None
    }

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

/// Releases and acquires again, by `f`.
#[inline(always)]
pub(crate) fn paused<R, T>(_: &R, f: impl FnOnce() -> T) -> T {
    f()
}

/// A line of the caller's.
#[derive(Clone, Copy)]
pub(crate) struct Here;

#[inline(always)]
pub(crate) fn here() -> Here {
    Here
}

/// Releases, sleeps, and acquires again, by `f`.
#[inline(always)]
pub(crate) fn asleep<R, T>(_: Here, _: &R, f: impl FnOnce() -> T) -> T {
    f()
}
