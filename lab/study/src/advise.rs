//! Which lock for which machine and load: the three best, with ranges.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use itertools::Itertools;
use overlock_bench::error::Error;
use overlock_bench::registry::{Entry, Family, Origin};
use overlock_report::columns::{optional, table};
use overlock_report::numbers::{rate, significant, time};
use serde::Serialize;

use crate::case::{Case, Measured, Options};
use crate::curves::{self, Curve, Rate};
use crate::locks;
pub use crate::rank::Question;
use crate::rank::{Place, Ranking, rank};
use crate::score::{Class, known};
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
/// A range whose ends differ by less than this factor is one figure.
const ONE: f64 = 1.05;

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
    let ours = OURS
        .iter()
        .filter_map(|name| locks::named(family, name).ok());
    ours.chain(models).collect()
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
        for (one, other) in (0..locks.len()).tuple_combinations() {
            let ranges = locks[one].ranges.zip(locks[other].ranges);
            if ranges.is_some_and(|(a, b)| a.ops_per_sec.meets(b.ops_per_sec)) {
                for (lock, level) in [(one, other), (other, one)] {
                    let name = locks[level].lock.clone();
                    locks[lock].level_with.push(name);
                }
            }
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
        let chosen = places.iter().take(BEST).chain(beside);
        let chosen = chosen.unique_by(|place| place.name()).take(LINES);
        let cpus = self.machine.cpus();
        let levels = [1, cpus / 4, cpus / 2, cpus, 2 * cpus, 4 * cpus];
        let threads = levels.into_iter().chain([self.threads]);
        let threads = threads.filter(|threads| (1..=overlock_sim::MOST_VCPUS).contains(threads));
        let asked = threads.sorted().dedup().map(|threads| Self {
            threads,
            locks: chosen.clone().map(|place| place.case.lock).collect(),
            machine: Arc::clone(&self.machine),
            host: Arc::clone(&self.host),
            workload: self.workload,
        });
        let rankings = rank(&asked.collect_vec(), 0, options, done)?;
        let places = || rankings.iter().flat_map(|ranking| &ranking.places);
        let curve = |lock: &str| {
            let mine = places().filter(|place| place.name() == lock);
            let points = mine.filter_map(|place| {
                Rate::new(
                    place.case.threads,
                    place.measured.ops_per_sec,
                    place.settled(),
                )
            });
            Curve {
                lock: lock.to_owned(),
                points: points.collect(),
            }
        };
        Ok(chosen.clone().map(|place| curve(place.name())).collect())
    }
}

/// The figures of a lock; which others are level is not known yet.
fn standing(place: &Place) -> Standing {
    let measured = &place.measured;
    Standing {
        lock: place.name().to_owned(),
        ops_per_sec: measured.ops_per_sec,
        jain: measured.fairness(),
        cpu_s_per_mop: measured.cpu_s_per_mop,
        longest_ns: measured.longest_ns(),
        ranges: ranges(place),
        settled: place.settled(),
        level_with: Vec::new(),
    }
}

/// None for a lock that was not simulated with changed constants, or fails with some.
fn ranges(place: &Place) -> Option<Ranges> {
    let changed = place.changed.iter().map(|outcome| outcome.measured().ok());
    let all: Vec<&Measured> = changed
        .chain([Some(&place.measured)])
        .collect::<Option<_>>()?;
    let range = |figure: fn(&Measured) -> Option<f64>| {
        Range::of(all.iter().filter_map(|measured| figure(measured)))
    };
    (all.len() > 1).then_some(Ranges {
        ops_per_sec: range(|measured| Some(measured.ops_per_sec))?,
        jain: range(Measured::fairness),
        cpu_s_per_mop: range(|measured| measured.cpu_s_per_mop),
        longest_ns: range(Measured::longest_ns),
    })
}

impl Advice {
    /// Writes its picture.
    pub fn draw(&self, out: impl Write) -> io::Result<()> {
        let title = format!("{} on {}", self.workload, self.machine);
        curves::write(out, &title, self.cpus, &self.curves)
    }

    /// For people: the three best locks, what each costs, and how sure it is.
    pub fn describe(&self) -> String {
        let (machine, host, workload) = (&self.machine, &self.host, &self.workload);
        let (threads, cpus, class) = (self.threads, self.cpus, self.class);
        let mut text = format!(
            "{machine}; host {host}\n{threads} threads on {cpus} CPUs ({class}), {workload}\n\n"
        );
        let titles = [
            "lock",
            "Mop/s",
            "Jain",
            "CPU s/Mop",
            "longest wait",
            "how sure",
        ];
        let best = self.locks.iter().take(BEST).map(Standing::row);
        text += &table(titles, best, |column| (1..5).contains(&column));
        let others = self.locks.iter().skip(BEST);
        let others = others.map(|other| format!("{} {}", other.lock, other.operations()));
        let others = others.collect_vec().join(", ");
        if !others.is_empty() {
            let _ = writeln!(text, "\nThe others, in Mop/s: {others}.");
        }
        for (lock, why) in &self.failed {
            let _ = writeln!(text, "{lock} failed: {why}");
        }
        text += "\nA range is that of constants a tenth smaller and larger. Locks are level where \
                 their ranges meet.\n";
        text + &known::told(class)
    }
}

/// A figure, or its range.
fn cell(figure: Option<f64>, range: Option<Range>, write: fn(f64) -> String) -> String {
    match range.filter(|range| range.high > ONE * range.low) {
        Some(Range { low, high }) => format!("{} to {}", write(low), write(high)),
        None => optional(figure, write),
    }
}

impl Standing {
    fn operations(&self) -> String {
        let range = self.ranges.map(|ranges| ranges.ops_per_sec);
        cell(Some(self.ops_per_sec), range, rate)
    }

    fn row(&self) -> [String; 6] {
        let range = |of: fn(&Ranges) -> Option<Range>| self.ranges.as_ref().and_then(of);
        let operations = range(|ranges| Some(ranges.ops_per_sec));
        let mut sure = match self.level_with.as_slice() {
            _ if operations.is_none() => "not at all: it fails with other constants".to_owned(),
            [] => "ahead of all below it".to_owned(),
            others => format!("level with {}", others.join(", ")),
        };
        if operations.is_some_and(Range::is_regime_change) {
            sure += "; near a change of regime";
        }
        if self.settled == Some(false) {
            sure += "; not settled";
        }
        let jain = |jain: f64| format!("{jain:.2}");
        let cpu = range(|ranges| ranges.cpu_s_per_mop);
        [
            self.lock.clone(),
            self.operations(),
            cell(self.jain, range(|ranges| ranges.jain), jain),
            cell(self.cpu_s_per_mop, cpu, significant),
            cell(self.longest_ns, range(|ranges| ranges.longest_ns), time),
            sure,
        ]
    }
}
