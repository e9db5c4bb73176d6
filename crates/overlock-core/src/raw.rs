//! The locks' interfaces, as traits: the tests, the model, torture and bench run on them.

mod forward;
mod recursive;
mod sent;

use core::fmt;

use crate::platform::{Deadline, Platform};
use crate::sleep::cancel::CancelToken;

pub(crate) use forward::forward;
pub use recursive::{RawRecursiveRwLock, ThreadId};
pub use sent::{RawSendLock, Sent};

/// A mutual-exclusion lock without data.
///
/// Acquiring has acquire ordering, releasing has release ordering, and each release
/// synchronises with the acquisition that follows it.
///
/// # Safety
///
/// Between a `lock` or successful `try_lock` and the `unlock` that consumes its token, no
/// other thread gets a token of the same lock. `is_overlock` returns true only where its
/// documentation holds.
pub unsafe trait RawLock: Create + Send + Sync + 'static {
    /// The token that an acquisition passes to its release: nothing, or the queue node that it
    /// used.
    type Token;

    /// The lock's name in tables and options: `ticket`, `pv_queued`.
    const NAME: &'static str;

    /// Whether it is a [`Sent`]. A validator of lock order cannot say what its holders hold.
    const IS_SENT: bool = false;

    /// Acquires the lock, waiting for as long as it takes.
    fn lock(&self) -> Self::Token;

    /// Acquires the lock if that needs no waiting. May fail while another thread acquires or
    /// releases it; a failure orders nothing.
    fn try_lock(&self) -> Option<Self::Token>;

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// `token` comes from this lock's `lock` or `try_lock`, by the calling thread.
    unsafe fn unlock(&self, token: Self::Token);

    /// Whether a thread holds the lock. A snapshot: it may be stale when it returns.
    fn is_locked(&self) -> bool;

    /// Whether a thread waits for the lock. A snapshot, as [`is_locked`](Self::is_locked).
    fn is_contended(&self) -> bool;

    /// Whether the lock is an [`Overlock`](crate::sleep::Overlock) of this platform, at the same
    /// address. Condition variables make the threads that they notify sleepers of such a lock.
    fn is_overlock<P: Platform>(&self) -> bool {
        false
    }

    /// Whether a validator is to see the waits of threads that come back to it from a condition
    /// variable. They are woken, and wait for the lock by [`lock`](Self::lock), all at once.
    fn is_watched(&self) -> bool {
        false
    }

    /// As [`lock`](Self::lock), for a thread that is one of the lock's sleepers already. Only an
    /// [overlock](Self::is_overlock) has such.
    fn lock_adopted(&self) -> Self::Token {
        self.lock()
    }
}

/// A lock whose waiters can give up.
///
/// # Safety
///
/// As for [`RawLock`].
pub unsafe trait RawTimedLock: RawLock {
    /// Acquires the lock unless `deadline` passes first. Tries at least once, even if the deadline
    /// has passed; never gives up before it.
    fn lock_until(&self, deadline: impl Into<Deadline>) -> Option<Self::Token>;
}

/// A lock that can be built in a `const`, for statics: each one that needs nothing else.
pub trait ConstLock: Sized {
    /// A new, unlocked lock.
    const INIT: Self;
}

/// The constructor of any lock, for generic code.
pub trait Create: Sized {
    /// Returns a new, unlocked lock.
    ///
    /// # Errors
    ///
    /// Only locks that need a resource of their own can fail: none that is a [`ConstLock`].
    fn create() -> Result<Self, CreateError>;
}

impl<L: ConstLock> Create for L {
    fn create() -> Result<Self, CreateError> {
        Ok(L::INIT)
    }
}

/// A lock that its owner can hand off to a waiter.
///
/// # Safety
///
/// As for [`RawLock`].
pub unsafe trait RawFairLock: RawLock {
    /// Releases the lock; if a waiter sleeps for it, hands it off to that one, past all others.
    ///
    /// # Safety
    ///
    /// As for [`RawLock::unlock`].
    unsafe fn unlock_fair(&self, token: Self::Token);

