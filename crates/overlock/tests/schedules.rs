//! A few acquisitions of each lock on two or three threads: small enough for Miri to run on many
//! seeds. Each seed is another schedule and another choice of the old values that weak memory
//! allows. `scripts/miri --seeds 64` does so.
//!
//! The operations beyond locking alternate, too. `rt_mutex` is left out: Miri lacks the kernel's
//! futexes with priority inheritance.

mod common;
#[allow(dead_code)] // the rest is for programs.rs
#[path = "programs/extras.rs"]
mod extras;
#[allow(dead_code)] // as above
#[path = "programs/how.rs"]
mod how;

#[path = "schedules/broken.rs"]
mod broken;
#[path = "schedules/exclusive.rs"]
mod exclusive;
#[path = "schedules/shared.rs"]
mod shared;
#[path = "schedules/waits.rs"]
mod waits;

use std::cell::UnsafeCell;
use std::thread;
use std::time::Duration;

use overlock::core::Platform;
use overlock::{Instant, Linux};

const THREADS: usize = 3;
const SECTIONS: usize = 3;

/// Returns a deadline that never comes.
fn far() -> Instant {
    Linux::now().plus(Duration::from_secs(1000))
}

/// Returns a deadline that some acquisitions meet: Miri's clock advances with the steps of all
/// threads.
fn soon() -> Instant {
    Linux::now().plus_nanos(500_000)
}

/// Runs `part` on this many threads, and returns the sum of the results.
fn on_threads(threads: usize, part: impl Fn(usize) -> usize + Copy + Send) -> usize {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || part(number)))
            .collect();
        let done = threads.into_iter().map(|thread| thread.join().unwrap());
        done.sum()
    })
}

/// A number that the object under test protects.
struct Guarded(UnsafeCell<usize>);

// SAFETY: the object under test orders reads and writes.
unsafe impl Sync for Guarded {}

impl Guarded {
    const fn new() -> Self {
        Guarded(UnsafeCell::new(0))
    }

    /// The caller may read it.
    fn look(&self) -> usize {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() }
    }

    /// The caller has exclusive access.
    fn add_one(&self) {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() += 1 }
    }
}
