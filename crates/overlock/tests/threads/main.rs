//! Locks on a few real threads: exclusion, order, and what single kinds of locks promise.

#[path = "../common/caller.rs"]
mod caller;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/watch.rs"]
mod watch;

mod exclusion;
mod fifo;
// Too long for Miri, too many threads: schedules.rs is for Miri.
#[cfg(not(miri))]
mod mutex;
// Miri does not know the kernel's PI futexes.
#[cfg(not(miri))]
#[cfg(not(overlock_threads))]
mod rt_mutex;
mod ww_mutex;
