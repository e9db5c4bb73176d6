//! Threads that do one part each. The test file has `watch` too.

use std::thread;

use crate::watch::{self, Place};

/// Runs `part` on so many threads, and panics where one of them does, or where they no longer get
/// on.
pub fn crew(name: &str, threads: usize, part: impl Fn(usize, &Place) + Clone + Send + 'static) {
    // Leaked: where a thread is stuck the test ends before it does.
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