    /// Hands the lock off to a waiter, if there is one, and acquires it again.
    ///
    /// # Safety
    ///
    /// As for [`RawLock::unlock`].
    unsafe fn bump(&self, token: Self::Token) -> Self::Token {
        if !self.is_contended() {
            return token;
        }
        // SAFETY: the caller's promise.
        unsafe { self.unlock_fair(token) };
        self.lock()
    }
}

/// A lock whose waits other threads can cancel.
///
/// # Safety
///
/// As for [`RawLock`].
pub unsafe trait RawCancelLock<P: Platform>: RawLock {
    /// Acquires the lock unless `cancel` is cancelled first, or `deadline` passes. Tries at least
    /// once, even if one of them has happened.
    fn lock_cancellable(
        &self,
        cancel: &CancelToken<P>,
        deadline: Option<Deadline>,
    ) -> Option<Self::Token>;
}

/// A lock that either many readers or one writer hold.
///
/// Acquiring has acquire ordering, releasing has release ordering. A writer's release synchronises
/// with every acquisition that follows it, a reader's with the next writer's.
///
/// # Safety
///
/// Between an acquisition by `write`, or a successful `try_write`, and the `unlock_write` that
/// consumes its token, no other thread gets a token of the same lock. While a thread holds a token
/// of `read`, none gets one of `write`.
pub unsafe trait RawRwLock: ConstLock + Send + Sync + 'static {
    /// The token that a reader's acquisition passes to its release.
    type Read;
    /// The token that a writer's acquisition passes to its release.
    type Write;

    /// The lock's name in tables and options.
    const NAME: &'static str;

    /// Whether it is a [`Sent`]. A validator of lock order cannot say what its holders hold.
    const IS_SENT: bool = false;

    /// Whether a thread may read what it reads already: `read` does not wait for waiting writers.
    const IS_RECURSIVE: bool = false;

    /// Acquires the lock together with other readers, waiting for as long as it takes. A thread
    /// that holds it for reading must not call this, unless the lock [is
    /// recursive](Self::IS_RECURSIVE): it might wait for a writer that waits for it.
    fn read(&self) -> Self::Read;

    /// Acquires the lock together with other readers if that needs no waiting.
    fn try_read(&self) -> Option<Self::Read>;

    /// Releases a reader's acquisition.
    ///
    /// # Safety
    ///
    /// `token` comes from this lock's `read` or `try_read`, by the calling thread.
    unsafe fn unlock_read(&self, token: Self::Read);

    /// Acquires the lock alone, waiting for as long as it takes.
    fn write(&self) -> Self::Write;

    /// Acquires the lock alone if that needs no waiting.
    fn try_write(&self) -> Option<Self::Write>;

    /// Releases a writer's acquisition.
    ///
    /// # Safety
    ///
    /// `token` comes from this lock's `write` or `try_write`, by the calling thread.
    unsafe fn unlock_write(&self, token: Self::Write);

    /// Whether a thread holds the lock. A snapshot: it may be stale when it returns.
    fn is_locked(&self) -> bool;

    /// Whether a writer holds the lock, or is about to. A snapshot.
    fn is_write_locked(&self) -> bool;

    /// Whether a thread sleeps for the lock. A snapshot. It may miss threads that spin, or were
    /// woken and do not run yet. It may count one that has given up until the holders have left for
    /// which it waited.
    fn is_contended(&self) -> bool;
}

/// A reader-writer lock whose waiters can give up.
///
/// # Safety
///
/// As for [`RawRwLock`].
pub unsafe trait RawTimedRwLock: RawRwLock {
    /// Acquires for reading unless `deadline` passes first. Tries at least once; never gives up
    /// before it.
    fn read_until(&self, deadline: impl Into<Deadline>) -> Option<Self::Read>;

    /// Acquires for writing unless `deadline` passes first. Tries at least once; never gives up
    /// before it.
    fn write_until(&self, deadline: impl Into<Deadline>) -> Option<Self::Write>;
}

