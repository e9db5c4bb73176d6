//! The watchers of the locks with data: the validator of lock order (feature `lockdep`), and the
//! statistics (feature `stat`). Without these features all functions are empty, and inlined.

#[cfg_attr(not(feature = "stat"), path = "watch/counts/off.rs")]
#[cfg_attr(feature = "stat", path = "watch/counts/on.rs")]
mod counts;
#[cfg_attr(not(feature = "lockdep"), path = "watch/order/off.rs")]
#[cfg_attr(feature = "lockdep", path = "watch/order/on.rs")]
mod order;

use std::fmt;
use std::ops::Deref;

use overlock_core::raw::{RawLock, RawRwLock};

pub(crate) use order::here;

/// How a lock is acquired.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "stat"), allow(dead_code))]
pub(crate) enum How {
    Exclusive,
    Shared,
    /// Shared, and perhaps by a thread that shares it already.
    Recursive,
    /// Shared with readers, and not with others of its kind.
    Upgradable,
    /// By a thread that may hand the acquisition on to another one: the validator, which knows
    /// what each thread holds, does not see it.
    Sent {
        shared: bool,
    },
}

impl How {
    /// Of a mutex.
    pub(crate) const fn of<R: RawLock>() -> How {
        How::Exclusive.of_sent(R::IS_SENT)
    }

    pub(crate) const fn writer<R: RawRwLock>() -> How {
        How::Exclusive.of_sent(R::IS_SENT)
    }

    pub(crate) const fn upgradable<R: RawRwLock>() -> How {
        How::Upgradable.of_sent(R::IS_SENT)
    }

    pub(crate) const fn reader<R: RawRwLock>() -> How {
        match R::IS_RECURSIVE {
            true => How::recursive::<R>(),
            false => How::Shared.of_sent(R::IS_SENT),
        }
    }

    pub(crate) const fn recursive<R: RawRwLock>() -> How {
        How::Recursive.of_sent(R::IS_SENT)
    }

    /// The same, of a lock whose acquisitions may be handed on.
    const fn of_sent(self, is_sent: bool) -> How {
        match self {
            how if !is_sent => how,
            How::Shared | How::Recursive => How::Sent { shared: true },
            _ => How::Sent { shared: false },
        }
    }
}

/// The sort of a lock, by which its acquisitions are called.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "stat"), allow(dead_code))]
pub(crate) enum Sort {
    Mutex,
    RwLock,
}

/// A raw lock, and what its watchers keep of it.
pub struct Watched<R> {
    raw: R,
    order: order::Key,
    counts: counts::Key,
}

// A name costs nothing where nobody asks for it.
#[cfg(not(any(feature = "lockdep", feature = "stat")))]
const _: () = assert!(size_of::<Watched<u32>>() == size_of::<u32>());

impl<R> Deref for Watched<R> {
    type Target = R;

    #[inline(always)]
    fn deref(&self) -> &R {
        &self.raw
    }
}

impl<R> fmt::Debug for Watched<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Watched { .. }")
    }
}

impl<R> Watched<R> {
    /// A lock that is known by the line of the caller.
    #[track_caller]
    #[inline(always)]
    pub(crate) const fn new(raw: R, sort: Sort) -> Self {
        Watched {
            raw,
            order: order::Key::here(),
            counts: counts::Key::here(sort),
        }
    }

    #[inline(always)]
    pub(crate) const fn named(raw: R, sort: Sort, name: &'static str) -> Self {
        Watched {
            raw,
            order: order::Key::named(name),
            counts: counts::Key::named(name, sort),
        }
    }

    #[inline(always)]
    pub(crate) const fn raw(&self) -> &R {
        &self.raw
    }

    #[inline(always)]
    pub(crate) fn into_raw(self) -> R {
        self.raw
    }

