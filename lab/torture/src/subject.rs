//! The locks under torture, one type for each kind of lock. All that is common to them is
//! elsewhere.

use std::fmt::Debug;

use crate::job::Command;
use crate::plan::Step;
use crate::violation::Violation;
use crate::worker::Worker;
use crate::worker_state::Handled;

mod barrier;
mod condvar;
pub mod exclusive;
mod mutex;
mod once;
mod rwlock;
mod semaphore;
pub mod shared;
mod short_lived;
mod ww_mutex;

pub use barrier::Gathering;
pub use condvar::Queue;
pub use exclusive::Exclusive;
pub use mutex::GuardedMutex;
pub use once::Cells;
pub use rwlock::GuardedRwLock;
pub use semaphore::Permits;
pub use shared::{Shared, SharedExtras};
pub use ww_mutex::Contexts;

/// Some locks of one type, the data under them, and what threads do with both.
pub trait Subject: Debug + Send + Sync {
    fn step(&self, worker: &Worker, step: &Step);

    /// The action of a signal handler on the thread `index`, which it has interrupted anywhere.
    /// Must be fit for that.
    fn interrupt(&self, index: usize, handled: &Handled) {
        let _ = (index, handled);
    }

    /// How often threads have had lock `lock`.
    fn visits(&self, lock: usize) -> u64;

    /// Lock `lock`, for a report: what it says of itself, and what it holds.
    fn state(&self, lock: usize) -> String;

    /// Checks that all is as it must be while no thread is in a step; `written(lock)` is how
    /// often they wrote under each lock.
    ///
    /// # Errors
    ///
    /// If it is not.
    fn at_rest(&self, written: &dyn Fn(usize) -> u64) -> Result<(), Violation>;

    /// Returns the command that the thread `index` follows, given that of the job. For those that
    /// must all do the same.
    fn agree(&self, index: usize, command: Command) -> Command {
        let _ = index;
        command
    }
}
