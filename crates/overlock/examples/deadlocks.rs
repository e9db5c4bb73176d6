//! Deadlocks found in tests: a program whose threads never meet, so that it does not hang, and the
//! validator that sees that they could. And a deadlock found in production: a program that asks now
//! and then who waits for whom.
//!
//! ```text
//! cargo run --example deadlocks --features deadlock_detection
//! cargo run --release --example deadlocks --features deadlock_detection -- --bench
//! ```

mod common;

use std::sync::{Arc, Barrier};
use std::time::Duration;

use overlock::deadlock::{DeadlockedThread, check_deadlock};
use overlock::{Mutex, lockdep};

struct Shop {
    stock: Mutex<u32>,
    orders: Mutex<Vec<u32>>,
}

impl Shop {
    fn new() -> Self {
        Shop {
            stock: Mutex::named("stock", 10),
            orders: Mutex::named("orders", Vec::new()),
        }
    }

    fn order(&self, number: u32) {
        let mut orders = self.orders.lock();
        *self.stock.lock() -= number;
        orders.push(number);
    }

    /// The other way round: with an `order` on another thread at the same time, both may wait for
    /// ever.
    fn cancel(&self) {
        let mut stock = self.stock.lock();
        *stock += self.orders.lock().pop().unwrap_or(0);
    }

    fn cancel_in_order(&self) {
        let mut orders = self.orders.lock();
        *self.stock.lock() += orders.pop().unwrap_or(0);
    }
}

/// A test's last line: whether the locks of what ran can deadlock.
fn reports_of(work: impl FnOnce()) -> usize {
    let before = lockdep::reports();
    work();
    lockdep::reports() - before
}

/// Two threads that wait for each other until the program ends.
fn meet(shop: &Arc<Shop>) {
    let both = Arc::new(Barrier::new(2));
    let (orders, met) = (Arc::clone(shop), Arc::clone(&both));
    std::thread::spawn(move || {
        let _orders = orders.orders.lock();
        met.wait();
        let _stock = orders.stock.lock();
    });
    let stock = Arc::clone(shop);
    std::thread::spawn(move || {
        let _stock = stock.stock.lock();
        both.wait();
        let _orders = stock.orders.lock();
    });
}

/// The work of a thread that watches the others. It would log the threads and end the program.
fn watch() -> Vec<DeadlockedThread> {
    loop {
        if let Some(threads) = check_deadlock().pop() {
            return threads;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn main() {
    let shop = Shop::new();
    let right = reports_of(|| {
        shop.order(3);
        shop.cancel_in_order();
    });
    assert_eq!(right, 0);
    let wrong = reports_of(|| shop.cancel());
    assert_eq!(wrong, 1, "one thread suffices to see the two orders");
    println!("the wrong order was reported, see above");

    meet(&Arc::new(Shop::new()));
    let threads = watch();
    assert_eq!(threads.len(), 2);
    for thread in &threads {
        let frames = thread.backtrace().frames().len();
        println!(
            "{:?} waits for ever, {frames} calls deep",
            thread.thread_id()
        );
    }

    if common::wants_bench() {
        let theirs = std::sync::Mutex::new(0);
        let ours = Mutex::new(0);
        common::compare(
            ["a watched Mutex", "std's"],
            || (0..100_000).for_each(|_| *ours.lock() += 1),
            || (0..100_000).for_each(|_| *theirs.lock().unwrap() += 1),
        );
    }
}