    /// Acquires by `wait`, however long that takes, or before by `attempt`, which does not wait,
    /// where watchers need to know whether the caller waits. `queue` tells whether others wait.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline(always)]
    pub(crate) fn acquire<T>(
        &self,
        how: How,
        level: u8,
        queue: impl Fn() -> bool,
        attempt: impl FnOnce() -> Option<T>,
        wait: impl FnOnce() -> T,
    ) -> T {
        let mut order = self.order.wanted(&self.raw, how, level);
        let wait = || {
            order.waits();
            wait()
        };
        let token = match counts::is_on() {
            true => (self.counts).acquire(&self.raw, how, queue, attempt, wait, |_| true),
            false if order::TRIES => attempt().unwrap_or_else(wait),
            false => wait(),
        };
        order.acquired();
        token
    }

    /// Acquires by `attempt`, which does not wait. `queue` as above.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline(always)]
    pub(crate) fn attempt<T>(
        &self,
        how: How,
        queue: impl Fn() -> bool,
        attempt: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        self.order
            .attempt(&self.raw, how, || match counts::is_on() {
                true => self.counts.attempt(&self.raw, how, queue, attempt),
                false => attempt(),
            })
    }

    /// Acquires by `attempt`, or else by `wait`, which ends by itself.
    #[cfg_attr(feature = "lockdep", track_caller)]
    #[inline(always)]
    pub(crate) fn attempt_or<T>(
        &self,
        how: How,
        queue: impl Fn() -> bool,
        attempt: impl FnOnce() -> Option<T>,
        wait: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        self.order
            .attempt(&self.raw, how, || match counts::is_on() {
                true => {
                    let attempt = || attempt().map(Some);
                    (self.counts).acquire(&self.raw, how, queue, attempt, wait, Option::is_some)
                }
                false => attempt().or_else(wait),
            })
    }

    /// Releases the lock by `release`.
    #[inline(always)]
    pub(crate) fn release<T>(&self, release: impl FnOnce() -> T) -> T {
        order::release(&self.raw);
        self.counts.release(&self.raw, release)
    }

    /// The lock is about to be held as a reader.
    #[inline(always)]
    pub(crate) fn downgrades(&self) {
        order::downgrade(&self.raw);
        self.counts.downgrade(&self.raw);
    }

    /// The upgradable reader has become the writer, or the other way round.
    #[inline(always)]
    pub(crate) fn is_now(&self, how: How) {
        order::change(&self.raw, how);
    }

    /// Makes the upgradable reader the writer, by `upgrade`.
    #[inline(always)]
    pub(crate) fn upgrades<T>(&self, upgrade: impl FnOnce() -> T) -> T {
        let paused = self.counts.pause(&self.raw);
        let token = order::upgrade(&self.raw, upgrade);
        self.counts.end(paused);
        token
    }

    /// The lock is about to be released for a while.
    #[inline(always)]
    pub(crate) fn pause(&self) -> Paused {
        Paused {
            order: order::pause(&self.raw),
            counts: self.counts.pause(&self.raw),
        }
    }

    /// Releases and acquires again, by `f`.
    #[inline(always)]
    pub(crate) fn paused<T>(&self, f: impl FnOnce() -> T) -> T {
        self.pause().end(self, f)
    }

    /// Releases, sleeps, and acquires again, by `f`.
    #[inline(always)]
    pub(crate) fn asleep<T>(&self, here: order::Here, f: impl FnOnce(&order::Back<R>) -> T) -> T {
        let paused = self.counts.pause(&self.raw);
        let result = order::asleep(here, &self.raw, f);
        self.counts.end(paused);
        result
    }
}

/// An acquisition that is released for a while.
pub(crate) struct Paused {
    order: order::Paused,
    counts: counts::Paused,
}

impl Paused {
    /// Acquires again by `lock`.
    #[inline(always)]
    pub(crate) fn end<R, T>(self, of: &Watched<R>, lock: impl FnOnce() -> T) -> T {
        let token = self.order.end(lock);
        of.counts.end(self.counts);
        token
    }
}
