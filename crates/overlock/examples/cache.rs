//! A cache: readers share it, and the first one that misses an entry computes it for all.
//!
//! ```text
//! cargo run --release --example cache -- --bench
//! ```

mod common;

use std::collections::HashMap;
use std::thread;

use overlock::{RwLock, RwLockUpgradableReadGuard};

/// Values by key, each computed once.
struct Cache {
    entries: RwLock<HashMap<u64, u64>>,
}

impl Cache {
    fn new() -> Self {
        Cache {
            entries: RwLock::new(HashMap::new()),
        }
    }

    /// Returns the value of `key`, computed by `make` if nobody has asked before.
    fn get(&self, key: u64, make: impl FnOnce(u64) -> u64) -> u64 {
        if let Some(&value) = self.entries.read().get(&key) {
            return value;
        }
        // One upgradable reader at a time: the others go on reading while this one computes.
        let entries = self.entries.upgradable_read();
        if let Some(&value) = entries.get(&key) {
            return value;
        }
        let value = make(key);
        RwLockUpgradableReadGuard::upgrade(entries).insert(key, value);
        value
    }
}

/// The same with std, which cannot upgrade: two threads may compute one value.
struct StdCache {
    entries: std::sync::RwLock<HashMap<u64, u64>>,
}

impl StdCache {
    fn get(&self, key: u64, make: impl FnOnce(u64) -> u64) -> u64 {
        if let Some(&value) = self.entries.read().unwrap().get(&key) {
            return value;
        }
        let value = make(key);
        *self.entries.write().unwrap().entry(key).or_insert(value)
    }
}

/// Four threads ask for 256 keys.
fn ask(get: impl Fn(u64) -> u64 + Sync) {
    thread::scope(|scope| {
        for thread in 0..4 {
            let get = &get;
            scope.spawn(move || {
                for turn in 0..20_000 {
                    let key = (turn * 7 + thread) % 256;
                    assert_eq!(get(key), key * key);
                }
            });
        }
    });
}

fn main() {
    let cache = Cache::new();
    let square = |key| key * key;
    ask(|key| cache.get(key, square));
    println!("{} entries", cache.entries.read().len());

    if common::wants_bench() {
        let theirs = StdCache {
            entries: std::sync::RwLock::new(HashMap::new()),
        };
        common::compare(
            ["RwLock", "std's"],
            || ask(|key| cache.get(key, square)),
            || ask(|key| theirs.get(key, square)),
        );
    }
}
