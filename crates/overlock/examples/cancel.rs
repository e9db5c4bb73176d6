//! Waits that another thread ends: a shutdown while a thread waits for a lock.
//!
//! ```text
//! cargo run --release --example cancel -- --bench
//! ```

mod common;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use overlock::{CancelToken, Cancelled, Mutex};

/// A job that needs the database, and ends if the program does.
fn job(database: &Mutex<u32>, shutdown: &CancelToken) -> Result<u32, Cancelled> {
    let mut database = database.lock_cancellable(shutdown)?;
    *database += 1;
    Ok(*database)
}

/// A thread waits for a lock that is held, and is told to end. std's lock cannot be left, so such a
/// program polls.
fn shut_down_by_polling(database: &std::sync::Mutex<u32>) {
    let shutdown = AtomicBool::new(false);
    let _held = database.lock().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !shutdown.load(Relaxed) && database.try_lock().is_err() {
                thread::sleep(Duration::from_millis(1));
            }
        });
        shutdown.store(true, Relaxed);
    });
}

fn shut_down(database: &Mutex<u32>) {
    let shutdown = CancelToken::new();
    let _held = database.lock();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| job(database, &shutdown));
        shutdown.cancel();
        assert_eq!(waiter.join().expect("it does not panic"), Err(Cancelled));
    });
}

fn main() {
    let database = Mutex::new(0);
    assert_eq!(job(&database, &CancelToken::new()), Ok(1));
    shut_down(&database);
    println!("the waiting job ended with: {Cancelled}");

    if common::wants_bench() {
        let theirs = std::sync::Mutex::new(0);
        common::compare(
            ["CancelToken", "std's Mutex, polled each millisecond"],
            || (0..50).for_each(|_| shut_down(&database)),
            || (0..50).for_each(|_| shut_down_by_polling(&theirs)),
        );
    }
}
