//! The locks under torture, one type for each kind of lock. All that is common to them is
//! elsewhere.

use std::fmt::Debug;

use crate::canary::Canary;
use crate::job::Command;
use crate::plan::Step;
use crate::violation::{Violation, ViolationKind};
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

    /// The canary of lock `lock`, if each lock has one, and there is such a lock.
    fn canary(&self, lock: usize) -> Option<&Canary> {
        let _ = lock;
        None
    }

    /// Whether lock `lock` says that somebody owns it or waits for it.
    fn is_used(&self, lock: usize) -> bool {
        let _ = lock;
        false
    }

    /// How often threads have had lock `lock`. Nobody counts who bypasses whom at a lock that lives
    /// shortly: a waiter gets it or hangs.
    fn visits(&self, lock: usize) -> u64 {
        self.canary(lock).map_or(0, Canary::visits)
    }

    /// Lock `lock`, for a report: what it says of itself, and what it holds.
    fn state(&self, lock: usize) -> String;

    /// Checks that all is as it must be while no thread is in a step; `written(lock)` is how
    /// often they wrote under each lock.
    ///
    /// # Errors
    ///
    /// If it is not.
    fn at_rest(&self, written: &dyn Fn(usize) -> u64) -> Result<(), Violation> {
        for (lock, canary) in (0..).map_while(|lock| Some((lock, self.canary(lock)?))) {
            // A lock that no thread uses must not seem used.
            if self.is_used(lock) {
                let message = format!("nobody uses lock {lock}: {}", self.state(lock));
                return Err(Violation::new(ViolationKind::State, message));
            }
            counts(lock, canary, written(lock))?;
        }
        self.freed()
    }

    /// Checks that all locks that live shortly are freed.
    ///
    /// # Errors
    ///
    /// If one is not.
    fn freed(&self) -> Result<(), Violation> {
        Ok(())
    }

    /// Returns the command that the thread `index` follows, given that of the job. For those that
    /// must all do the same.
    fn agree(&self, index: usize, command: Command) -> Command {
        let _ = index;
        command
    }
}

/// Whether the canary of lock `lock` says what was done, while nobody is inside.
fn counts(lock: usize, canary: &Canary, written: u64) -> Result<(), Violation> {
    let found = canary
        .at_rest()
        .map_err(|torn| Violation::torn("the check while all rested", lock, torn))?;
    if found == written {
        Ok(())
    } else {
        Err(Violation::new(
            ViolationKind::Count,
            format!("does not exclude: {written} writes left {found} in the canary of lock {lock}"),
        ))
    }
}
