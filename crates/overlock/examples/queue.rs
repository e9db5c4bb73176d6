//! A bounded queue: producers wait while it is full, consumers while it is empty.
//!
//! ```text
//! cargo run --release --example queue -- --bench
//! ```

mod common;

use std::collections::VecDeque;
use std::thread;

use overlock::{Condvar, Mutex};

/// At most `limit` items, first in, first out.
struct Queue<T> {
    items: Mutex<VecDeque<T>>,
    limit: usize,
    not_empty: Condvar,
    not_full: Condvar,
}

impl<T> Queue<T> {
    fn new(limit: usize) -> Self {
        Queue {
            items: Mutex::new(VecDeque::with_capacity(limit)),
            limit,
            not_empty: Condvar::new(),
            not_full: Condvar::new(),
        }
    }

    fn push(&self, item: T) {
        let mut items = self.items.lock();
        self.not_full
            .wait_while(&mut items, |items| items.len() == self.limit);
        items.push_back(item);
        self.not_empty.notify_one();
    }

    fn pop(&self) -> T {
        let mut items = self.items.lock();
        loop {
            if let Some(item) = items.pop_front() {
                self.not_full.notify_one();
                return item;
            }
            self.not_empty.wait(&mut items);
        }
    }
}

/// Two producers and two consumers; returns the sum of what arrived.
fn pass(push: impl Fn(u64) + Sync, pop: impl Fn() -> u64 + Sync) -> u64 {
    const ITEMS: u64 = 10_000;
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..ITEMS).for_each(&push));
        }
        let consumers = [(); 2].map(|()| scope.spawn(|| (0..ITEMS).map(|_| pop()).sum::<u64>()));
        let sums = consumers.map(|consumer| consumer.join().expect("it does not panic"));
        sums.iter().sum()
    })
}

fn main() {
    let queue = Queue::new(64);
    let sum = pass(|item| queue.push(item), || queue.pop());
    assert_eq!(sum, 2 * (0..10_000).sum::<u64>());
    println!("the items add up to {sum}");

    if common::wants_bench() {
        let (sender, receiver) = std::sync::mpsc::sync_channel(64);
        let receiver = std::sync::Mutex::new(receiver);
        common::compare(
            ["Mutex and Condvar", "std's sync_channel with two receivers"],
            || _ = pass(|item| queue.push(item), || queue.pop()),
            || {
                let push = |item| sender.send(item).unwrap();
                _ = pass(push, || receiver.lock().unwrap().recv().unwrap());
            },
        );
    }
}
