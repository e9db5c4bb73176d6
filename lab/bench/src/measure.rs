//! Runs a plan and keeps what it brings.

use std::time::{Duration, Instant};

use crate::counters::Counters;
use crate::error::Error;
use crate::guest;
use crate::plan::{Plan, Step};
use crate::probe::{Pass, Roles, Waits};
use crate::registry::{Entry, Listed, Origin};
use crate::stats::median;
use crate::workload::{Sample, Sections, Workload};
use crate::world::sim::Report;
use crate::world::{Part, Workers};

/// All rounds of one lock with one number of threads.
#[derive(Debug)]
pub struct Cell {
    /// The lock.
    pub entry: &'static Entry,
    /// The number of threads.
    pub threads: usize,
    /// The throughput rounds.
    pub samples: Vec<Sample>,
    /// The waits of all latency rounds.
    pub waits: Option<Waits>,
    /// The same of readers and of writers, where there are such.
    pub roles: Option<Roles>,
    /// The lock's events in all throughput rounds, for locks of ours that count.
    pub counters: Option<Counters>,
    /// A simulated world's report of each throughput round.
    pub reports: Vec<Report>,
    /// A guest's counts of each throughput round.
    pub guests: Vec<guest::Counts>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Measurement {
    /// By number of threads, then in the order of the plan's locks.
    pub cells: Vec<Cell>,
    /// The sections, where the workload has any.
    pub sections: Option<Sections>,
    /// How long the run took.
    pub elapsed: Duration,
}

impl Measurement {
    /// Throughput rounds that every cell has.
    pub fn rounds(&self) -> usize {
        self.cells
            .iter()
            .map(|cell| cell.samples.len())
            .min()
            .unwrap_or(0)
    }
}

/// A run that failed: which lock did, and how.
#[derive(Debug)]
pub struct Failure {
    /// The lock.
    pub entry: &'static Entry,
    /// The number of threads.
    pub threads: usize,
    /// The error.
    pub error: Error,
}

/// Runs `plan` with threads that have so many `cpus`. Before each round it calls `begin` with the
/// round's number, its lock and its number of threads.
///
/// # Errors
///
/// The first round that fails ends the run.
///
/// # Panics
///
/// If a lock of the plan does not run in this world.
pub fn run<W: Listed>(
    world: &W,
    workload: &Workload,
    plan: &Plan,
    cpus: f64,
    mut begin: impl FnMut(usize, &'static Entry, usize),
) -> Result<Measurement, Failure> {
    let start = Instant::now();
    let prepared = workload.prepare(world, cpus, plan.round);
    let mut cells: Vec<Option<Cell>> = Vec::new();
    cells.resize_with(plan.threads.len() * plan.locks.len(), || None);
    let mut sections = Vec::new();
    let mut began: Option<(usize, Instant)> = None;

    for (index, step) in plan.steps().enumerate() {
        let Step {
            lock,
            threads,
            pass,
            sweep,
            round,
        } = step;
        let entry = plan.locks[lock];
        let is_limit = entry.origin == Origin::Limit;
        let workers = Workers {
            lock: entry.name,
            threads: plan.threads[threads],
            pin: plan.pin,
            stop_after: plan.round / if is_limit { W::LIMIT_SHORTER } else { 1 },
            measured: if is_limit { Part::AtOnce } else { Part::Warm },
        };
        if began.is_none_or(|(last, _)| last != sweep) {
            // The next sweep takes about as long as the last.
            let next = start.elapsed() + began.map_or(Duration::ZERO, |(_, began)| began.elapsed());
            if plan
                .deadline
                .is_some_and(|deadline| index > 0 && next > deadline)
            {
                break;
            }
            began = Some((sweep, Instant::now()));
            sections.extend(prepared.sections(world));
        }
        begin(index, entry, workers.threads);
        let cell = cells[threads * plan.locks.len() + lock].get_or_insert_with(|| Cell {
            entry,
            threads: workers.threads,
            samples: Vec::new(),
            waits: None,
            roles: None,
            reports: Vec::new(),
            guests: Vec::new(),
            counters: (plan.stat && entry.origin == Origin::Ours).then(Counters::default),
        });
        let counters = cell.counters.as_mut().filter(|_| pass == Pass::Throughput);
        if counters.is_some() {
            Counters::start();
        }
        let rounds = W::rounds(entry).expect("plans are made for a world");
        world.begin(round);
        let sample = prepared
            .round(rounds, world, &workers, pass)
            .map_err(|error| Failure {
                entry,
                threads: workers.threads,
                error,
            })?;
        if let Some(counters) = counters {
            counters.stop();
        }
        match pass {
            Pass::Throughput => {
                cell.samples.push(sample);
                cell.reports.extend(world.report());
            }
            Pass::Latency => {
                add(&mut cell.waits, sample.waits, Waits::add);
                add(&mut cell.roles, sample.roles, Roles::add);
            }
        }
    }

    Ok(Measurement {
        cells: cells.into_iter().flatten().collect(),
        sections: median_of(&sections),
        elapsed: start.elapsed(),
    })
}

fn add<T>(sum: &mut Option<T>, more: Option<T>, add: fn(&mut T, &T)) {
    match (sum, more) {
        (Some(sum), Some(more)) => add(sum, &more),
        (none, more) => *none = more,
    }
}

fn median_of(all: &[Sections]) -> Option<Sections> {
    (!all.is_empty()).then(|| Sections {
        critical: median(all.iter().map(|sections| sections.critical)),
        between: median(all.iter().map(|sections| sections.between)),
    })
}
