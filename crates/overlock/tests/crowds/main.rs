//! Many threads at one lock: more than there are CPUs, up to thousands.

#[path = "../common/caller.rs"]
mod caller;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/until.rs"]
mod until;
#[path = "../common/watch.rs"]
mod watch;
#[cfg(not(miri))]
#[path = "../common/workers.rs"]
mod workers;

// Miri takes too long for some: schedules.rs is for Miri.
#[cfg(not(miri))]
mod condvar;
mod progress;
mod readers;
mod rw;
mod semaphore;
#[cfg(not(miri))]
mod sleeping;

use std::sync::{Mutex, MutexGuard};

/// One test at a time has the CPUs, and the system's threads.
fn serial() -> MutexGuard<'static, ()> {
    static SERIAL: Mutex<()> = Mutex::new(());
    SERIAL
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
