//! The material of the types in tests under loom or shuttle: states that the checker sees change.
//!
//! The locks of [`overlock_core`] have their own checks. A user's test explores the user's code, so
//! an operation of a lock is one step here. A lock orders what it orders. A thread that waits for
//! ever is a deadlock that the checker reports. A limit of time passes as soon as other threads
//! have had a turn.

mod monitor;
mod mutex;
mod others;
mod rwlock;

pub use monitor::{unwound, with_own};
pub use mutex::{FairOverlock, Overlock};
pub use others::{Barrier, Condvar, Once, Semaphore};
pub use rwlock::{OverlockRw, PerCpuRwSem, RecursiveRw};
