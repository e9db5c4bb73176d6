//! Measures an uncontended acquisition and release, with and without the feature `lockdep`.
//!
//! ```sh
//! cargo run --release -p overlock-bench --example lockdep_cost
//! cargo run --release -p overlock-bench --example lockdep_cost --features lockdep
//! ```

use std::hint::black_box;
use std::time::Instant;

use overlock::{Mutex, RwLock};

const ROUNDS: u32 = 2_000_000;

/// The shortest of some runs, in nanoseconds per round.
fn time(name: &str, mut round: impl FnMut()) {
    let runs = (0..9).map(|_| {
        let start = Instant::now();
        (0..ROUNDS).for_each(|_| round());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    });
    let best = runs.fold(f64::INFINITY, f64::min);
    println!("{name:<40}{best:8.1} ns");
}

fn main() {
    let [a, b, c] = [(); 3].map(|()| Mutex::new(0u64));
    let [a, b, c] = [&a, &b, &c].map(black_box);
    let d = Mutex::new(0u64);
    let d = black_box(&d);
    let shared = RwLock::new(0u64);
    let shared = black_box(&shared);
    time("a mutex", || *a.lock() += 1);
    time("a mutex while another is held", || {
        let _held = d.lock();
        *a.lock() += 1;
    });
    time("three mutexes of one class within each other", || {
        let _a = a.lock();
        let _b = b.lock();
        *c.lock() += 1;
    });
    time("a reader", || _ = black_box(*shared.read()));
}
