//! Which lock for which machine and load: the three best, with ranges.
//!
//! | module | what is there |
//! |---|---|
//! | [`report`] | a load from a report of `overlock profile` |
//! | [`text`] | the answer for people |

pub mod report;
#[cfg(test)]
mod tests;
pub mod text;

use std::io::{self, Write};

use itertools::Itertools;
use overlock_bench::error::Error;
use overlock_bench::registry::{Entry, Family, Origin};
use serde::Serialize;

use crate::curves::{self, Curve, Rate};
use crate::locks;
pub use crate::rank::Question;
use crate::rank::{Place, Ranking, rank};
use crate::score::{Case, Class, Options};
use crate::sweep::Measured;
use crate::vary::Range;

/// So many locks are the answer.
pub const BEST: usize = 3;
/// So many are simulated with changed constants.
const FINALISTS: usize = 5;
/// The locks of ours that a program may choose, beside the models of the locks of others.
const OURS: [&str; 8] = [
    "overlock",
    "kernel_mutex",
    "hybrid",
    "hybrid_short",
    "queued",
    "pv_queued",
    "mcs",
    "ticket",
];
/// The locks that the picture has beside the best ones: ours, and what programs have.
const BESIDE: [&str; 2] = ["overlock", "std"];
/// The most lines of the picture.
const LINES: usize = 5;

/// A lock with the load.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    pub lock: String,
    pub ops_per_sec: f64,
    /// Jain's index of fairness, if there were operations.
    pub jain: Option<f64>,
    pub cpu_s_per_mop: Option<f64>,
    pub longest_ns: Option<f64>,
    /// The ranges of these figures with constants a tenth smaller and larger, of the best locks.
    pub ranges: Option<Ranges>,
    /// Whether longer simulations would bring the same, where that is known.
    pub settled: Option<bool>,
    /// The other locks whose ranges meet that of this one.
    pub level_with: Vec<String>,
}

/// The ranges of the figures of a lock.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ranges {
    pub ops_per_sec: Range,
    pub jain: Option<Range>,
    pub cpu_s_per_mop: Option<Range>,
    pub longest_ns: Option<Range>,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// The machine's description.
    pub machine: String,
    pub cpus: usize,
    pub host: String,
    pub workload: String,
    pub threads: usize,
    /// The class of the load, by which the score says how sure the answer is.
    pub class: Class,
    /// The locks, the best first.
    pub locks: Vec<Standing>,
    /// Locks that failed, and how.
    pub failed: Vec<(String, String)>,
    /// The best locks with other numbers of threads, if they were asked for.
    pub curves: Vec<Curve>,
}

/// The locks to choose from if none are named.
pub fn candidates() -> Vec<&'static Entry> {
    let family = Family::Exclusive;
    let models = family.locks().iter();
    let models = models.filter(|lock| lock.origin == Origin::Model && lock.simulated.is_some());
    let ours = OURS.iter().filter_map(|name| locks::named(family, name));
    ours.chain(models).collect()
}

impl Advice {
    /// Writes its picture.
    pub fn draw(&self, out: impl Write) -> io::Result<()> {
        let title = format!("{} on {}", self.workload, self.machine);
        curves::write(out, &title, self.cpus, &self.curves)
    }
}