/// A reader-writer lock whose writer can become a reader without releasing it.
///
/// # Safety
///
/// As for [`RawRwLock`].
pub unsafe trait RawDowngradeRwLock: RawRwLock {
    /// Turns the writer into a reader; no writer comes between.
    ///
    /// # Safety
    ///
    /// As for [`RawRwLock::unlock_write`].
    unsafe fn downgrade(&self, token: Self::Write) -> Self::Read;
}

/// A reader-writer lock with a third kind of acquisition: an upgradable reader shares the lock with
/// readers, excludes writers and others of its kind, and can become the writer without releasing
/// it.
///
/// # Safety
///
/// As for [`RawRwLock`]; while a thread holds a token of `upgradable`, no other thread gets one of
/// `upgradable` or `write`.
pub unsafe trait RawUpgradeRwLock: RawDowngradeRwLock + RawTimedRwLock {
    /// The token that an upgradable reader's acquisition passes to its release.
    type Upgradable;

    /// Acquires the lock as its upgradable reader.
    fn upgradable(&self) -> Self::Upgradable;

    /// The same if that needs no waiting.
    fn try_upgradable(&self) -> Option<Self::Upgradable>;

    /// The same unless `deadline` passes first. Tries at least once.
    fn upgradable_until(&self, deadline: impl Into<Deadline>) -> Option<Self::Upgradable>;

    /// Releases an upgradable reader's acquisition.
    ///
    /// # Safety
    ///
    /// `token` comes from this lock, by the calling thread.
    unsafe fn unlock_upgradable(&self, token: Self::Upgradable);

    /// Waits until the other readers have released the lock, and becomes the writer.
    ///
    /// # Safety
    ///
    /// As for [`unlock_upgradable`](Self::unlock_upgradable).
    unsafe fn upgrade(&self, token: Self::Upgradable) -> Self::Write;

    /// The same if that needs no waiting; otherwise the caller stays the upgradable reader.
    ///
    /// # Safety
    ///
    /// As for [`unlock_upgradable`](Self::unlock_upgradable).
    unsafe fn try_upgrade(&self, token: Self::Upgradable) -> Result<Self::Write, Self::Upgradable>;

    /// The same unless `deadline` passes first. Tries at least once.
    ///
    /// # Safety
    ///
    /// As for [`unlock_upgradable`](Self::unlock_upgradable).
    unsafe fn upgrade_until(
        &self,
        token: Self::Upgradable,
        deadline: impl Into<Deadline>,
    ) -> Result<Self::Write, Self::Upgradable>;

    /// Turns the upgradable reader into a plain one.
    ///
    /// # Safety
    ///
    /// As for [`unlock_upgradable`](Self::unlock_upgradable).
    unsafe fn downgrade_upgradable(&self, token: Self::Upgradable) -> Self::Read;

    /// Turns the writer into the upgradable reader; no writer comes between.
    ///
    /// # Safety
    ///
    /// As for [`RawRwLock::unlock_write`].
    unsafe fn downgrade_to_upgradable(&self, token: Self::Write) -> Self::Upgradable;
}

/// A reader-writer lock that its holder can hand off to waiters.
///
/// # Safety
///
/// As for [`RawUpgradeRwLock`].
pub unsafe trait RawFairRwLock: RawUpgradeRwLock {
    /// Releases a reader's acquisition; a writer that waits for it comes before all others.
    ///
    /// # Safety
    ///
    /// As for [`RawRwLock::unlock_read`].
    unsafe fn unlock_read_fair(&self, token: Self::Read);

    /// Releases a writer's acquisition; if a waiter sleeps for the lock, hands it off to that one,
    /// past all others.
    ///
    /// # Safety
    ///
    /// As for [`RawRwLock::unlock_write`].
    unsafe fn unlock_write_fair(&self, token: Self::Write);

    /// Releases an upgradable reader's acquisition, and wakes the first waiter for it. Waiters come
    /// before upgradable readers that begin to wait later; a writer, or an attempt that does not
    /// wait, may come before them.
    ///
    /// # Safety
    ///
    /// As for [`RawUpgradeRwLock::unlock_upgradable`].
    unsafe fn unlock_upgradable_fair(&self, token: Self::Upgradable);

