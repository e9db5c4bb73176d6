//! The simulations that figures need.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use overlock_bench::error::Error;
use overlock_bench::interrupt::Interrupt;
use overlock_bench::workload::Workload;

use super::data::{Case, Figure};
use crate::sweep::{self, Measured, Point};
use crate::{pool, vary};

/// A build is so many times as long: it ends, and must be long against a slice.
const BUILD: u32 = 10;

/// How to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    pub round: Duration,
    pub seed: u64,
    /// Whether constants are changed by a tenth, too.
    pub vary: bool,
    pub jobs: usize,
    /// Ends all of them when raised.
    pub interrupt: Arc<Interrupt>,
}

#[cfg(test)]
impl Options {
    /// Rounds of so many simulated microseconds.
    pub(crate) fn of(micros: u64) -> Self {
        Self {
            round: Duration::from_micros(micros),
            seed: 1,
            vary: false,
            jobs: 2,
            interrupt: Arc::default(),
        }
    }
}

/// The result of a simulation, or how it failed.
pub type Outcome = Result<Measured, String>;

/// The results of a case: that of the cost model as it is, then those with changed constants.
pub type Results = Vec<Outcome>;

/// All simulations that `figures` need, by their keys. Calls `done` after each with how many have
/// ended, and of how many.
pub fn simulate_all(
    figures: &[Figure],
    options: &Options,
    done: impl FnMut(usize, usize, &Case),
) -> Result<HashMap<String, Results>, Error> {
    let cases = figures
        .iter()
        .flat_map(|figure| std::iter::once(&figure.case).chain(&figure.over));
    let mut seen = HashSet::new();
    let (mut keys, mut jobs) = (Vec::new(), Vec::new());
    for case in cases.filter(|case| seen.insert(case.key())) {
        jobs.push(case.clone());
        if options.vary {
            let around = vary::around(&case.machine, &case.host).into_iter();
            jobs.extend(around.map(|(machine, host)| Case {
                machine,
                host,
                ..case.clone()
            }));
        }
        keys.resize(jobs.len(), case.key());
    }
    let mut all: HashMap<String, Results> = HashMap::new();
    for (key, outcome) in keys.into_iter().zip(run(&jobs, options, done)?) {
        all.entry(key).or_default().push(outcome);
    }
    Ok(all)
}

/// Simulates all cases, so many at a time, and returns their outcomes in their order.
pub fn run(
    cases: &[Case],
    options: &Options,
    mut done: impl FnMut(usize, usize, &Case),
) -> Result<Vec<Outcome>, Error> {
    let waiting = (0..cases.len()).take_while(|_| !options.interrupt.is_raised());
    let work = |index: usize| simulate(&cases[index], options);
    let mut ended = pool::each(waiting, options.jobs, work, |results| {
        let mut ended = Vec::new();
        for (index, result) in results {
            done(ended.len() + 1, cases.len(), &cases[index]);
            ended.push((index, result));
        }
        ended
    });
    if options.interrupt.is_raised() {
        return Err(Error::Interrupted);
    }
    ended.sort_unstable_by_key(|(index, _)| *index);
    let outcomes = ended.into_iter().map(|(_, result)| {
        let result = result.unwrap_or_else(|panic| Err(Error::panicked(&*panic)));
        result.map_err(|error| error.to_string())
    });
    Ok(outcomes.collect())
}

fn simulate(case: &Case, options: &Options) -> Result<Measured, Error> {
    let point = Point {
        machine: &case.machine,
        host: &case.host,
        others: 0,
        workload: case.workload,
        vcpus: case.threads,
        guests: case.guests,
        lock: case.lock,
        seed: options.seed,
    };
    let is_build = matches!(case.workload, Workload::Build { .. });
    let round = options.round * if is_build { BUILD } else { 1 };
    sweep::simulate(&point, round, &options.interrupt)
}
