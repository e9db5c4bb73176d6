//! Scenarios for what threads wait with beside locks: semaphores, condition variables, barriers,
//! things done once, and the queue of optimistic spinners.

mod barrier;
mod condvar;
mod once;
mod osq;
mod semaphore;

pub use self::barrier::barrier;
pub use self::condvar::{condvar, condvar_freed};
pub use self::once::once;
pub use self::osq::osq;
pub use self::semaphore::semaphore;

use super::Setting;

const PLAIN: Setting = Setting::PLAIN;
const ONE_NODE: Setting = Setting::ONE_NODE;
const SIGNALS: Setting = Setting::SIGNALS;
