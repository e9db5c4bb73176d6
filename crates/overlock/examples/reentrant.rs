//! Callbacks that call back: a thread locks what it holds. If none does, std's Mutex is enough,
//! and its release, which compares nothing, is a little faster.
//!
//! ```text
//! cargo run --release --example reentrant -- --bench
//! ```

mod common;

use std::cell::RefCell;
use std::thread;

use overlock::ReentrantMutex;

/// A log whose lines may be made by functions that write to it, too.
struct Log {
    // The guard gives shared access only, as the thread may have two: hence the RefCell, which is
    // borrowed for a moment.
    lines: ReentrantMutex<RefCell<Vec<String>>>,
}

impl Log {
    /// Writes what `make` returns. Lines that `make` writes come before it, and no other thread's.
    fn write(&self, make: impl FnOnce(&Self) -> String) {
        let lines = self.lines.lock();
        let line = make(self);
        lines.borrow_mut().push(line);
    }
}

fn main() {
    let log = Log {
        lines: ReentrantMutex::new(RefCell::new(Vec::new())),
    };
    thread::scope(|scope| {
        for thread in 0..4 {
            let log = &log;
            scope.spawn(move || {
                log.write(|log| {
                    log.write(|_| format!("begin {thread}"));
                    format!("end {thread}")
                });
            });
        }
    });
    for pair in log.lines.lock().borrow().chunks(2) {
        assert_eq!(pair[0].replace("begin", "end"), pair[1]);
        println!("{}, {}", pair[0], pair[1]);
    }

    if common::wants_bench() {
        // std's reentrant lock is not stable yet; a Mutex is what a program has once it needs none.
        let [ours, theirs] = [(); 2].map(|()| RefCell::new(0_u64));
        let (ours, theirs) = (ReentrantMutex::new(ours), std::sync::Mutex::new(theirs));
        common::compare(
            ["ReentrantMutex", "std's Mutex, which a thread takes once"],
            || (0..200_000).for_each(|_| *ours.lock().borrow_mut() += 1),
            || (0..200_000).for_each(|_| *theirs.lock().unwrap().borrow_mut() += 1),
        );
    }
}
