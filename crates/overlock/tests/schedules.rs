//! Each lock, a few acquisitions on two or three threads: small enough for Miri to run on many
//! seeds, each of which is another schedule and another choice of the old values that weak memory
//! allows. `scripts/miri --seeds 64` does so.
//!
//! Operations other than locking are covered too, one after the other. `rt_mutex` is left out: Miri
//! does not have the kernel's futexes with priority inheritance.

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

use overlock::Linux;
use overlock_core::Instant;
use overlock_core::Platform;

const THREADS: usize = 3;
const SECTIONS: usize = 3;

/// A deadline that never comes.
fn far() -> Instant {
    Linux::now().plus(Duration::from_secs(1000))
}

/// A deadline that some threads meet and some do not: Miri's clock counts the work of all threads.
fn soon() -> Instant {
    Linux::now().plus_nanos(500_000)
}

/// Runs `part` on so many threads, and returns the sum of their results.
fn on_threads(threads: usize, part: impl Fn(usize) -> usize + Copy + Send) -> usize {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || part(number)))
            .collect();
        let done = threads.into_iter().map(|thread| thread.join().unwrap());
        done.sum()
    })
}

/// A number under the tested lock.
struct Guarded(UnsafeCell<usize>);

// SAFETY: the tested lock decides who may read it, and who may write it.
unsafe impl Sync for Guarded {}

impl Guarded {
    const fn new() -> Self {
        Guarded(UnsafeCell::new(0))
    }

    /// The caller may read it.
    fn get(&self) -> usize {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() }
    }

    /// The caller has exclusive access.
    fn add_one(&self) {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() += 1 }
    }
}
