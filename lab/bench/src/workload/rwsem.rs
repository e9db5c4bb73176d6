//! The microbenchmark of rwsem-reader-spinning: every thread reads and writes in turn, with next to
//! nothing in between.
//!
//! In the document each thread makes 250,000 reader and as many writer acquisitions, and the result
//! is the rate of all. Here threads go on until the round is over: no thread has the lock to itself
//! when others have finished, and a lock that collapses ends in time too. A thread has done the
//! document's work where it has made half a million operations.

use super::Sample;
use super::record;
use crate::error::Error;
use crate::lock::BenchRwLock;
use crate::probe::{Either, Pass, Probe, Timed, Untimed};
use crate::world::{Workers, World};

/// There is nothing to set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape;

/// One round.
///
/// # Errors
///
/// Those of [`record::round`].
pub fn round<W: World, L: BenchRwLock>(
    world: &W,
    workers: &Workers,
    _: &Shape,
    pass: Pass,
) -> Result<Sample, Error> {
    match pass {
        _ if !W::TESTS_COUNT => drive::<W, L, Either>(world, workers, pass),
        Pass::Throughput => drive::<W, L, Untimed>(world, workers, pass),
        Pass::Latency => drive::<W, L, Timed>(world, workers, pass),
    }
}

fn drive<W: World, L: BenchRwLock, P: Probe>(
    world: &W,
    workers: &Workers,
    pass: Pass,
) -> Result<Sample, Error> {
    record::round::<W, L, P>(world, workers, 1, pass, |_, client, records| {
        let [record] = records else {
            unreachable!("one was asked for")
        };
        while client.goes_on() {
            client.read(record, || {});
            client.write(record, || {});
        }
    })
}
