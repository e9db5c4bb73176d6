//! The published tables, and the simulations that reproduce them.
//!
//! A [`Table`] names the simulations that it needs. It makes of their results lines that stand
//! beside the published ones, and claims that hold or do not. All tables use the same cost model:
//! presets of machines and hosts, none of which belongs to a table. A document leaves some of its
//! workload open; each table says what it assumes.

mod judge;
pub mod label;
pub mod score;
mod tables;
#[cfg(test)]
mod tests;
pub mod text;

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use serde::Serialize;

use crate::pool;
use overlock_bench::error::Error;
use overlock_bench::interrupt::Interrupt;
use overlock_bench::measure;
use overlock_bench::plan::Plan;
use overlock_bench::registry::select;
use overlock_bench::stats::median;
use overlock_bench::workload::{Extra, Sample, Workload};
use overlock_bench::world::sim::{Report, Simulated};

pub use judge::{Claim, Line, Verdict};
pub use tables::TABLES;

/// A published table.
#[derive(Debug)]
pub struct Table {
    /// Its name: that of its file.
    pub name: &'static str,
    /// Its title, and its publication.
    pub about: &'static str,
    /// Assumptions where the document leaves the workload open.
    pub assumes: &'static str,
    /// The year of the document.
    pub year: u16,
    /// Whether the cost model was fitted to it.
    pub fitted: bool,
    /// The published figures.
    pub csv: &'static str,
    cases: fn() -> Vec<Case>,
    judge: fn(&Results) -> Verdict,
}

/// A simulation that a table needs.
#[derive(Clone, Debug)]
pub struct Case {
    machine: &'static str,
    host: &'static str,
    lock: &'static str,
    vcpus: usize,
    /// Guests that have those vCPUs, each of which runs the workload.
    guests: usize,
    workload: Workload,
    /// Simulated seconds at the normal length.
    seconds: f64,
    /// How many simulations, each with another seed; what counts is their median.
    runs: usize,
}

impl Case {
    /// For people.
    pub fn label(&self) -> String {
        format!("{} {} {}", self.machine, self.lock, self.vcpus)
    }

    fn machine(&self) -> Machine {
        let machine = Machine::preset(self.machine);
        machine.expect("tables name presets").clone()
    }

    fn host(&self) -> Host {
        Host::named(self.host).expect("tables name hosts")
    }
}

/// The results of a case.
#[derive(Clone, Debug)]
pub struct Run {
    case: Case,
    samples: Vec<Sample>,
    reports: Vec<Report>,
}

/// The results of all cases of a table.
#[derive(Debug)]
pub struct Results(Vec<Run>);

/// How to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Every simulation is so many times as long as it normally is.
    pub length: f64,
    /// Decides about chance. Further seeds are the numbers that follow.
    pub seed: u64,
    /// How many seeds, at least one.
    pub seeds: usize,
    /// How many simulations run at a time.
    pub jobs: usize,
    /// Ends all of them when raised.
    pub interrupt: Arc<Interrupt>,
}

/// Why a table has no result.
#[derive(Debug)]
pub struct Failure {
    /// Which simulation failed.
    pub case: String,
    /// How.
    pub error: Error,
}

impl Table {
    /// The table of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TABLES.iter().find(|table| table.name == name)
    }

    /// How many simulations it needs.
    pub fn cases(&self) -> usize {
        (self.cases)().len()
    }

    /// Simulates all its cases, and calls `done` after each.
    ///
    /// # Errors
    ///
    /// The first simulation that fails; no other begins then.
    pub fn reproduce(
        &self,
        options: &Options,
        mut done: impl FnMut(&Case),
    ) -> Result<Reproduction, Failure> {
        let cases = (self.cases)();
        let runs = simulate_all(&cases, options, &mut done)?;
        let seeds = runs.chunks(cases.len());
        let seeds = seeds.map(|runs| (self.judge)(&Results(runs.to_vec())));
        let mut verdict = Verdict::over(&seeds.collect::<Vec<_>>());
        score::predict(&mut verdict);
        Ok(Reproduction {
            table: self.name,
            about: self.about,
            assumes: self.assumes,
            year: self.year,
            fitted: self.fitted,
            seed: options.seed,
            seeds: options.seeds.max(1),
            length: options.length,
            verdict,
        })
    }
}

