//! Locks with a load: the best first, and the best of them with changed constants.

use overlock_bench::error::Error;
use overlock_bench::registry::Entry;
use overlock_bench::workload::Workload;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;

use crate::locks;
use crate::score::Case;
use crate::score::run::{Options, Outcome, run};
use crate::sweep::Measured;
use crate::vary;

/// A machine with a load, and the locks to choose from.
#[derive(Clone, Debug)]
pub struct Question {
    pub machine: Machine,
    pub host: Host,
    pub workload: Workload,
    pub threads: usize,
    pub locks: Vec<&'static Entry>,
}

/// A lock with the load.
#[derive(Debug)]
pub struct Place {
    pub lock: &'static Entry,
    pub measured: Measured,
    /// Those with changed constants, of the best locks.
    pub changed: Vec<Outcome>,
}

/// The locks of a question.
#[derive(Debug, Default)]
pub struct Ranking {
    /// Those with figures, the best first.
    pub places: Vec<Place>,
    /// Those that failed, and how.
    pub failed: Vec<(String, String)>,
}

impl Place {
    /// The name that people use for the lock.
    pub fn name(&self) -> String {
        locks::plain(self.lock.name).to_owned()
    }
}

impl Question {
    /// Its locks that take so many threads.
    fn takers(&self) -> impl Iterator<Item = &'static Entry> {
        let takes = |lock: &&Entry| lock.most_threads.is_none_or(|most| self.threads <= most);
        self.locks.iter().copied().filter(takes)
    }

    fn case(&self, lock: &'static Entry) -> Case {
        Case {
            machine: self.machine.clone(),
            host: self.host.clone(),
            workload: self.workload,
            lock,
            threads: self.threads,
            guests: 1,
        }
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
    let cases = questions
        .iter()
        .flat_map(|asked| asked.takers().map(|lock| asked.case(lock)));
    let mut outcomes = run(&cases.collect::<Vec<_>>(), options, &mut done)?.into_iter();
    let ranking = |asked: &Question| {
        let mut ranking = Ranking::default();
        for (lock, outcome) in asked.takers().zip(&mut outcomes) {
            match outcome {
                Ok(measured) => ranking.places.push(Place {
                    lock,
                    measured,
                    changed: Vec::new(),
                }),
                Err(why) => ranking
                    .failed
                    .push((locks::plain(lock.name).to_owned(), why)),
            }
        }
        let rate = |place: &Place| place.measured.ops_per_sec;
        ranking.places.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        ranking
    };
    let mut rankings: Vec<Ranking> = questions.iter().map(ranking).collect();
    let mut changed = Vec::new();
    for (asked, ranking) in questions.iter().zip(&rankings) {
        for place in ranking.places.iter().take(finalists) {
            let around = vary::around(&asked.machine, &asked.host).into_iter();
            changed.extend(around.map(|(machine, host)| Case {
                machine,
                host,
                ..asked.case(place.lock)
            }));
        }
    }
    let mut outcomes = run(&changed, options, done)?.into_iter();
    for ranking in &mut rankings {
        for place in ranking.places.iter_mut().take(finalists) {
            place.changed = outcomes.by_ref().take(vary::COUNT).collect();
        }
    }
    Ok(rankings)
}