impl Question {
    /// Answers it, with curves over the number of threads if they are wanted.
    pub fn answer(
        &self,
        options: &Options,
        curves: bool,
        mut done: impl FnMut(usize, usize, &Case),
    ) -> Result<Advice, Error> {
        let asked = std::slice::from_ref(self);
        let Ranking { places, failed } = rank(asked, FINALISTS, options, &mut done)?.remove(0);
        let mut locks: Vec<Standing> = places.iter().map(standing).collect();
        for index in 0..locks.len() {
            let meets = |other: &&Standing| {
                let both = locks[index].ranges.zip(other.ranges);
                both.is_some_and(|(a, b)| a.ops_per_sec.meets(b.ops_per_sec))
            };
            let level = locks.iter().filter(meets).map(|other| other.lock.clone());
            let level = level.filter(|other| *other != locks[index].lock).collect();
            locks[index].level_with = level;
        }
        let curves = match curves {
            true => self.curves(&places, options, &mut done)?,
            false => Vec::new(),
        };
        Ok(Advice {
            machine: self.machine.about.to_string(),
            cpus: self.machine.cpus(),
            host: self.host.name.to_string(),
            workload: self.workload.to_string(),
            threads: self.threads,
            class: Class::of(self.machine.sockets, self.machine.cpus(), self.threads),
            locks,
            failed,
            curves,
        })
    }

    /// The best locks, and two for comparison, from one thread to four for each CPU.
    fn curves(
        &self,
        places: &[Place],
        options: &Options,
        done: impl FnMut(usize, usize, &Case),
    ) -> Result<Vec<Curve>, Error> {
        let beside = BESIDE.iter();
        let beside = beside.filter_map(|name| places.iter().find(|place| place.name() == *name));
        let chosen = places
            .iter()
            .take(BEST)
            .chain(beside)
            .map(|place| place.lock);
        let chosen: Vec<&'static Entry> = chosen.unique_by(|lock| lock.name).take(LINES).collect();
        let cpus = self.machine.cpus();
        let threads = [
            1,
            cpus / 4,
            cpus / 2,
            cpus,
            2 * cpus,
            4 * cpus,
            self.threads,
        ];
        let possible = 1..=overlock_sim::MOST_VCPUS;
        let threads = threads
            .into_iter()
            .filter(|threads| possible.contains(threads));
        let threads = threads.sorted().dedup().collect_vec();
        let asked = threads
            .iter()
            .map(|&threads| Self {
                threads,
                locks: chosen.clone(),
                ..self.clone()
            })
            .collect_vec();
        let rankings = rank(&asked, 0, options, done)?;
        let curve = |lock: &Entry| {
            let points = threads
                .iter()
                .zip(&rankings)
                .filter_map(|(&threads, ranking)| {
                    let mut places = ranking.places.iter();
                    let place = places.find(|place| place.lock.name == lock.name)?;
                    let measured = &place.measured;
                    Rate::new(threads, measured.ops_per_sec, measured.simulation.settled)
                });
            Curve {
                lock: locks::plain(lock.name).to_owned(),
                points: points.collect(),
            }
        };
        Ok(chosen.into_iter().map(curve).collect())
    }
}

/// The figures of a lock; which others are level is not known yet.
fn standing(place: &Place) -> Standing {
    let measured = &place.measured;
    Standing {
        lock: place.name(),
        ops_per_sec: measured.ops_per_sec,
        jain: measured.fairness(),
        cpu_s_per_mop: measured.cpu_s_per_mop,
        longest_ns: longest(measured),
        ranges: ranges(place),
        settled: measured.simulation.settled,
        level_with: Vec::new(),
    }
}

/// None for a lock that was not simulated with changed constants, or fails with some.
fn ranges(place: &Place) -> Option<Ranges> {
    let changed: Result<Vec<&Measured>, _> = place.changed.iter().map(Result::as_ref).collect();
    let changed = changed.ok().filter(|changed| !changed.is_empty())?;
    let range = |figure: fn(&Measured) -> Option<f64>| {
        let all = std::iter::once(&place.measured).chain(changed.iter().copied());
        Range::of(all.filter_map(figure))
    };
    Some(Ranges {
        ops_per_sec: range(|measured| Some(measured.ops_per_sec))?,
        jain: range(Measured::fairness),
        cpu_s_per_mop: range(|measured| measured.cpu_s_per_mop),
        longest_ns: range(longest),
    })
}

fn longest(measured: &Measured) -> Option<f64> {
    measured.waits.as_ref().map(|waits| waits.max_ns)
}
