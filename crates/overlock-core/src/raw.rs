//! What every lock can do, as one trait: the tests, the model, torture and bench run on it.

use core::fmt;

use crate::platform::Instant;

/// A mutual-exclusion lock without data.
///
/// Acquiring has acquire ordering, releasing has release ordering, and each release
/// synchronises with the acquisition that follows it.
///
/// # Safety
///
/// Between a `lock` or successful `try_lock` and the `unlock` that consumes its token, no
/// other thread gets a token of the same lock.
pub unsafe trait RawLock: Send + Sync + Sized + 'static {
    /// What an acquisition hands to its release: nothing, or the queue node that it used.
    type Token;

    /// The lock's name in tables and options: `ticket`, `pv_queued`.
    const NAME: &'static str;

    /// A new, unlocked lock.
    ///
    /// # Errors
    ///
    /// Only locks that need a resource of their own can fail (`fast_queue`).
    fn create() -> Result<Self, CreateError>;

    /// Acquires the lock, waiting for as long as it takes.
    fn lock(&self) -> Self::Token;

    /// Acquires the lock if that needs no waiting. May fail where another thread is just
    /// acquiring or releasing it; a failure orders nothing.
    fn try_lock(&self) -> Option<Self::Token>;

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// `token` comes from this lock's `lock` or `try_lock`, by the calling thread.
    unsafe fn unlock(&self, token: Self::Token);

    /// Whether somebody holds the lock. A snapshot: it may be stale when it arrives.
    fn is_locked(&self) -> bool;

    /// Whether somebody waits for the lock. A snapshot, as [`is_locked`](Self::is_locked).
    fn is_contended(&self) -> bool;
}

/// A lock whose waiters can give up.
///
/// # Safety
///
/// As for [`RawLock`].
pub unsafe trait RawTimedLock: RawLock {
    /// Acquires the lock unless `deadline` passes first. Tries at least once, whatever the deadline;
    /// never gives up before it.
    fn lock_until(&self, deadline: Instant) -> Option<Self::Token>;
}

/// A lock could not be created: what it needs is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateError;

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no queue ticket is left for another lock")
    }
}

impl core::error::Error for CreateError {}

/// Panics with a message where a condition that callers must keep does not hold: in debug builds and
/// with the `checked` feature. Without them the misuse is silent, with defined behaviour.
#[macro_export]
#[doc(hidden)]
macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if cfg!(any(debug_assertions, feature = "checked")) {
            assert!($condition, $($message)+);
        }
    };
}
