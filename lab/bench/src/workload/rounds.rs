//! From a lock and a workload to the function that is compiled for both.

use std::time::Duration;

use super::{Sample, build, condvar, fserver, micro, qdisc, rw, rwsem, semop};
use crate::error::Error;
use crate::lock::{BenchCondvar, BenchLock, BenchRwLock};
use crate::probe::Pass;
use crate::world::{Part, Workers, World};

/// One round of a workload with one lock.
pub type Round<W, S> = fn(&W, &Workers, &S, Pass) -> Result<Sample, Error>;

/// Every workload that a lock is for, compiled for it.
#[derive(Debug)]
pub enum Rounds<W: World> {
    /// Of a mutual-exclusion lock.
    Exclusive {
        /// [`micro::round`]
        micro: Round<W, micro::Shape>,
        /// [`semop::round`]
        semop: Round<W, semop::Calls>,
        /// [`qdisc::round`]
        qdisc: Round<W, qdisc::Steps>,
        /// [`build::round`]
        build: Round<W, build::Farm>,
        /// [`fserver::round`]
        fserver: Round<W, fserver::Steps>,
    },
    /// Of a reader-writer lock.
    ReaderWriter {
        /// [`rw::round`]
        rw: Round<W, rw::Shape>,
        /// [`rwsem::round`]
        rwsem: Round<W, rwsem::Shape>,
    },
    /// Of a condition variable.
    Condvar {
        /// [`condvar::round`]
        condvar: Round<W, condvar::Shape>,
    },
}

impl<W: World> Rounds<W> {
    /// The workloads for the mutual-exclusion lock `L`.
    pub const fn exclusive<L: BenchLock>() -> Self {
        Self::Exclusive {
            micro: micro::round::<W, L>,
            semop: semop::round::<W, L>,
            qdisc: qdisc::round::<W, L>,
            build: build::round::<W, L>,
            fserver: fserver::round::<W, L>,
        }
    }

    /// The workloads for the reader-writer lock `L`.
    pub const fn reader_writer<L: BenchRwLock>() -> Self {
        Self::ReaderWriter {
            rw: rw::round::<W, L>,
            rwsem: rwsem::round::<W, L>,
        }
    }

    /// The workloads for the condition variable `V`.
    pub const fn condvar<V: BenchCondvar>() -> Self {
        Self::Condvar {
            condvar: condvar::round::<W, V>,
        }
    }
}

/// The sections' lengths as measured between the rounds, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sections {
    /// With the lock held.
    pub critical: f64,
    /// Without.
    pub between: f64,
}

/// A workload with its work calibrated.
#[derive(Clone, Copy, Debug)]
pub enum Prepared {
    /// [`micro`]
    Micro(micro::Shape),
    /// [`semop`]
    Semop(semop::Calls),
    /// [`qdisc`]
    Qdisc(qdisc::Steps),
    /// [`build`]
    Build(build::Farm),
    /// [`fserver`]
    Fserver(fserver::Steps),
    /// [`rw`]
    Rw(rw::Shape),
    /// [`rwsem`]
    Rwsem(rwsem::Shape),
    /// [`condvar`]
    Condvar(condvar::Shape),
}

impl Prepared {
    /// Runs one round with the lock that `rounds` are compiled for.
    ///
    /// # Errors
    ///
    /// Those of the workload.
    ///
    /// # Panics
    ///
    /// If the lock is of another family than the workload is for: lists of locks are made for a
    /// family.
    pub fn round<W: World>(
        &self,
        rounds: &Rounds<W>,
        world: &W,
        workers: &Workers,
        pass: Pass,
    ) -> Result<Sample, Error> {
        match (self, rounds) {
            (Self::Micro(shape), Rounds::Exclusive { micro, .. }) => {
                micro(world, workers, shape, pass)
            }
            (Self::Semop(calls), Rounds::Exclusive { semop, .. }) => {
                semop(world, workers, calls, pass)
            }
            (Self::Qdisc(steps), Rounds::Exclusive { qdisc, .. }) => {
                qdisc(world, workers, steps, pass)
            }
            (Self::Build(farm), Rounds::Exclusive { build, .. }) => {
                let stop_after = workers.stop_after * W::BUILD_LIMIT + Duration::from_secs(1);
                let workers = Workers {
                    stop_after,
                    measured: Part::Whole,
                    ..*workers
                };
                build(world, &workers, farm, pass)
            }
            (Self::Fserver(steps), Rounds::Exclusive { fserver, .. }) => {
                fserver(world, workers, steps, pass)
            }
            (Self::Rw(shape), Rounds::ReaderWriter { rw, .. }) => rw(world, workers, shape, pass),
            (Self::Rwsem(shape), Rounds::ReaderWriter { rwsem, .. }) => {
                rwsem(world, workers, shape, pass)
            }
            (Self::Condvar(shape), Rounds::Condvar { condvar }) => {
                condvar(world, workers, shape, pass)
            }
            _ => panic!("{} is not for this workload", workers.lock),
        }
    }

    /// How long the sections take now.
    pub fn sections<W: World>(&self, world: &W) -> Option<Sections> {
        let (critical, between) = match self {
            Self::Micro(shape) => (shape.critical, shape.between),
            Self::Rw(shape) => (shape.critical, shape.between),
            _ => return None,
        };
        Some(Sections {
            critical: world.measure(critical),
            between: world.measure(between),
        })
    }
}
