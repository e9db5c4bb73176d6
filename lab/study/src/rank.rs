//! Locks with a load: the best first, and the best of them with changed constants.

use std::sync::Arc;

use overlock_bench::error::Error;
use overlock_bench::registry::Entry;
use overlock_bench::workload::Workload;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;

use crate::case::{Case, Measured, Options, Outcome, outcomes};
use crate::{locks, vary};

/// A machine with a load, and the locks to choose from.
#[derive(Clone, Debug)]
pub struct Question {
    pub machine: Arc<Machine>,
    pub host: Arc<Host>,
    pub workload: Workload,
    pub threads: usize,
    pub locks: Vec<&'static Entry>,
}

/// A lock with the load.
#[derive(Debug)]
pub struct Place {
    pub case: Case,
    pub measured: Measured,
    /// Those with changed constants, of the best locks.
    pub changed: Vec<Outcome>,
}

/// The locks of a question.
#[derive(Debug)]
pub struct Ranking {
    /// Those with figures, the best first.
    pub places: Vec<Place>,
    /// Those that failed, and how.
    pub failed: Vec<(String, String)>,
}

impl Place {
    /// The name that people use for the lock.
    pub fn name(&self) -> &'static str {
        locks::plain(self.case.lock.name)
    }

    /// Whether longer simulations would bring the same, where that is known.
    pub fn settled(&self) -> Option<bool> {
        self.measured.simulation.settled
    }
}

impl Question {
    /// Those of its locks that take so many threads.
    fn cases(&self) -> impl Iterator<Item = Case> {
        let locks = self.locks.iter().filter(|lock| lock.takes(self.threads));
        locks.map(|lock| Case {
            machine: Arc::clone(&self.machine),
            host: Arc::clone(&self.host),
            others: 0,
            workload: self.workload,
            lock,
            threads: self.threads,
            guests: 1,
        })
    }
}

/// Simulates the locks of all questions, then so many of the best of each with changed constants. A
/// lock that takes fewer threads has no place.
pub fn rank(
    questions: &[Question],
    finalists: usize,
    options: &Options,
    mut done: impl FnMut(usize, usize, &Case),
) -> Result<Vec<Ranking>, Error> {
    let cases: Vec<Case> = questions.iter().flat_map(Question::cases).collect();
    let mut all = outcomes(&cases, options, &mut done)?.into_iter();
    let ranking = |asked: &Question| {
        let (mut places, mut failed) = (Vec::new(), Vec::new());
        for (case, outcome) in asked.cases().zip(&mut all) {
            match outcome {
                Outcome::Measured(measured) => places.push(Place {
                    case,
                    measured: *measured,
                    changed: Vec::new(),
                }),
                Outcome::Failed { error } => {
                    failed.push((locks::plain(case.lock.name).to_owned(), error));
                }
            }
        }
        let rate = |place: &Place| place.measured.ops_per_sec;
        places.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        Ranking { places, failed }
    };
    let mut rankings: Vec<Ranking> = questions.iter().map(ranking).collect();
    let best = rankings.iter_mut().map(|ranking| &mut ranking.places);
    let mut best: Vec<&mut Place> = best
        .flat_map(|all| all.iter_mut().take(finalists))
        .collect();
    let changed = best.iter().flat_map(|place| vary::around(&place.case));
    let mut changed = outcomes(&changed.collect::<Vec<_>>(), options, done)?.into_iter();
    for place in &mut best {
        place.changed = changed.by_ref().take(vary::COUNT).collect();
    }
    Ok(rankings)
}
