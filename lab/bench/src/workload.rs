//! The workloads: each generic over the world it runs in and the lock it measures.

mod audit;
pub mod build;
pub mod condvar;
pub mod fserver;
pub mod grid;
pub mod micro;
pub mod qdisc;
pub mod random;
pub mod record;
mod rounds;
pub mod rw;
pub mod rwsem;
mod sample;
pub mod semop;
pub mod spec;
#[cfg(test)]
mod tests;
mod words;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::registry::{Entry, Family};
use crate::world::World;
use condvar::Pattern;

pub use rounds::{Prepared, Round, Rounds, Sections};
pub use sample::{Extra, Sample};
use sample::{InTime, Tally};
use words::Words;

/// A workload to run, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Workload {
    /// [`micro`], with the lengths of its sections in nanoseconds.
    Micro {
        /// Critical section.
        #[serde(with = "spec::nanoseconds")]
        cs: f64,
        /// Non-critical section.
        #[serde(with = "spec::nanoseconds")]
        ncs: f64,
        /// Cache lines that the critical section writes, beside that of the lock.
        lines: usize,
        /// Cache lines that it reads.
        lines_read: usize,
        /// In how many places the written lines may be: sections take turns.
        places: usize,
        /// Locks, of which each operation picks one at random.
        choices: usize,
    },
    /// [`semop`].
    Semop {
        /// Semaphore arrays.
        arrays: usize,
    },
    /// [`qdisc`].
    Qdisc,
    /// [`build`], with the lengths of its sections in nanoseconds.
    Build {
        /// A visit to a shared structure.
        #[serde(with = "spec::nanoseconds")]
        cs: f64,
        /// Private work before each.
        #[serde(with = "spec::nanoseconds")]
        ncs: f64,
    },
    /// [`fserver`].
    Fserver,
    /// [`rw`], with the lengths of its sections in nanoseconds.
    Rw {
        /// Critical section.
        #[serde(with = "spec::nanoseconds")]
        cs: f64,
        /// Non-critical section.
        #[serde(with = "spec::nanoseconds")]
        ncs: f64,
        /// Percentage of operations that read.
        reads: f64,
        /// Records, each under its own lock.
        records: usize,
    },
    /// [`rwsem`].
    Rwsem,
    /// [`condvar`].
    Condvar {
        /// The pattern of waits.
        pattern: Pattern,
    },
}

/// Makes so many locks with their data: a loop, since an iterator would be compiled for each kind
/// of lock in many more pieces.
fn many<T>(count: usize, make: impl Fn() -> Result<T, Error>) -> Result<Vec<T>, Error> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(make()?);
    }
    Ok(all)
}

/// The parameters of a workload, for the report: `None` where it has no such parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Parameters {
    /// The critical section in nanoseconds.
    pub cs_ns: Option<f64>,
    /// The non-critical section.
    pub ncs_ns: Option<f64>,
    /// Cache lines that a critical section writes, if any.
    pub lines: Option<usize>,
    /// Cache lines that it reads, if any.
    pub lines_read: Option<usize>,
    /// In how many places the written ones may be, if in several.
    pub places: Option<usize>,
    /// Locks that operations choose among, if there are several.
    pub choices: Option<usize>,
    /// Semaphore arrays.
    pub arrays: Option<usize>,
    /// Percentage of operations that read.
    pub reads_percent: Option<f64>,
    /// Records, each under its own lock.
    pub records: Option<usize>,
    /// The pattern of waits.
    pub pattern: Option<&'static str>,
}

impl Parameters {
    /// A phrase after a comma for each parameter, the sections excepted.
    pub fn describe(&self) -> String {
        let reads = self
            .reads_percent
            .map(|percent| format!(", {percent} % reads"));
        let records = self.records.map(|records| match records {
            1 => ", 1 record".to_owned(),
            _ => format!(", {records} records"),
        });
        let arrays = self.arrays.map(|arrays| format!(", {arrays} arrays"));
        let lines = self.lines.map(|lines| format!(", {lines} lines written"));
        let lines_read = self.lines_read.map(|lines| format!(", {lines} lines read"));
        let places = self.places.map(|places| format!(", {places} places"));
        let choices = self.choices.map(|choices| format!(", {choices} locks"));
        let pattern = self.pattern.map(|pattern| format!(", {pattern}"));
        [
            reads, records, arrays, lines, lines_read, places, choices, pattern,
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl Workload {
    /// One of each, with the default parameters, in the order of the help.
    pub const ALL: [Self; 8] = [
        Self::micro(0.0, 0.0),
        Self::Semop { arrays: 4 },
        Self::Qdisc,
        Self::Build {
            cs: build::VISIT_NS,
            ncs: build::PRIVATE_NS,
        },
        Self::Fserver,
        Self::Rw {
            cs: 0.0,
            ncs: 0.0,
            reads: 90.0,
            records: 1,
        },
        Self::Rwsem,
        Self::Condvar {
            pattern: Pattern::Queue,
        },
    ];

    /// [`micro`] with these sections, which touch no line but that of the lock.
    pub const fn micro(cs: f64, ncs: f64) -> Self {
        Self::Micro {
            cs,
            ncs,
            lines: 0,
            lines_read: 0,
            places: 1,
            choices: 1,
        }
    }

    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Micro { .. } => "micro",
            Self::Semop { .. } => "semop",
            Self::Qdisc => "qdisc",
            Self::Build { .. } => "build",
            Self::Fserver => "fserver",
            Self::Rw { .. } => "rw",
            Self::Rwsem => "rwsem",
            Self::Condvar { .. } => "condvar",
        }
    }

    /// Its description.
    pub fn about(&self) -> &'static str {
        match self {
            Self::Micro { .. } => {
                "lock, critical section, unlock, non-critical section, over and over"
            }
            Self::Semop { .. } => "semaphore arrays, each under its own lock",
            Self::Qdisc => {
                "a network queue: a busy lock in front of a root lock, one dequeuer at a time"
            }
            Self::Build { .. } => {
                "a compile farm: fixed work, mostly private, with many short critical sections"
            }
            Self::Fserver => {
                "a file server: a tree of directories, each under its own mutex, with short \
                 sections and long ones"
            }
            Self::Rw { .. } => "a small record under a reader-writer lock",
            Self::Rwsem => "reader-writer locks, every thread reading and writing in turn",
            Self::Condvar { .. } => "condition variables: threads that wait for each other",
        }
    }

