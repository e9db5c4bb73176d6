//! The microbenchmark: lock, critical section, unlock, non-critical section, over and over.

use std::hint::black_box;

use super::audit::audit;
use super::random::Random;
use super::{Extra, InTime, Sample, Tally, many};
use crate::error::Error;
use crate::lock::BenchLock;
use crate::probe::{Either, Pass, Probe, Timed, Untimed};
use crate::world::{Word, Work, Worker, Workers, World};

/// The lengths of the two sections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// Computation while the lock is held, besides counting.
    pub critical: Work,
    /// Computation between two acquisitions.
    pub between: Work,
    /// Lines that the critical section writes.
    pub written: usize,
    /// Lines that it reads.
    pub read: usize,
    /// In how many places the written lines may be.
    pub places: usize,
    /// How many locks there are, each with lines of its own; an operation picks one at random.
    pub locks: usize,
}

/// The counter lies next to the lock, as the data of a `Mutex<u64>` do, and nothing else lies near.
#[repr(C, align(128))]
struct Shared<L, C> {
    lock: L,
    counter: C,
    /// The lines that the section writes, then those that it reads.
    lines: Vec<Line<C>>,
}

/// Two words, alone on their cache line, and on the one that a processor may fetch with it.
#[repr(align(128))]
struct Line<C>(C, C);

/// One round.
///
/// A round ends soon after its time is up, whatever the lock: each thread polls the flag in every
/// iteration, and each waiter gets the lock from a thread that ends. With a lock that has
/// collapsed, the last threads may need a time slice each. Operations that end so late do not
/// count.
///
/// # Errors
///
/// [`Error::NotExclusive`] if the counter is not the sum of the operations, and those of
/// [`World::run`].
pub fn round<W: World, L: BenchLock>(
    world: &W,
    workers: &Workers,
    shape: &Shape,
    pass: Pass,
) -> Result<Sample, Error> {
    if !W::TESTS_COUNT {
        return drive::<W, L, Either, false>(world, workers, shape, pass);
    }
    // Without work there is no test for work either: the loop is the smallest there is.
    let works = shape.critical != Work::NONE || shape.between != Work::NONE;
    let empty = !works && shape.written + shape.read == 0 && shape.locks == 1;
    match (pass, empty) {
        (Pass::Throughput, true) => drive::<W, L, Untimed, true>(world, workers, shape, pass),
        (Pass::Throughput, false) => drive::<W, L, Untimed, false>(world, workers, shape, pass),
        (Pass::Latency, true) => drive::<W, L, Timed, true>(world, workers, shape, pass),
        (Pass::Latency, false) => drive::<W, L, Timed, false>(world, workers, shape, pass),
    }
}

fn drive<W: World, L: BenchLock, P: Probe, const EMPTY: bool>(
    world: &W,
    workers: &Workers,
    shape: &Shape,
    pass: Pass,
) -> Result<Sample, Error> {
    let shared = many(shape.locks, || {
        Ok(Shared {
            lock: L::create()?,
            counter: W::Word::new(0),
            lines: (0..shape.written * shape.places + shape.read)
                .map(|_| Line(W::Word::new(0), W::Word::new(0)))
                .collect(),
        })
    })?;
    let outcome = world.run(workers, &|worker| {
        iterate::<W, L, P, EMPTY>(worker, &shared, *shape, pass)
    })?;
    let (outcome, performed) = outcome.split();
    if L::EXCLUDES {
        let counted = shared.iter().map(|shared| shared.counter.get()).sum();
        audit(&[(performed.iter().sum(), counted)], 0, 0)?;
    }
    Ok(Sample::new(outcome, Extra::None))
}

/// The measured loop. Returns all operations, too, those after the time was up included.
fn iterate<W: World, L: BenchLock, P: Probe, const EMPTY: bool>(
    worker: &W::Worker,
    locks: &[Shared<L, W::Word>],
    shape: Shape,
    pass: Pass,
) -> (Tally, u64) {
    let mut probe = P::new(pass);
    let mut random = Random::new(worker.index() as u64);
    let (mut in_time, mut performed) = (InTime::default(), 0);
    let mut goes_on = in_time.goes_on(worker, performed);
    while goes_on {
        let shared = match locks {
            [single] => single,
            _ => &locks[random.index(locks.len())],
        };
        let guard = probe.lock(worker, &shared.lock);
        shared.counter.add(1);
        if !EMPTY {
            let (all, read) = shared.lines.split_at(shape.written * shape.places);
            let written = match shape.places {
                0 | 1 => all,
                places => {
                    let place = shared.counter.get() as usize % places;
                    &all[place * shape.written..][..shape.written]
                }
            };
            // Lines that a section changes come to it at the same time, and it waits for them: it
            // reads what it changes. The store requests a line, a load of its other word waits.
            for line in written {
                line.0.set(performed);
            }
            for line in written {
                black_box(line.1.get());
            }
            // Of the others each comes after the one before, as in a list.
            for line in read {
                black_box(line.1.get());
            }
            worker.work(shape.critical);
        }
        drop(guard);
        probe.released();
        performed += 1;
        goes_on = in_time.goes_on(worker, performed);
        if !EMPTY {
            worker.work(shape.between);
        }
    }
    (Tally::new(in_time.count(), probe), performed)
}
