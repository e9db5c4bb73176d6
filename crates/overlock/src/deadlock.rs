//! Deadlocks that have happened (feature `deadlock_detection`).
//!
//! The interface is parking_lot's. The [validator](crate::lockdep) knows who holds and who waits,
//! and writes a report on standard error besides; [`set_output`](crate::lockdep::set_output) ends
//! that. Here a program asks, and gets the threads with the places where they wait.
//!
//! ```standalone_crate
//! use std::sync::Barrier;
//! use std::time::Duration;
//!
//! use overlock::{Mutex, deadlock};
//!
//! static LOCKS: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];
//! static BOTH: Barrier = Barrier::new(2);
//!
//! # overlock::lockdep::set_output(-1);
//! for (one, other) in [(0, 1), (1, 0)] {
//!     std::thread::spawn(move || {
//!         let _one = LOCKS[one].lock();
//!         BOTH.wait();
//!         let _other = LOCKS[other].lock();
//!     });
//! }
//! let deadlocks = loop {
//!     let deadlocks = deadlock::check_deadlock();
//!     if !deadlocks.is_empty() {
//!         break deadlocks;
//!     }
//!     std::thread::sleep(Duration::from_millis(1));
//! };
//! assert_eq!(deadlocks[0].len(), 2);
//! for thread in &deadlocks[0] {
//!     println!("{:?}: {:#?}", thread.thread_id(), thread.backtrace());
//! }
//! ```
//!
//! Seen are the types that the validator sees, in waits without a limit, upgrades among them. A
//! wait for a [`Condvar`](crate::Condvar) is none, but the wait for its lock at the end is. Not
//! seen are waits for a [`Once`](crate::Once), [`OnceLock`](crate::OnceLock),
//! [`Barrier`](crate::Barrier), [`Semaphore`](crate::Semaphore), [`WwMutex`](crate::WwMutex) or
//! [`Parker`](crate::Parker), for a thread's end, and for locks of other crates.
//!
//! Each wait takes a backtrace, which allocates: not in signal handlers, not for the locks of a
//! global allocator, and not in the child of a program with threads after `fork`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use backtrace::Backtrace;
use overlock_lockdep::__private::{self as lockdep_types, Held};
use overlock_lockdep::{self as lockdep, ClassId, How, Site};

/// A thread of a deadlock.
#[derive(Clone, Debug)]
pub struct DeadlockedThread {
    thread_id: ThreadId,
    backtrace: Backtrace,
}

impl DeadlockedThread {
    /// Returns the thread, as [`Thread::id`](thread::Thread::id) does.
    pub fn thread_id(&self) -> ThreadId {
        self.thread_id
    }

    /// Returns the place at which it waits.
    pub fn backtrace(&self) -> &Backtrace {
        &self.backtrace
    }
}

/// The threads that wait, by the kernel's numbers.
static WAITS: Mutex<BTreeMap<u32, DeadlockedThread>> = Mutex::new(BTreeMap::new());

fn waits() -> MutexGuard<'static, BTreeMap<u32, DeadlockedThread>> {
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the deadlocks that have not been returned before, each as its threads. Cycles with a
/// thread in common are one deadlock.
pub fn check_deadlock() -> Vec<Vec<DeadlockedThread>> {
    let found = lockdep::deadlocks();
    let mut deadlocks: Vec<Vec<DeadlockedThread>> = {
        let waits = waits();
        let known = |threads: Vec<u32>| {
            let known = threads.iter().filter_map(|number| waits.get(number));
            known.cloned().collect()
        };
        found.into_iter().map(known).collect()
    };
    deadlocks.retain(|threads| !threads.is_empty());
    for thread in deadlocks.iter_mut().flatten() {
        thread.backtrace.resolve();
    }
    deadlocks
}

/// The calling thread begins to wait for a lock of another kind: as [`lockdep::begin_wait`], with
/// the place for [`check_deadlock`]. [`acquired`](lockdep::acquired) and
/// [`release`](lockdep::release) say who holds the lock.
pub fn begin_wait(lock: usize, class: ClassId, how: How, site: Site) {
    note();
    lockdep::begin_wait(lock, class, how, site);
}

/// The wait has ended.
pub fn end_wait(lock: usize) {
    end(lock);
}

/// As [`begin_wait`], for the types.
pub(crate) fn begin(held: &Held) {
    note();
    lockdep_types::waits(held);
}

/// As [`end_wait`], for the types.
pub(crate) fn end(lock: usize) {
    lockdep::end_wait(lock);
    if let Some(number) = lockdep_types::this_thread() {
        let _waited = waits().remove(&number);
    }
}

/// The calling thread will wait here. Before the validator shows its wait, so that whoever finds
/// that finds this too.
fn note() {
    if let Some(number) = lockdep_types::this_thread() {
        let waits_here = DeadlockedThread {
            thread_id: thread::current().id(),
            backtrace: Backtrace::new_unresolved(),
        };
        let _before = waits().insert(number, waits_here);
    }
}
