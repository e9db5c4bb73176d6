//! Waits that other threads can end: see [`CancelToken`].

use std::fmt;

use crate::System;

/// Ends the waits that it is passed to: see
/// [`Lock::lock_cancellable`](crate::lock::Lock::lock_cancellable). Once cancelled it stays so.
///
/// Any number of threads may wait with one token, for different locks. Cancelling is safe in a
/// signal handler, and takes some microseconds: it scans the queue nodes of all threads.
///
/// Not for threads of [two copies](crate#two-copies-in-a-process) of this crate.
pub type CancelToken = overlock_core::sleep::cancel::CancelToken<System>;

/// A wait ended by its [`CancelToken`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the wait was cancelled")
    }
}

impl std::error::Error for Cancelled {}
