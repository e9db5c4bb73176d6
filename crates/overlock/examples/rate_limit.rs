//! At most three requests at a time, and a request that waits too long is refused.
//!
//! ```text
//! cargo run --release --example rate_limit -- --bench
//! ```

mod common;

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use overlock::Semaphore;

const LIMIT: u32 = 3;

static PERMITS: Semaphore = Semaphore::new(LIMIT);
static RUNNING: AtomicU32 = AtomicU32::new(0);

/// Answers a request, if it gets a permit in time.
fn answer() -> Result<(), &'static str> {
    let permit = PERMITS.try_acquire_for(Duration::from_secs(60));
    let _permit = permit.ok_or("too many requests")?;
    work();
    Ok(())
}

fn work() {
    assert!(RUNNING.fetch_add(1, SeqCst) < LIMIT);
    // A request to a disk.
    thread::sleep(Duration::from_micros(20));
    RUNNING.fetch_sub(1, SeqCst);
}

/// A semaphore of std's parts.
struct StdSemaphore {
    permits: std::sync::Mutex<u32>,
    released: std::sync::Condvar,
}

impl StdSemaphore {
    fn with_permit(&self, work: impl Fn()) {
        let permits = self.permits.lock().unwrap();
        let empty = |permits: &mut u32| *permits == 0;
        *self.released.wait_while(permits, empty).unwrap() -= 1;
        work();
        *self.permits.lock().unwrap() += 1;
        self.released.notify_one();
    }
}

/// Eight threads make requests.
fn load(request: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| request()));
        }
    });
}

fn main() {
    load(|| answer().expect("a minute is long"));
    println!("{} permits at the end", PERMITS.available_permits());

    if common::wants_bench() {
        let theirs = StdSemaphore {
            permits: std::sync::Mutex::new(LIMIT),
            released: std::sync::Condvar::new(),
        };
        common::compare(
            [
                "Semaphore",
                "a semaphore of std's Mutex and Condvar, which keeps no order",
            ],
            || load(|| answer().expect("a minute is long")),
            || load(|| theirs.with_permit(work)),
        );
    }
}
