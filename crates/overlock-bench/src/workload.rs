//! The workloads: each generic over the world it runs in and the lock it measures.

pub mod build;
pub mod micro;
pub mod qdisc;
pub mod random;
pub mod semop;

use std::time::Duration;

use crate::error::Error;
use crate::lock::BenchLock;
use crate::measure::Sections;
use crate::probe::{Pass, Waits};
use crate::world::{Crew, Team, World};

/// One round of a workload with one lock.
pub type Round<W, S> = fn(&W, &Team, &S, Pass) -> Result<Sample, Error>;

/// Every workload, compiled for one lock.
#[derive(Debug)]
pub struct Rounds<W: World> {
    /// [`micro::round`].
    pub micro: Round<W, micro::Shape>,
    /// [`semop::round`].
    pub semop: Round<W, semop::Calls>,
    /// [`qdisc::round`].
    pub qdisc: Round<W, qdisc::Steps>,
    /// [`build::round`].
    pub build: Round<W, build::Farm>,
}

impl<W: World> Rounds<W> {
    /// The workloads for `L`.
    pub const fn of<L: BenchLock>() -> Self {
        Self {
            micro: micro::round::<W, L>,
            semop: semop::round::<W, L>,
            qdisc: qdisc::round::<W, L>,
            build: build::round::<W, L>,
        }
    }
}

/// What a round of any workload brings.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Operations of each thread.
    pub operations: Vec<u64>,
    /// How long the round took.
    pub elapsed: Duration,
    /// CPU time of all threads.
    pub cpu: Duration,
    /// The waits for the lock, if this was a latency pass.
    pub waits: Option<Waits>,
    /// What only this workload has.
    pub extra: Extra,
}

/// What a workload brings besides operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// Nothing.
    None,
    /// [`qdisc`]: packets that found the queue full.
    Dropped(u64),
    /// [`build`]: whether all was built when the round ended.
    Built {
        /// All of it.
        all: bool,
    },
}

impl Sample {
    fn new(crew: Crew<Tally>, extra: Extra) -> Self {
        let waits = crew
            .results
            .iter()
            .filter_map(|tally| tally.waits.as_ref())
            .fold(None, |sum, waits| {
                let mut sum: Waits = sum.unwrap_or_default();
                sum.add(waits);
                Some(sum)
            });
        Self {
            operations: crew.results.iter().map(|tally| tally.operations).collect(),
            elapsed: crew.elapsed,
            cpu: crew.cpu,
            waits,
            extra,
        }
    }

    /// Operations of all threads.
    pub fn total(&self) -> u64 {
        self.operations.iter().sum()
    }
}

/// What a thread of a workload brings.
#[derive(Debug)]
struct Tally {
    operations: u64,
    waits: Option<Waits>,
}

/// A workload to run, as the user asks for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// [`micro`], with the lengths of its sections in nanoseconds.
    Micro {
        /// Critical section.
        cs: f64,
        /// Non-critical section.
        ncs: f64,
    },
    /// [`semop`].
    Semop {
        /// Semaphore arrays.
        arrays: usize,
    },
    /// [`qdisc`].
    Qdisc,
    /// [`build`].
    Build,
}

impl Workload {
    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Micro { .. } => "micro",
            Self::Semop { .. } => "semop",
            Self::Qdisc => "qdisc",
            Self::Build => "build",
        }
    }

    /// Whether the limit means something: what the loop does without a lock is what a perfect lock
    /// could come near to.
    pub fn has_limit(&self) -> bool {
        matches!(self, Self::Micro { .. })
    }

    /// How many times its length a round may take. A build is as long as it would be if every CPU were
    /// always busy and no lock cost anything, so it takes longer.
    pub fn stretch(&self) -> f64 {
        if *self == Self::Build { 2.0 } else { 1.0 }
    }

    /// The lengths of its sections in nanoseconds, if they are for the user to set.
    pub fn sections(&self) -> Option<(f64, f64)> {
        match *self {
            Self::Micro { cs, ncs } => Some((cs, ncs)),
            _ => None,
        }
    }

    /// Calibrates the work for `world`, whose `cpus` are to be busy for `round`.
    pub fn prepare<W: World>(&self, world: &W, cpus: f64, round: Duration) -> Prepared {
        match *self {
            Self::Micro { cs, ncs } => Prepared::Micro(micro::Shape {
                critical: world.work(cs),
                between: world.work(ncs),
            }),
            Self::Semop { arrays } => Prepared::Semop(semop::Calls {
                arrays,
                call: world.work(semop::CALL_NS),
            }),
            Self::Qdisc => Prepared::Qdisc(qdisc::Steps {
                prepare: world.work(qdisc::PREPARE_NS),
                enqueue: world.work(qdisc::ENQUEUE_NS),
                dequeue: world.work(qdisc::DEQUEUE_NS),
                transmit: world.work(qdisc::TRANSMIT_NS),
            }),
            Self::Build => Prepared::Build(build::Farm {
                compilations: build::Farm::compilations(round.as_secs_f64() * cpus),
                private: world.work(build::PRIVATE_NS),
                visit: world.work(build::VISIT_NS),
            }),
        }
    }
}

/// A workload with its work calibrated.
#[derive(Clone, Copy, Debug)]
pub enum Prepared {
    /// [`micro`].
    Micro(micro::Shape),
    /// [`semop`].
    Semop(semop::Calls),
    /// [`qdisc`].
    Qdisc(qdisc::Steps),
    /// [`build`].
    Build(build::Farm),
}

impl Prepared {
    /// Runs one round with the lock that `rounds` are compiled for.
    ///
    /// # Errors
    ///
    /// Those of the workload.
    pub fn round<W: World>(
        &self,
        rounds: &Rounds<W>,
        world: &W,
        team: &Team,
        pass: Pass,
    ) -> Result<Sample, Error> {
        match self {
            Self::Micro(shape) => (rounds.micro)(world, team, shape, pass),
            Self::Semop(calls) => (rounds.semop)(world, team, calls, pass),
            Self::Qdisc(steps) => (rounds.qdisc)(world, team, steps, pass),
            Self::Build(farm) => {
                // A lock that has collapsed may take hours for what others do in a second.
                let stop_after = team.stop_after * 10 + Duration::from_secs(1);
                (rounds.build)(
                    world,
                    &Team {
                        stop_after,
                        ..*team
                    },
                    farm,
                    pass,
                )
            }
        }
    }

    /// How long the sections take now.
    pub fn sections<W: World>(&self, world: &W) -> Option<Sections> {
        match self {
            Self::Micro(shape) => Some(Sections {
                critical: world.measure(shape.critical),
                between: world.measure(shape.between),
            }),
            _ => None,
        }
    }
}
