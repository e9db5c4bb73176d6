//! Waits that others can end: see [`CancelToken`].

use std::fmt;

use crate::Linux;

/// Ends the waits that were given it: see
/// [`Lock::lock_cancellable`](crate::lock::Lock::lock_cancellable). Once cancelled it stays so.
///
/// Any number of threads may wait with one token, for different locks. Cancelling is safe in a
/// signal handler, and takes some microseconds: it looks at the queue nodes of all threads.
pub type CancelToken = overlock_core::sleep::cancel::CancelToken<Linux>;

/// A wait was ended by its [`CancelToken`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the wait was cancelled")
    }
}

impl std::error::Error for Cancelled {}
