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

use overlock_bench::error::Error;
use overlock_bench::registry::{Entry, Family, Origin};
use overlock_bench::workload::Workload;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use serde::Serialize;

use crate::curves::{self, Curve, Rate};
use crate::locks;
use crate::score::run::{Options, run};
use crate::score::{Case, Class};
use crate::sweep::Measured;
use crate::vary::{self, Range};

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

/// A machine with a load, and the locks to choose from.
#[derive(Clone, Debug)]
pub struct Question {
    /// The machine.
    pub machine: Machine,
    /// Its host.
    pub host: Host,
    /// The sections.
    pub workload: Workload,
    /// How many threads.
    pub threads: usize,
    /// The locks to choose from.
    pub locks: Vec<&'static Entry>,
}

/// A lock with the load.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// The name that people use.
    pub lock: String,
    /// Operations of all threads a second.
    pub ops_per_sec: f64,
    /// Jain's index of fairness, if there were operations.
    pub jain: Option<f64>,
    /// CPU time in seconds for a million operations.
    pub cpu_s_per_mop: Option<f64>,
    /// The longest wait.
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
    /// Operations a second.
    pub ops_per_sec: Range,
    /// Jain's index.
    pub jain: Option<Range>,
    /// CPU time in seconds for a million operations.
    pub cpu_s_per_mop: Option<Range>,
    /// The longest wait.
    pub longest_ns: Option<Range>,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// The machine's description.
    pub machine: String,
    /// Its CPUs.
    pub cpus: usize,
    /// The host's name.
    pub host: String,
    /// The workload with its keys.
    pub workload: String,
    /// The threads.
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
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn draw(&self, out: impl Write) -> io::Result<()> {
        let title = format!("{} on {}", self.workload, self.machine);
        curves::write(out, &title, self.cpus, &self.curves)
    }
}

impl Question {
    fn case(&self, lock: &'static Entry, threads: usize) -> Case {
        Case {
            machine: self.machine.clone(),
            host: self.host.clone(),
            workload: self.workload,
            lock,
            threads,
            guests: 1,
        }
    }

