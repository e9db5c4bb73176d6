//! A small record under a reader-writer lock: read it, or write it, over and over.
//!
//! With one record all threads meet at one lock, whose cache line is hot. With many, a thread picks
//! one at random each time: waits are rare, and the cost is that of a lock whose line has left the
//! cache.

use super::Sample;
use super::random::Random;
use super::record::{self, Client, Record};
use crate::error::Error;
use crate::lock::BenchRwLock;
use crate::probe::{Either, Pass, Probe, Timed, Untimed};
use crate::world::{Work, Worker, Workers, World};

/// The load of the threads.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Computation while the lock is held, besides reading or writing.
    pub critical: Work,
    /// Computation between two acquisitions.
    pub between: Work,
    /// How many of the operations read.
    pub reads: Share,
    /// How many records there are.
    pub records: usize,
}

/// A part of all operations, drawn at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u64);

impl Share {
    const ALL: u64 = 1 << 32;

    /// A percentage from 0 to 100.
    pub fn percent(percent: f64) -> Self {
        Self((percent / 100.0 * Self::ALL as f64).round() as u64)
    }

    /// Whether the operation of this draw belongs to it: by the low half, which leaves the high one
    /// for other uses.
    #[inline]
    fn has(self, draw: u64) -> bool {
        draw % Self::ALL < self.0
    }
}

/// One round.
///
/// # Errors
///
/// Those of [`record::round`].
pub fn round<W: World, L: BenchRwLock>(
    world: &W,
    workers: &Workers,
    shape: &Shape,
    pass: Pass,
) -> Result<Sample, Error> {
    if !W::TESTS_COUNT {
        return drive::<W, L, Either, false>(world, workers, shape, pass);
    }
    // Without work there is no test for work either, as in the microbenchmark.
    let empty = shape.critical == Work::NONE && shape.between == Work::NONE;
    match (pass, empty) {
        (Pass::Throughput, true) => drive::<W, L, Untimed, true>(world, workers, shape, pass),
        (Pass::Throughput, false) => drive::<W, L, Untimed, false>(world, workers, shape, pass),
        (Pass::Latency, true) => drive::<W, L, Timed, true>(world, workers, shape, pass),
        (Pass::Latency, false) => drive::<W, L, Timed, false>(world, workers, shape, pass),
    }
}

fn drive<W: World, L: BenchRwLock, P: Probe, const EMPTY: bool>(
    world: &W,
    workers: &Workers,
    shape: &Shape,
    pass: Pass,
) -> Result<Sample, Error> {
    record::round::<W, L, P>(
        world,
        workers,
        shape.records,
        pass,
        |worker, client, records| {
            iterate::<W, L, P, EMPTY>(worker, client, records, *shape);
        },
    )
}

/// The measured loop.
#[inline]
fn iterate<W: World, L: BenchRwLock, P: Probe, const EMPTY: bool>(
    worker: &W::Worker,
    client: &mut Client<'_, W, P>,
    records: &[Record<L, W::Word>],
    shape: Shape,
) {
    let mut random = Random::new(worker.index() as u64);
    let inside = || {
        if !EMPTY {
            worker.work(shape.critical);
        }
    };
    let mut goes_on = client.goes_on();
    while goes_on {
        let draw = random.draw();
        // The place of a single record does not depend on the draw, so that nothing waits for it.
        let record = match records {
            [single] => single,
            _ => &records[pick(draw, records.len())],
        };
        if shape.reads.has(draw) {
            client.read(record, inside);
        } else {
            client.write(record, inside);
        }
        goes_on = client.goes_on();
        if !EMPTY {
            worker.work(shape.between);
        }
    }
}

/// One of `count` things, by the high half of a draw.
#[inline]
fn pick(draw: u64, count: usize) -> usize {
    ((u128::from(draw >> 32) * count as u128) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept() {
        for (percent, expected) in [(0.0, 0), (100.0, 10_000), (90.0, 9_000)] {
            let share = Share::percent(percent);
            let mut random = Random::new(1);
            let reads = (0..10_000).filter(|_| share.has(random.draw())).count();
            assert!(reads.abs_diff(expected) < 100, "{percent} %: {reads}");
            assert!(percent == 90.0 || reads == expected, "{percent} %: {reads}");
        }
    }

    #[test]
    fn every_record_is_picked() {
        let mut random = Random::new(1);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[pick(random.draw(), 7)] = true;
        }
        assert_eq!(seen, [true; 7]);
        assert_eq!(pick(u64::MAX, 7), 6);
    }
}
