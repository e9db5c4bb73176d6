//! Threads that take turns, and what that costs: beside turns made of std's types, and beside std's
//! Mutex. That is faster and enough where a thread may be left out for a while.
//!
//! ```text
//! cargo run --release --example fair -- --bench
//! ```

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use overlock::FairMutex;

/// Four threads take the lock again and again, for a while. Returns the least and the most turns
/// that one of them had.
fn turns(lock: &FairMutex<()>, length: Duration) -> [u64; 2] {
    let ended = AtomicBool::new(false);
    let counts: [AtomicU64; 4] = Default::default();
    thread::scope(|scope| {
        for count in &counts {
            let ended = &ended;
            scope.spawn(move || {
                while !ended.load(Relaxed) {
                    let _held = lock.lock();
                    count.fetch_add(1, Relaxed);
                }
            });
        }
        thread::sleep(length);
        ended.store(true, Relaxed);
    });
    let counts = counts.map(AtomicU64::into_inner);
    let extremes = [counts.iter().min(), counts.iter().max()];
    extremes.map(|count| count.copied().unwrap_or_default())
}

/// Turns made of std's types.
#[derive(Default)]
struct Tickets {
    /// The next ticket, and the one whose turn it is.
    numbers: Mutex<[u64; 2]>,
    next_turn: Condvar,
}

impl Tickets {
    fn section(&self, section: impl FnOnce()) {
        let mut numbers = self.numbers.lock().unwrap();
        let own = numbers[0];
        numbers[0] += 1;
        let turn = self.next_turn.wait_while(numbers, |[_, turn]| *turn != own);
        drop(turn.unwrap());
        section();
        self.numbers.lock().unwrap()[1] += 1;
        self.next_turn.notify_all();
    }
}

/// Four threads take the lock a number of times.
fn crowd(section: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..500).for_each(|_| section()));
        }
    });
}

fn main() {
    let lock = FairMutex::new(());
    let [least, most] = turns(&lock, Duration::from_millis(50));
    println!("a thread had {least} to {most} turns");

    if common::wants_bench() {
        let tickets = Tickets::default();
        common::compare(
            ["FairMutex", "turns by std's Mutex and Condvar"],
            || crowd(|| drop(lock.lock())),
            || crowd(|| tickets.section(|| ())),
        );
        let theirs = Mutex::new(());
        common::compare(
            ["FairMutex", "std's Mutex, which keeps no order"],
            || crowd(|| drop(lock.lock())),
            || crowd(|| drop(theirs.lock())),
        );
    }
}
