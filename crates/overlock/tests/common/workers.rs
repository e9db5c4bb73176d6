//! Threads that do one part each. The test file has `watch` too.

use std::thread;

use crate::watch::{self, ThreadState};

/// Runs `part` on so many threads, and panics if one of them does, or if they make no more
/// progress.
pub fn workers(
    name: &str,
    threads: usize,
    part: impl Fn(usize, &ThreadState) + Clone + Send + 'static,
) {
    // Leaked: if a thread is stuck the test ends before it does.
    let states: &'static [ThreadState] =
        Vec::leak((0..threads).map(|_| ThreadState::default()).collect());
    let spawn = |number| {
        let part = part.clone();
        thread::Builder::new()
            .stack_size(128 << 10)
            .spawn(move || part(number, &states[number]))
            .unwrap()
    };
    watch::join(name, states, (0..threads).map(spawn).collect());
}
