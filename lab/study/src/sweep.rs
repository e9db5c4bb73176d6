//! Many simulations: a grid of machines, hosts, workloads, vCPUs, locks and seeds, spread over the
//! cores of this machine, or over several.
//!
//! | module | what is there |
//! |---|---|
//! | [`grid`] | which simulations there are, their order, and the part that a machine takes |
//! | [`file`](mod@file) | the file of results, a line for each simulation, and their build |
//! | [`table`] | the results for people |

pub mod file;
pub mod grid;
pub mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use overlock_bench::error::Error as Failure;
use overlock_bench::interrupt::Interrupt;

use crate::case::{self, Case, Measured, Outcome};
pub use file::{Build, Store};
pub use grid::{Grid, Key, Load, Shard};

/// A grid with the results that are known.
#[derive(Debug)]
pub struct Sweep {
    /// The file of the results.
    pub path: PathBuf,
    /// The build that simulates.
    pub build: Build,
    pub grid: Grid,
    /// All points, in the grid's order.
    pub points: Vec<(Key, Case)>,
    /// The outcome of each point, as far as it is known.
    pub outcomes: Vec<Option<Outcome>>,
}

impl Sweep {
    /// A sweep without results.
    ///
    /// # Errors
    ///
    /// Those of [`Grid::points`].
    pub fn new(path: &Path, build: Build, grid: Grid) -> Result<Self, String> {
        let points = grid.points()?;
        Ok(Self {
            path: path.to_owned(),
            build,
            grid,
            outcomes: vec![None; points.len()],
            points,
        })
    }

    /// The points with results, and these.
    pub fn known(&self) -> impl Iterator<Item = (&Key, &Outcome)> {
        let all = self.points.iter().zip(&self.outcomes);
        all.filter_map(|((key, _), outcome)| Some((key, outcome.as_ref()?)))
    }

    /// The points without results.
    pub fn missing(&self) -> impl Iterator<Item = &Key> {
        let all = self.points.iter().zip(&self.outcomes);
        all.filter_map(|((key, _), outcome)| outcome.is_none().then_some(key))
    }

    /// The points that failed, and how they did.
    pub fn failures(&self) -> impl Iterator<Item = (&Key, &str)> {
        self.known()
            .filter_map(|(key, outcome)| Some((key, outcome.measured().err()?)))
    }

    /// Simulates the points of these numbers that have no result yet, so many at a time, until
    /// `interrupt` is raised. Appends each to the store as it ends, and calls `ended` with how many
    /// have ended, and the last of them.
    ///
    /// # Errors
    ///
    /// If a result cannot be written, or this machine has no room for a simulation. The simulations
    /// that run then are dropped.
    pub fn run(
        &mut self,
        numbers: impl IntoIterator<Item = usize>,
        jobs: usize,
        store: &mut Store,
        interrupt: &Interrupt,
        simulate: impl Fn(&Key, &Case) -> Result<Measured, Failure> + Sync,
        mut ended: impl FnMut(usize, &Key),
    ) -> Result<(), String> {
        let Self {
            points, outcomes, ..
        } = self;
        let numbers = numbers.into_iter();
        let left: Vec<usize> = numbers.filter(|&at| outcomes[at].is_none()).collect();
        let simulate = |at: usize| simulate(&points[at].0, &points[at].1);
        case::run(left, jobs, interrupt, simulate, |count, at, outcome| {
            let (key, _) = &points[at];
            let outcome = outcome.map_err(|lacking| lacking.to_string())?;
            store.append(key, &outcome)?;
            outcomes[at] = Some(outcome);
            ended(count, key);
            Ok(())
        })
    }
}

/// Joins the results of parts, in any order, and counts those that were there more than once;
/// `None` for no part at all.
///
/// # Errors
///
/// If parts are of different grids or builds, or disagree about a point. Simulations depend on
/// nothing but their settings and the build.
pub fn merge(mut parts: Vec<Sweep>) -> Result<Option<(Sweep, usize)>, String> {
    let Some((first, others)) = parts.split_first() else {
        return Ok(None);
    };
    others.iter().try_for_each(|part| part.expect(first))?;
    let mut duplicates = 0;
    let mut outcomes = Vec::new();
    for (at, (key, _)) in first.points.iter().enumerate() {
        let of = |part: &'_ Sweep| {
            part.outcomes[at]
                .clone()
                .map(|has| (part.path.clone(), has))
        };
        let mut all = parts.iter().filter_map(of);
        let Some((origin, outcome)) = all.next() else {
            outcomes.push(None);
            continue;
        };
        for (path, other) in all {
            if other != outcome {
                let origin = origin.display();
                let why = format!("contradicts {origin}, although both are of one build ({key})");
                return Err(file::about(&path, why));
            }
            duplicates += 1;
        }
        outcomes.push(Some(outcome));
    }
    let first = parts.swap_remove(0);
    Ok(Some((Sweep { outcomes, ..first }, duplicates)))
}
