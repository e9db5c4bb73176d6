//! A configuration that each request reads, and that hardly ever changes.
//!
//! ```text
//! cargo run --release --example config -- --bench
//! ```

mod common;

use std::thread;

use overlock::PerCpuRwLock;

#[derive(Clone, Debug)]
struct Config {
    limit: u32,
    timeout_ms: u32,
}

/// A reader writes only to a line of its own thread, so readers do not slow each other down.
static CONFIG: PerCpuRwLock<Config> = PerCpuRwLock::new(Config {
    limit: 10,
    timeout_ms: 20,
});

/// Both values are of one configuration: nobody sees half of a change.
fn request(config: &Config) {
    assert_eq!(config.timeout_ms, 2 * config.limit);
}

/// Four threads read, and `change` runs now and then.
fn serve(request: impl Fn() + Sync, change: impl Fn(u32)) {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50_000).for_each(|_| request()));
        }
        (1..=3).for_each(change);
    });
}

fn main() {
    let change = |limit| {
        let mut config = CONFIG.write();
        config.limit = limit;
        config.timeout_ms = 2 * limit;
    };
    serve(|| request(&CONFIG.read()), change);
    println!("{:?}", *CONFIG.read());

    if common::wants_bench() {
        let theirs = std::sync::RwLock::new(CONFIG.read().clone());
        let change_theirs = |limit| {
            let mut config = theirs.write().unwrap();
            config.limit = limit;
            config.timeout_ms = 2 * limit;
        };
        common::compare(
            ["PerCpuRwLock", "std's RwLock"],
            || serve(|| request(&CONFIG.read()), change),
            || serve(|| request(&theirs.read().unwrap()), change_theirs),
        );
    }
}
