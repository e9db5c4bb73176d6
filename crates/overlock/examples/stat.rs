//! A program that reads the figures of its own locks.
//!
//! ```text
//! cargo run --example stat --features stat
//! overlock profile -- target/debug/examples/stat
//! ```
//!
//! The second command sees the locks by the same names.

use std::thread;
use std::time::Duration;

use overlock::{Mutex, RwLock, stat};

static POOL: Mutex<Vec<u32>> = Mutex::named("pool", Vec::new());
static SETTINGS: RwLock<u32> = RwLock::named("settings", 1);

/// Uses a connection. The pool is held for longer than it should be.
fn query() {
    let mut pool = POOL.lock();
    let connection = pool.pop().unwrap_or_default();
    thread::sleep(Duration::from_micros(u64::from(*SETTINGS.read()) * 100));
    pool.push(connection);
}

fn main() {
    // Not needed with OVERLOCK_STAT=1 in the environment, which `overlock profile` sets.
    stat::enable(true);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|_| query()));
        }
    });
    print!("{}", stat::report());
}
