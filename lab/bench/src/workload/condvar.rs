//! Condition variables: threads that wait for each other, in one of three patterns.
//!
//! | pattern | who waits for whom |
//! |---|---|
//! | [`queue`] | producers and consumers of a bounded queue, for room and for items |
//! | [`ping_pong`] | pairs, each thread for its turn |
//! | [`broadcast`] | all others for one that wakes them all, and that one until all have heard it |
//!
//! In each of them one thread can always go on, as long as no notification is lost. That thread
//! sees that the round is over, closes the queue, ring or stage, and wakes all others. So every
//! round ends, or hangs where the condition variable is broken.

pub mod broadcast;
pub mod ping_pong;
pub mod queue;

use serde::{Deserialize, Serialize};

use super::audit::{audit, sums};
use super::{Extra, InTime, Sample, Tally};
use crate::error::Error;
use crate::lock::{BenchCondvar, BenchLock, Held};
use crate::probe::{Either, Pass, Probe};
use crate::world::{Outcome, Work, Workers, World};

/// Private work for an item: to make it, to use it, to act on a broadcast.
pub const ITEM_NS: f64 = 1_000.0;

/// The pattern of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// [`queue`]
    Queue,
    /// [`ping_pong`]
    PingPong,
    /// [`broadcast`]
    Broadcast,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Queue, Self::PingPong, Self::Broadcast];

    /// Their names, in the same order.
    pub const NAMES: [&'static str; 3] = ["queue", "ping-pong", "broadcast"];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The pattern, and the work for an item.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The pattern of waits.
    pub pattern: Pattern,
    /// [`ITEM_NS`]
    pub item: Work,
}

/// One round. Each pattern defines its operation. Those count that ended before the time was up.
///
/// # Errors
///
/// [`Error::NotExclusive`] and [`Error::Torn`] if the data are not what the operations left, and
/// those of [`World::run`].
pub fn round<W: World, V: BenchCondvar>(
    world: &W,
    workers: &Workers,
    shape: &Shape,
    pass: Pass,
) -> Result<Sample, Error> {
    match shape.pattern {
        Pattern::Queue => queue::drive::<W, V>(world, workers, shape.item, pass),
        Pattern::PingPong => ping_pong::drive::<W, V>(world, workers, pass),
        Pattern::Broadcast => broadcast::drive::<W, V>(world, workers, shape.item, pass),
    }
}

/// A thread that waits, and what it saw.
struct Member<'a, W: World> {
    worker: &'a W::Worker,
    probe: Either,
    operations: u64,
    in_time: InTime,
    /// Times that it found the data in a state that cannot be.
    torn: u64,
}

impl<'a, W: World> Member<'a, W> {
    fn new(worker: &'a W::Worker, pass: Pass) -> Self {
        Self {
            worker,
            probe: Either::new(pass),
            operations: 0,
            in_time: InTime::default(),
            torn: 0,
        }
    }

    /// Whether there is time for another operation.
    #[inline]
    fn goes_on(&mut self) -> bool {
        self.in_time.goes_on(self.worker, self.operations)
    }

    /// Acquires the lock and waits until there is a reason to go on. The wait that counts is that
    /// for both.
    #[inline]
    fn wait_until<'l, V: BenchCondvar>(
        &mut self,
        lock: &'l V::Mutex,
        condvar: &V,
        ready: impl Fn() -> bool,
    ) -> Held<'l, V> {
        self.probe.around(self.worker, || {
            let mut guard = lock.lock();
            while !ready() {
                guard = condvar.wait(guard);
            }
            guard
        })
    }

    /// Its result: the tally, and all operations with how often the data were torn.
    fn leave(self) -> (Tally, [u64; 2]) {
        let tally = Tally::new(self.in_time.count(), self.probe);
        (tally, [self.operations, self.torn])
    }
}

/// Checks a round whose operations left `found` in the data.
fn judge(outcome: Outcome<(Tally, [u64; 2])>, found: u64) -> Result<Sample, Error> {
    let (outcome, did) = outcome.split();
    let [expected, torn] = sums(&did);
    audit(&[(expected, found)], expected, torn)?;
    Ok(Sample::new(outcome, Extra::None))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_the_threads_tell_is_held_against_the_data() {
        let outcome = |torn| Outcome {
            results: [3, 4]
                .map(|all| {
                    let tally = Tally::new(all - 1, Either::new(Pass::Throughput));
                    (tally, [all, torn])
                })
                .to_vec(),
            elapsed: Duration::from_millis(1),
            stopped: true,
            cpu: Duration::ZERO,
            switches: 0,
            windows: Vec::new(),
        };
        assert_eq!(judge(outcome(0), 7).unwrap().operations, [2, 3]);
        assert!(matches!(
            judge(outcome(0), 6),
            Err(Error::NotExclusive {
                expected: 7,
                found: 6
            })
        ));
        assert!(matches!(
            judge(outcome(1), 7),
            Err(Error::Torn { reads: 7, torn: 2 })
        ));
    }
}
