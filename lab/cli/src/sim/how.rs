//! The options that `score`, `advise` and `which-lock` share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use overlock_bench::error::Error;
use overlock_bench::interrupt::Interrupt;
use overlock_bench::registry::{Entry, Family};
use overlock_study::case::{Case, Options};

use super::run;
use super::sweep::{MOST_JOBS, cpus};
use super::workload::{self, Hints};
use crate::exit::Exit;
use crate::measure::ending;
use crate::measure::progress::Progress;
use crate::number::{ANY, simulated_seconds, whole};

/// How to simulate, and where results go.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct How {
    /// Length of each simulation, in simulated time
    #[arg(long, value_name = "S", value_parser = simulated_seconds, default_value = "0.01")]
    seconds: Duration,

    /// Seed of the random choices: another number is another run
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0, ANY), default_value = "1")]
    pub seed: u64,

    /// Simulations at a time [default: as many as this machine has CPUs]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MOST_JOBS))]
    jobs: Option<usize>,

    /// Write everything as JSON; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Print neither progress nor results
    #[arg(long, short)]
    pub quiet: bool,
}

impl How {
    /// The same for the study. From here on Ctrl-C ends the simulations.
    pub fn options(&self) -> Result<Options, Exit> {
        let options = Options {
            round: self.seconds,
            seed: self.seed,
            jobs: self.jobs.unwrap_or_else(cpus),
            interrupt: Arc::new(Interrupt::default()),
        };
        ending::on_interrupt(Arc::clone(&options.interrupt))?;
        Ok(options)
    }

    /// Shows how far the simulations are. Several rounds of them may follow each other; how many
    /// there are is known once the first has ended.
    pub fn progress(&self) -> impl FnMut(usize, usize, &Case) {
        let quiet = self.quiet;
        let mut progress = None;
        move |ended, all, case: &Case| {
            if ended == 1 {
                progress = Some(Progress::of(all, "simulation", quiet));
            }
            let Some(progress) = &progress else { return };
            let what = format!("{}, {} threads", case.lock.name, case.place.threads);
            progress.at(ended, &what);
            if ended == all {
                progress.finish();
            }
        }
    }
}

/// How a program ends that could not simulate.
pub fn failed(error: Error) -> Exit {
    match error {
        Error::Interrupted => Exit::Interrupted,
        error => Exit::Failed(error.to_string()),
    }
}

/// The locks of a question.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Locks {
    /// The locks to choose from, by the names that people use
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        value_parser = Hints(workload::mutexes),
        hide_possible_values = true
    )]
    locks: Vec<String>,
}

impl Locks {
    /// Those that were named, of which a program can have at least one, or else these.
    pub fn or(&self, others: fn() -> Vec<&'static Entry>) -> Result<Vec<&'static Entry>, Exit> {
        if self.locks.is_empty() {
            return Ok(others());
        }
        let locks = run::locks(Family::Exclusive, &self.locks)?;
        match locks.iter().any(|lock| lock.is_at_hand()) {
            true => Ok(locks),
            false => Err(Exit::usage(format!(
                "--locks {}: models of published locks, which no library has; name one beside \
                 them that a program can have, such as overlock",
                self.locks.join(",")
            ))),
        }
    }
}
