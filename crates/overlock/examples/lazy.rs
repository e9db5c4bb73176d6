//! A table that the first user computes, and a set-up that runs once.
//!
//! ```text
//! cargo run --release --example lazy -- --bench
//! ```

mod common;

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use overlock::{Once, OnceLock};

static TABLE: OnceLock<Vec<u32>> = OnceLock::new();
static SET_UP: Once = Once::new();
static TIMES: AtomicU32 = AtomicU32::new(0);

/// The table of squares.
fn table() -> &'static [u32] {
    TABLE.get_or_init(|| {
        TIMES.fetch_add(1, Relaxed);
        (0..1000).map(|number| number * number).collect()
    })
}

fn main() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                SET_UP.call_once(|| println!("set up"));
                assert_eq!(table()[30], 900);
            });
        }
    });
    assert_eq!(TIMES.load(Relaxed), 1);

    if common::wants_bench() {
        let theirs = std::sync::OnceLock::new();
        theirs.get_or_init(|| table().to_vec());
        let read = |get: &dyn Fn() -> u32| (0..1_000_000).for_each(|_| _ = black_box(get()));
        common::compare(
            ["OnceLock, once it is made", "std's"],
            || read(&|| table()[1]),
            || read(&|| theirs.get_or_init(Vec::new)[1]),
        );
    }
}