    /// The workload of that name, as it usually is.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|workload| workload.name() == name)
    }

    /// The locks that it is for.
    pub fn family(&self) -> Family {
        match self {
            Self::Micro { .. }
            | Self::Semop { .. }
            | Self::Qdisc
            | Self::Build { .. }
            | Self::Fserver => Family::Exclusive,
            Self::Rw { .. } | Self::Rwsem => Family::ReaderWriter,
            Self::Condvar { .. } => Family::Condvar,
        }
    }

    /// The limit, where it means something: what the loop does without a lock is what a perfect
    /// lock could come near to.
    pub fn limit(&self) -> Option<&'static Entry> {
        match self {
            Self::Micro { .. } | Self::Rw { .. } => self.family().limit(),
            _ => None,
        }
    }

    /// The most operations a second that any lock allows `threads` on `cpus`, whose critical
    /// sections take so many nanoseconds: a writer is alone with a lock, and of readers as many
    /// run as there are CPUs.
    pub fn cap(&self, critical: f64, threads: usize, cpus: usize) -> f64 {
        let alone = 1e9 / critical;
        match *self {
            Self::Micro { choices, .. } => alone * choices as f64,
            Self::Rw { reads, records, .. } => {
                let together = threads.min(cpus).max(1) as f64;
                let reads = reads / 100.0;
                alone * records as f64 / (1.0 - reads + reads / together)
            }
            _ => f64::INFINITY,
        }
    }

    /// How many times its length a round may take. A build is as long as it would be if every CPU
    /// were always busy and no lock cost anything, so it takes longer.
    pub fn stretch(&self) -> f64 {
        if matches!(self, Self::Build { .. }) {
            2.0
        } else {
            1.0
        }
    }

    /// Its parameters, as they are set.
    pub fn parameters(&self) -> Parameters {
        let none = Parameters::default();
        match *self {
            Self::Micro {
                cs,
                ncs,
                lines,
                lines_read,
                places,
                choices,
            } => Parameters {
                cs_ns: Some(cs),
                ncs_ns: Some(ncs),
                lines: Some(lines).filter(|&lines| lines > 0),
                lines_read: Some(lines_read).filter(|&lines| lines > 0),
                places: Some(places).filter(|&places| places > 1),
                choices: Some(choices).filter(|&choices| choices > 1),
                ..none
            },
            Self::Build { cs, ncs } => Parameters {
                cs_ns: Some(cs),
                ncs_ns: Some(ncs),
                ..none
            },
            Self::Semop { arrays } => Parameters {
                arrays: Some(arrays),
                ..none
            },
            Self::Rw {
                cs,
                ncs,
                reads,
                records,
            } => Parameters {
                cs_ns: Some(cs),
                ncs_ns: Some(ncs),
                reads_percent: Some(reads),
                records: Some(records),
                ..none
            },
            Self::Condvar { pattern } => Parameters {
                pattern: Some(pattern.name()),
                ..none
            },
            Self::Qdisc | Self::Fserver | Self::Rwsem => none,
        }
    }

    /// Calibrates the work for `world`, whose `cpus` are to be busy for `round`.
    pub fn prepare<W: World>(&self, world: &W, cpus: f64, round: Duration) -> Prepared {
        match *self {
            Self::Micro {
                cs,
                ncs,
                lines,
                lines_read,
                places,
                choices,
            } => Prepared::Micro(micro::Shape {
                critical: world.work(cs),
                between: world.work(ncs),
                written: lines,
                read: lines_read,
                places,
                locks: choices,
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
            Self::Build { cs, ncs } => Prepared::Build(build::Farm {
                compilations: build::Farm::compilations(round.as_secs_f64() * cpus, cs + ncs),
                private: world.work(ncs),
                visit: world.work(cs),
            }),
            Self::Fserver => Prepared::Fserver(fserver::Steps {
                request: world.work(fserver::REQUEST_NS),
                lookup: world.work(fserver::LOOKUP_NS),
                create: world.work(fserver::CREATE_NS),
                rename: world.work(fserver::RENAME_NS),
                list: world.work(fserver::LIST_NS),
            }),
            Self::Rw {
                cs,
                ncs,
                reads,
                records,
            } => Prepared::Rw(rw::Shape {
                critical: world.work(cs),
                between: world.work(ncs),
                reads: rw::Share::percent(reads),
                records,
            }),
            Self::Rwsem => Prepared::Rwsem(rwsem::Shape),
            Self::Condvar { pattern } => Prepared::Condvar(condvar::Shape {
                pattern,
                item: world.work(condvar::ITEM_NS),
            }),
        }
    }
}