    /// Answers it, with curves over the number of threads if they are wanted.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`].
    pub fn answer(
        &self,
        options: &Options,
        curves: bool,
        mut done: impl FnMut(usize, usize, &Case),
    ) -> Result<Advice, Error> {
        let takes = |lock: &&Entry| lock.most_threads.is_none_or(|most| self.threads <= most);
        let all: Vec<&'static Entry> = self.locks.iter().copied().filter(takes).collect();
        let cases: Vec<Case> = all
            .iter()
            .map(|lock| self.case(lock, self.threads))
            .collect();
        let (mut standings, mut failed) = (Vec::new(), Vec::new());
        let results = run(&cases, options, &mut done)?;
        for (lock, result) in all.iter().zip(results) {
            match result {
                Ok(measured) => standings.push((*lock, measured)),
                Err(why) => failed.push((locks::plain(lock.name).to_owned(), why)),
            }
        }
        standings.sort_by(|(_, a), (_, b)| b.ops_per_sec.total_cmp(&a.ops_per_sec));
        let ranges = self.ranges(&standings, options, &mut done)?;
        let names = |index: usize| locks::plain(standings[index].0.name).to_owned();
        let level = |index: usize| {
            let mine = ranges.get(index).copied().flatten();
            let others = ranges.iter().enumerate().filter(|(other, theirs)| {
                let both = mine.zip(**theirs);
                *other != index && both.is_some_and(|(a, b)| a.ops_per_sec.meets(b.ops_per_sec))
            });
            others.map(|(other, _)| names(other)).collect()
        };
        let standing = |(index, (lock, measured)): (usize, &(&'static Entry, Measured))| Standing {
            lock: locks::plain(lock.name).to_owned(),
            ops_per_sec: measured.ops_per_sec,
            jain: measured.fairness(),
            cpu_s_per_mop: measured.cpu_s_per_mop,
            longest_ns: longest(measured),
            ranges: ranges.get(index).copied().flatten(),
            settled: measured.simulation.settled,
            level_with: level(index),
        };
        let advice = Advice {
            machine: self.machine.about.to_string(),
            cpus: self.machine.cpus(),
            host: self.host.name.to_string(),
            workload: self.workload.to_string(),
            threads: self.threads,
            class: Class::of(self.machine.sockets, self.machine.cpus(), self.threads),
            locks: standings.iter().enumerate().map(standing).collect(),
            failed,
            curves: Vec::new(),
        };
        Ok(Advice {
            curves: match curves {
                true => self.curves(&standings, options, &mut done)?,
                false => Vec::new(),
            },
            ..advice
        })
    }

    /// The ranges of the best locks, in their order; of those that fail with some constant, none.
    fn ranges(
        &self,
        standings: &[(&'static Entry, Measured)],
        options: &Options,
        done: &mut dyn FnMut(usize, usize, &Case),
    ) -> Result<Vec<Option<Ranges>>, Error> {
        let finalists = &standings[..standings.len().min(FINALISTS)];
        let around = vary::around(&self.machine, &self.host);
        let jobs = finalists.iter().flat_map(|(lock, _)| {
            around.iter().map(|(machine, host)| Case {
                machine: machine.clone(),
                host: host.clone(),
                ..self.case(lock, self.threads)
            })
        });
        let results = run(&jobs.collect::<Vec<_>>(), options, done)?;
        let each = finalists.iter().zip(results.chunks(around.len()));
        Ok(each
            .map(|((_, measured), changed)| {
                let changed: Result<Vec<&Measured>, _> =
                    changed.iter().map(Result::as_ref).collect();
                let all: Vec<&Measured> = std::iter::once(measured).chain(changed.ok()?).collect();
                let range = |figure: fn(&Measured) -> Option<f64>| {
                    Range::of(all.iter().filter_map(|measured| figure(measured)))
                };
                Some(Ranges {
                    ops_per_sec: range(|measured| Some(measured.ops_per_sec))?,
                    jain: range(Measured::fairness),
                    cpu_s_per_mop: range(|measured| measured.cpu_s_per_mop),
                    longest_ns: range(longest),
                })
            })
            .collect())
    }

    /// The best locks, and two for comparison, from one thread to four for each CPU.
    fn curves(
        &self,
        standings: &[(&'static Entry, Measured)],
        options: &Options,
        done: &mut dyn FnMut(usize, usize, &Case),
    ) -> Result<Vec<Curve>, Error> {
        let best = standings.iter().map(|(lock, _)| *lock).take(BEST);
        let beside = BESIDE.iter().filter_map(|name| {
            let mut all = standings.iter().map(|(lock, _)| *lock);
            all.find(|lock| locks::plain(lock.name) == *name)
        });
        let mut chosen: Vec<&'static Entry> = Vec::new();
        for lock in best.chain(beside) {
            if chosen.len() < LINES && !chosen.iter().any(|other| other.name == lock.name) {
                chosen.push(lock);
            }
        }
        let cpus = self.machine.cpus();
        let mut threads = vec![
            1,
            cpus / 4,
            cpus / 2,
            cpus,
            2 * cpus,
            4 * cpus,
            self.threads,
        ];
        threads.retain(|&threads| (1..=overlock_sim::MOST_VCPUS).contains(&threads));
        threads.sort_unstable();
        threads.dedup();
        let pairs = chosen
            .iter()
            .flat_map(|&lock| threads.iter().map(move |&count| (lock, count)));
        let pairs: Vec<(&'static Entry, usize)> = pairs
            .filter(|(lock, count)| lock.most_threads.is_none_or(|most| *count <= most))
            .collect();
        let cases = pairs.iter().map(|&(lock, count)| self.case(lock, count));
        let results = run(&cases.collect::<Vec<_>>(), options, done)?;
        let all: Vec<_> = pairs.into_iter().zip(results).collect();
        let curve = |lock: &&'static Entry| {
            let mine = all.iter().filter(|((other, _), _)| other.name == lock.name);
            let points = mine.filter_map(|((_, threads), result)| {
                let measured = result.as_ref().ok()?;
                let point = Rate {
                    threads: *threads,
                    ops_per_sec: measured.ops_per_sec,
                    settled: measured.simulation.settled,
                };
                (point.ops_per_sec > 0.0).then_some(point)
            });
            Curve {
                lock: locks::plain(lock.name).to_owned(),
                points: points.collect(),
            }
        };
        Ok(chosen.iter().map(curve).collect())
    }
}

fn longest(measured: &Measured) -> Option<f64> {
    measured.waits.as_ref().map(|waits| waits.max_ns)
}
