//! Measures reading under the locks whose readers touch only their own slot, against a plain
//! counter. Prints the fastest of several rounds, in nanoseconds for each acquisition and release.
//!
//! ```sh
//! cargo run --release -p overlock-bench --example read_cost
//! ```

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use overlock::{PerCpuRwLock, RwLock};

const TURNS: u32 = 10_000_000;
const ROUNDS: u32 = 7;

thread_local! {
    static PLAIN: Cell<u64> = const { Cell::new(0) };
    static ATOMIC: AtomicU64 = const { AtomicU64::new(0) };
}

static RW: RwLock<u64> = RwLock::new(0);
static PERCPU: PerCpuRwLock<u64> = PerCpuRwLock::new(0);

fn measure(name: &str, mut turn: impl FnMut()) {
    let round = |_| {
        let start = Instant::now();
        (0..TURNS).for_each(|_| turn());
        start.elapsed()
    };
    let fastest: Duration = (0..ROUNDS).map(round).min().unwrap_or_default();
    let nanos = fastest.as_secs_f64() * 1e9 / f64::from(TURNS);
    println!("{nanos:6.2} ns  {name}");
}

/// Adds to the plain counter, through memory each time.
fn add(difference: u64) {
    PLAIN.with(|count| black_box(count).set(count.get().wrapping_add(difference)));
}

fn main() {
    measure("a thread-local increment and decrement", || {
        add(1);
        add(u64::MAX);
    });
    measure("a thread-local atomic increment", || {
        ATOMIC.with(|count| _ = black_box(count).fetch_add(1, Relaxed));
    });
    measure("PerCpuRwLock::read", || _ = black_box(*PERCPU.read()));
    measure("RwLock::read, nobody writes", || _ = black_box(*RW.read()));
}
