//! Threads that run one function each. The test file has the module `watch`, too.

use std::thread;

use crate::watch::{self, Place};

/// Runs `part` on this many threads. Panics if one of them does, or if they make no progress.
pub fn crew(name: &str, threads: usize, part: impl Fn(usize, &Place) + Clone + Send + 'static) {
    // Leaked: if a thread is stuck, the test ends before the thread.
    let places: &'static [Place] = Vec::leak((0..threads).map(|_| Place::default()).collect());
    let spawn = |number| {
        let part = part.clone();
        thread::Builder::new()
            .stack_size(128 << 10)
            .spawn(move || part(number, &places[number]))
            .unwrap()
    };
    watch::join(name, places, (0..threads).map(spawn).collect());
}