/// Simulates the cases with each seed, and calls `done` after each simulation. Returns their
/// results, a seed after the other.
fn simulate_all(
    cases: &[Case],
    options: &Options,
    done: &mut dyn FnMut(&Case),
) -> Result<Vec<Run>, Failure> {
    let failed = Cell::new(false);
    let seeds = (0..options.seeds.max(1) as u64).map(|next| options.seed.wrapping_add(next));
    let jobs = seeds.flat_map(|seed| cases.iter().map(move |case| (case, seed)));
    let waiting = jobs.enumerate().take_while(|_| !failed.get());
    let work = |(_, (case, seed))| simulate(case, seed, options);
    let mut runs = pool::each(waiting, options.jobs, work, |results| {
        let ended = results.map(|((index, (case, _)), run)| {
            let run = run.unwrap_or_else(|panic| resume_unwind(panic));
            match run {
                Ok(_) => done(case),
                Err(_) => failed.set(true),
            }
            (index, run)
        });
        ended.collect::<Vec<_>>()
    });
    runs.sort_unstable_by_key(|&(index, _)| index);
    runs.into_iter().map(|(_, run)| run).collect()
}

fn simulate(case: &Case, seed: u64, options: &Options) -> Result<Run, Failure> {
    let failure = |error| Failure {
        case: case.label(),
        error,
    };
    let machine = case.machine();
    let cpus = machine.cpus() as f64;
    let world = Simulated::new(machine, case.host(), seed, Arc::clone(&options.interrupt));
    let world = world.in_guests(case.guests);
    let locks = select(case.workload.family(), [case.lock]).expect("tables name locks");
    let plan = Plan {
        locks,
        threads: vec![case.vcpus],
        runs: case.runs,
        latency_runs: 0,
        round: Duration::from_secs_f64(case.seconds * options.length),
        stretch: case.workload.stretch(),
        pin: false,
        stat: false,
        deadline: None,
    };
    let measurement = measure::run(&world, &case.workload, &plan, cpus, |_, _, _| {})
        .map_err(|failed| failure(failed.error))?;
    let cell = measurement.cells.into_iter().next();
    let cell = cell.expect("a plan of one lock has a cell");
    finished(&cell.samples).map_err(failure)?;
    Ok(Run {
        case: case.clone(),
        samples: cell.samples,
        reports: cell.reports,
    })
}

/// Refuses builds that were stopped: how long they would have taken is not known.
fn finished(samples: &[Sample]) -> Result<(), Error> {
    let mut stopped = samples.iter();
    match stopped.find(|sample| sample.extra == Extra::Built { all: false }) {
        None => Ok(()),
        Some(sample) => Err(Error::Simulation(format!(
            "the build was not finished after {:?}",
            sample.elapsed
        ))),
    }
}

impl Results {
    /// The run of a lock, on a machine if the table has several, with so many vCPUs.
    fn of(&self, machine: &str, lock: &str, vcpus: usize) -> &Run {
        self.0
            .iter()
            .find(|run| {
                run.case.machine == machine && run.case.lock == lock && run.case.vcpus == vcpus
            })
            .expect("the table has asked for it")
    }
}

impl Run {
    /// Operations a second of all vCPUs.
    fn rate(&self) -> f64 {
        median(self.samples.iter().map(Sample::ops_per_sec))
    }

    /// How long it took, in simulated seconds.
    fn seconds(&self) -> f64 {
        median(self.samples.iter().map(seconds))
    }

    /// The least, the mean and the most operations of a vCPU, had the run taken so many seconds.
    fn spread(&self, length: f64) -> [f64; 3] {
        let of = |count: fn(&Sample) -> f64| {
            median(
                self.samples
                    .iter()
                    .map(|sample| count(sample) * length / seconds(sample)),
            )
        };
        let least = |sample: &Sample| sample.operations.iter().copied().min().unwrap_or(0) as f64;
        let mean = |sample: &Sample| sample.total() as f64 / sample.operations.len() as f64;
        let most = |sample: &Sample| sample.operations.iter().copied().max().unwrap_or(0) as f64;
        [of(least), of(mean), of(most)]
    }

    /// Percentage of the acquisitions on the slow path that went through the queue; no number if
    /// there were none.
    fn queued(&self) -> f64 {
        let share = |report: &Report| {
            let (queued, unfair) = report.modes;
            queued as f64 * 100.0 / (queued + unfair) as f64
        };
        median(self.reports.iter().map(share))
    }
}

fn seconds(sample: &Sample) -> f64 {
    sample.elapsed.as_secs_f64()
}

/// The request and its result, for the JSON report.
#[derive(Debug, Serialize)]
pub struct Reproduction {
    /// The table.
    pub table: &'static str,
    /// Its title, and its publication.
    pub about: &'static str,
    /// The assumptions.
    pub assumes: &'static str,
    /// The year of the document.
    pub year: u16,
    /// Whether the cost model was fitted to it.
    pub fitted: bool,
    /// The first seed.
    pub seed: u64,
    /// How many seeds there are. Figures are medians over them.
    pub seeds: usize,
    /// How long the simulations were, compared to the normal length.
    pub length: f64,
    /// The lines and claims.
    #[serde(flatten)]
    pub verdict: Verdict,
}
