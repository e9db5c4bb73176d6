//! The loops of parking_lot's own benchmarks, with its locks, std's and ours in turn. Prints the
//! rate of ours over that of each, the median of the rounds.
//!
//! Threads do floating-point steps inside and outside of the lock for a while; the acquisitions are
//! counted. Readers and writers have one rate each.
//!
//! ```sh
//! cargo run --release -p overlock-bench --example parking_lot_bench
//! ```

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const ROUNDS: usize = 25;
const ROUND: Duration = Duration::from_millis(60);

/// A lock with a number, apart from other data in memory.
#[repr(align(256))]
struct Apart<L>(L);

/// Acquires a lock, for a function of its number.
trait Shared: Sync {
    fn write(&self, section: impl FnOnce(&mut f64));
    fn read(&self, section: impl FnOnce(f64));
}

macro_rules! shared {
    ($lock:ty, $write:ident, $read:ident $(, $unwrap:ident)?) => {
        impl Shared for Apart<$lock> {
            fn write(&self, section: impl FnOnce(&mut f64)) {
                section(&mut *self.0.$write()$(.$unwrap())?);
            }

            fn read(&self, section: impl FnOnce(f64)) {
                section(*self.0.$read()$(.$unwrap())?);
            }
        }
    };
}

shared!(overlock::Mutex<f64>, lock, lock);
shared!(overlock::RwLock<f64>, write, read);
shared!(parking_lot::Mutex<f64>, lock, lock);
shared!(parking_lot::RwLock<f64>, write, read);
shared!(std::sync::Mutex<f64>, lock, lock, unwrap);
shared!(std::sync::RwLock<f64>, write, read, unwrap);

/// Threads that write and that read, and the steps inside and outside of the lock.
#[derive(Clone, Copy)]
struct Shape {
    writers: usize,
    readers: usize,
    inside: u32,
    outside: u32,
}

fn step(value: f64, number: &mut f64, factor: f64) -> f64 {
    *number = (*number + value) * factor;
    *number
}

/// The acquisitions in a round, by writers and by readers.
fn round(lock: &impl Shared, shape: Shape) -> [f64; 2] {
    let (goes_on, counts) = (AtomicBool::new(true), [const { AtomicU64::new(0) }; 2]);
    let begin = Barrier::new(shape.writers + shape.readers + 1);
    thread::scope(|scope| {
        for number in 0..shape.writers + shape.readers {
            let reads = number >= shape.writers;
            let (goes_on, begin, count) = (&goes_on, &begin, &counts[usize::from(reads)]);
            scope.spawn(move || {
                let (mut value, mut own, mut done) = (0.0, 0.0, 0);
                begin.wait();
                while goes_on.load(Relaxed) {
                    if reads {
                        lock.read(|shared| {
                            (0..shape.inside).for_each(|_| value = step(value, &mut own, shared));
                        });
                    } else {
                        lock.write(|shared| {
                            (0..shape.inside).for_each(|_| value = step(value, shared, 1.01));
                        });
                    }
                    (0..shape.outside).for_each(|_| value = step(value, &mut own, 1.01));
                    done += 1;
                }
                black_box(value);
                count.fetch_add(done, Relaxed);
            });
        }
        begin.wait();
        thread::sleep(ROUND);
        goes_on.store(false, Relaxed);
    });
    counts.map(|count| count.into_inner() as f64)
}

/// The median of ours over theirs, for the writers and for the readers.
fn compare(ours: &impl Shared, theirs: &impl Shared, shape: Shape) -> [String; 2] {
    let mut ratios = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        let (ours, theirs) = (round(ours, shape), round(theirs, shape));
        for side in 0..2 {
            ratios[side].push(ours[side] / theirs[side]);
        }
    }
    ratios.map(|mut ratios| {
        ratios.sort_by(f64::total_cmp);
        match ratios[ROUNDS / 2] {
            none if none.is_nan() => String::from("-"),
            median => format!("{median:.2}"),
        }
    })
}

fn main() {
    println!("| threads | steps inside, outside | over parking_lot's `Mutex` | over std's |");
    println!("|---|---|---:|---:|");
    for (writers, inside, outside) in [
        (1, 1, 0),
        (2, 1, 0),
        (2, 10, 10),
        (4, 1, 0),
        (4, 10, 100),
        (16, 1, 0),
        (16, 10, 100),
    ] {
        let shape = Shape {
            writers,
            readers: 0,
            inside,
            outside,
        };
        let ours = Apart(overlock::Mutex::new(0.0));
        let [parking_lot, _] = compare(&ours, &Apart(parking_lot::Mutex::new(0.0)), shape);
        let [std, _] = compare(&ours, &Apart(std::sync::Mutex::new(0.0)), shape);
        println!("| {writers} | {inside}, {outside} | {parking_lot} | {std} |");
    }
    println!();
    println!(
        "| writers, readers | steps inside, outside | over parking_lot's `RwLock`: writers, readers | over std's |"
    );
    println!("|---|---|---|---|");
    for (writers, readers, inside, outside) in [
        (0, 1, 1, 0),
        (1, 0, 1, 0),
        (1, 1, 1, 0),
        (0, 4, 10, 10),
        (1, 4, 10, 100),
        (4, 12, 10, 100),
    ] {
        let shape = Shape {
            writers,
            readers,
            inside,
            outside,
        };
        let ours = Apart(overlock::RwLock::new(0.0));
        let parking_lot = compare(&ours, &Apart(parking_lot::RwLock::new(0.0)), shape).join(", ");
        let std = compare(&ours, &Apart(std::sync::RwLock::new(0.0)), shape).join(", ");
        println!("| {writers}, {readers} | {inside}, {outside} | {parking_lot} | {std} |");
    }
}