    /// Hands the lock off to a waiter, if there is one, and acquires it again.
    ///
    /// # Safety
    ///
    /// As for [`RawRwLock::unlock_read`].
    unsafe fn bump_read(&self, token: Self::Read) -> Self::Read {
        if !self.is_contended() {
            return token;
        }
        // SAFETY: the caller's promise.
        unsafe { self.unlock_read_fair(token) };
        self.read()
    }

    /// As [`bump_read`](Self::bump_read), for a writer.
    ///
    /// # Safety
    ///
    /// As for [`RawRwLock::unlock_write`].
    unsafe fn bump_write(&self, token: Self::Write) -> Self::Write {
        if !self.is_contended() {
            return token;
        }
        // SAFETY: the caller's promise.
        unsafe { self.unlock_write_fair(token) };
        self.write()
    }

    /// As [`bump_read`](Self::bump_read), for an upgradable reader.
    ///
    /// # Safety
    ///
    /// As for [`RawUpgradeRwLock::unlock_upgradable`].
    unsafe fn bump_upgradable(&self, token: Self::Upgradable) -> Self::Upgradable {
        if !self.is_contended() {
            return token;
        }
        // SAFETY: the caller's promise.
        unsafe { self.unlock_upgradable_fair(token) };
        self.upgradable()
    }
}

/// A lock, or another object with waiters, that stays usable in the child after fork().
///
/// In the child there is one thread. The others exist only in the parent, but their writes are in
/// the child's memory: their places in lists and queues, wait locks that they held at that moment,
/// and their handoff requests to the next unlock.
///
/// # Safety
///
/// After [`forget_waiters`](Self::forget_waiters) nothing refers to the node of a thread that
/// exists only in the parent.
pub unsafe trait RawFork {
    /// After fork() in the child: removes all waiters. The owner stays the owner. If it exists only
    /// in the parent, the lock is held for ever. A lock that was handed off to a waiter is free, if
    /// the waiter had not taken it yet; permits that were granted to one are lost.
    ///
    /// Does not allocate, and does not block.
    ///
    /// # Safety
    ///
    /// The process is a child of fork, in which the platform has called
    /// [`forget_others`](crate::fork::forget_others). No thread of the child has waited for this
    /// object since, and none uses it during the call.
    unsafe fn forget_waiters(&self);
}

/// [`RawFork`] for reader-writer locks.
///
/// # Safety
///
/// As there.
pub unsafe trait RawForkRwLock: RawRwLock {
    /// As [`RawFork::forget_waiters`]. Readers stay counted, also those that exist only in the
    /// parent. A reader in the middle of its attempt may count as one that has succeeded. (A reader
    /// with an entry in its slot is not counted; `forget_others` removes the others' entries.)
    ///
    /// # Safety
    ///
    /// As there; and `written` says whether the calling thread holds the lock for writing.
    unsafe fn forget_waiters(&self, written: bool);
}

/// A lock could not be created: a resource that it needs is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateError;

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no queue ticket is left for another lock")
    }
}

impl core::error::Error for CreateError {}

/// Whether locks check for misuse and panic: in debug builds, and with the feature `checked`. It
/// costs time in every call.
pub const CHECKED: bool = cfg!(any(debug_assertions, feature = "checked"));

/// Panics with a message if a condition that callers must keep does not hold: in debug builds and
/// with the `checked` feature. Without them the misuse is silent, with defined behaviour.
///
/// The condition may load words of the platform `P`, which is in scope. A variable, or `<=` of two,
/// loads none, and needs no platform.
#[macro_export]
#[doc(hidden)]
macro_rules! check {
    ($value:ident, $($message:tt)+) => {
        $crate::check!(@ $value, $($message)+)
    };
    ($least:ident <= $most:ident, $($message:tt)+) => {
        $crate::check!(@ $least <= $most, $($message)+)
    };
    (@ $condition:expr, $($message:tt)+) => {
        if $crate::raw::CHECKED {
            assert!($condition, $($message)+);
        }
    };
    ($condition:expr, $($message:tt)+) => {
        $crate::check!(@ <P as $crate::platform::Platform>::unobserved(|| $condition), $($message)+)
    };
}
