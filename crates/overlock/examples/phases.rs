//! A computation in phases: no thread begins the next one before all have ended the last.
//!
//! ```text
//! cargo run --release --example phases -- --bench
//! ```

mod common;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use overlock::Barrier;

const THREADS: usize = 4;
const PHASES: usize = 200;

/// Each phase replaces each cell by the sum of its neighbours of the phase before, in a ring.
fn compute(wait: impl Fn() + Sync) -> u64 {
    let cells: [[AtomicU64; THREADS]; 2] = Default::default();
    cells[0][0].store(1, Relaxed);
    thread::scope(|scope| {
        for cell in 0..THREADS {
            let (cells, wait) = (&cells, &wait);
            scope.spawn(move || {
                for phase in 0..PHASES {
                    let [old, new] = [&cells[phase % 2], &cells[(phase + 1) % 2]];
                    let left = old[(cell + THREADS - 1) % THREADS].load(Relaxed);
                    let right = old[(cell + 1) % THREADS].load(Relaxed);
                    new[cell].store(left.wrapping_add(right), Relaxed);
                    wait();
                }
            });
        }
    });
    cells[PHASES % 2]
        .iter()
        .fold(0, |sum, cell| sum.wrapping_add(cell.load(Relaxed)))
}

fn main() {
    let barrier = Barrier::new(THREADS);
    let sum = compute(|| _ = barrier.wait());
    // The sum doubles in each phase.
    assert_eq!(sum, 2_u64.wrapping_pow(PHASES as u32));
    println!("{PHASES} phases of {THREADS} threads");

    if common::wants_bench() {
        let theirs = std::sync::Barrier::new(THREADS);
        common::compare(
            ["Barrier", "std's"],
            || _ = compute(|| _ = barrier.wait()),
            || _ = compute(|| _ = theirs.wait()),
        );
    }
}
