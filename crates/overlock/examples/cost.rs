//! The CPU time of a lock and its unlock, where nobody else wants the lock.
//!
//! ```text
//! cargo run --release --example cost [mutex|read|write]
//! ```
//!
//! `scripts/overhead crate` runs it with and without the feature `stat`.

use std::fs;

use overlock::{Mutex, RwLock};

/// Nanoseconds that this thread was on a CPU.
fn cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    first.unwrap_or(0)
}

fn main() {
    const ROUNDS: u32 = 5_000_000;
    let load = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "mutex".to_owned());
    let (mutex, rwlock) = (Mutex::new(0), RwLock::new(0));
    let mut sum = 0;
    let before = cpu_ns();
    for _ in 0..ROUNDS {
        match load.as_str() {
            "read" => sum += *rwlock.read(),
            "write" => *rwlock.write() += 1,
            _ => *mutex.lock() += 1,
        }
    }
    let took = cpu_ns() - before;
    assert!(sum + *mutex.lock() + *rwlock.read() <= ROUNDS);
    println!("{load} {:.3}", took as f64 / f64::from(ROUNDS));
}
