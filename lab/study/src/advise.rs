//! Which lock for which machine and load: the three best, with ranges.

mod picture;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::iter::once;
use std::sync::Arc;

use itertools::{Either, Itertools};
use overlock_bench::error::Error;
use overlock_bench::registry::{Entry, Family, Origin};
use overlock_bench::workload::Workload;
use overlock_report::columns::{NOTHING, optional, table};
use overlock_report::numbers::{rate, significant, time};
use overlock_sim::MOST_VCPUS;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use serde::Serialize;

use crate::case::{Case, Measured, Options, Outcome, outcomes};
use crate::locks;
use crate::score::Class;
use crate::vary::{self, Range};
pub(crate) use picture::draw;

/// So many locks are the answer.
pub const BEST: usize = 3;
/// So many are simulated with changed constants.
pub const FINALISTS: usize = 5;
/// The locks of ours that a program may choose, beside the models of the locks of others.
const OURS: &str = "overlock, kernel_mutex, hybrid, hybrid_short, queued, pv_queued, mcs, ticket";
/// The locks that the picture has beside the best ones: ours, and what programs have.
const BESIDE: [&str; 2] = ["overlock", "std"];
/// The most lines of the picture.
const LINES: usize = 5;
/// A range whose ends differ by less than this factor is one figure.
const ONE: f64 = 1.05;

/// A machine with a load, and the locks to choose from.
#[derive(Clone, Debug)]
pub struct Question {
    pub machine: Arc<Machine>,
    pub host: Arc<Host>,
    pub workload: Workload,
    pub threads: usize,
    /// Those that take fewer threads are left out.
    pub locks: Vec<&'static Entry>,
}

/// A lock with the load.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// The name that people use for it.
    pub lock: &'static str,
    #[serde(skip)]
    case: Case,
    #[serde(flatten)]
    pub measured: Measured,
    /// The range of the operations a second, with constants a tenth smaller and larger, of the best
    /// locks. A lock that fails with some may make anything down to nothing.
    pub range: Option<Range>,
    /// The outcomes with those constants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Outcome>,
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
    pub failed: Vec<(&'static str, String)>,
    /// The best locks with other numbers of threads, if they were asked for.
    pub curves: Vec<Advice>,
}

/// The locks to choose from if none are named.
pub fn candidates() -> Vec<&'static Entry> {
    let family = Family::Exclusive;
    let models = family.locks().iter();
    let models = models.filter(|lock| lock.origin == Origin::Model && lock.simulated.is_some());
    let ours = OURS.split(", ");
    let ours = ours.filter_map(|name| locks::named(family, name).ok());
    ours.chain(models).collect()
}

/// Answers all questions. So many of the best locks of each are simulated again with changed
/// constants, once it is known which those are.
pub fn answer(
    questions: &[Question],
    finalists: usize,
    options: &Options,
    mut done: impl FnMut(usize, usize, &Case) + Send,
) -> Result<Vec<Advice>, Error> {
    let cases = questions.iter().flat_map(Question::cases).collect_vec();
    let outcomes_of = outcomes(&cases, options, &mut done)?;
    let mut plain = cases.into_iter().zip(outcomes_of);
    let answers = questions.iter().map(|question| {
        let mine = plain.by_ref().take(question.cases().count());
        let standing = |(case, outcome): (Case, Outcome)| {
            let lock = locks::plain(case.lock.name);
            match outcome {
                Ok(measured) => Either::Left(Standing::new(lock, case, measured)),
                Err(error) => Either::Right((lock, error)),
            }
        };
        let (mut locks, failed): (Vec<Standing>, _) = mine.partition_map(standing);
        let rate = |standing: &Standing| standing.measured.ops_per_sec;
        locks.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        question.with(locks, failed)
    });
    let mut answers = answers.collect_vec();
    let best = answers.iter_mut().map(|answer| answer.locks.iter_mut());
    let best = best.flat_map(|locks| locks.take(finalists)).collect_vec();
    let changed = best
        .iter()
        .flat_map(|standing| vary::around(&standing.case));
    let mut changed = outcomes(&changed.collect_vec(), options, done)?.into_iter();
    for standing in best {
        standing.changed = changed.by_ref().take(vary::COUNT).collect();
        let rate = |outcome: &Outcome| outcome.as_ref().map_or(0.0, |m| m.ops_per_sec);
        let rates = standing.changed.iter().map(rate);
        standing.range = Range::of(rates.chain([standing.measured.ops_per_sec]));
    }
    Ok(answers)
}

impl Question {
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

    pub(crate) fn with(&self, locks: Vec<Standing>, failed: Vec<(&'static str, String)>) -> Advice {
        Advice {
            machine: self.machine.about.to_string(),
            cpus: self.machine.cpus(),
            host: self.host.name.to_string(),
            workload: self.workload.to_string(),
            threads: self.threads,
            class: Class::of(self.machine.sockets, self.machine.cpus(), self.threads),
            locks,
            failed,
            curves: Vec::new(),
        }
    }

    /// Answers it, with curves over the number of threads if they are wanted: of the best locks and
    /// two for comparison, from one thread to four for each CPU.
    pub fn answer(
        &self,
        options: &Options,
        curves: bool,
        mut done: impl FnMut(usize, usize, &Case) + Send,
    ) -> Result<Advice, Error> {
        let asked = std::slice::from_ref(self);
        let mut advice = answer(asked, FINALISTS, options, &mut done)?.remove(0);
        if curves {
            let cpus = advice.cpus;
            let fewer = [1, cpus / 4, cpus / 2, cpus];
            let threads = fewer.into_iter().chain([2 * cpus, 4 * cpus, self.threads]);
            let threads = threads.sorted().dedup();
            let threads = threads.filter(|threads| (1..=MOST_VCPUS).contains(threads));
            let drawn = advice.drawn();
            let mut locks = self.locks.clone();
            locks.retain(|lock| drawn.contains(&locks::plain(lock.name)));
            let asked = threads.map(|threads| Self {
                threads,
                locks: locks.clone(),
                ..self.clone()
            });
            advice.curves = answer(&asked.collect_vec(), 0, options, done)?;
        }
        Ok(advice)
    }
}

impl Advice {
    /// The locks of the picture.
    fn drawn(&self) -> Vec<&'static str> {
        let names = self.locks.iter().map(|standing| standing.lock);
        let beside = BESIDE.into_iter();
        let beside = beside.filter(|lock| names.clone().contains(lock));
        let drawn = names.clone().take(BEST).chain(beside);
        drawn.unique().take(LINES).collect()
    }

    /// Writes its picture.
    pub fn draw(&self, out: impl Write) -> io::Result<()> {
        let title = format!("{} on {}", self.workload, self.machine);
        let curves = self.curves.iter().collect_vec();
        draw(out, &title, &self.drawn(), &curves)
    }

    /// For people: the three best locks, what each costs, and how sure it is.
    pub fn describe(&self) -> String {
        let (machine, host, workload) = (&self.machine, &self.host, &self.workload);
        let (threads, cpus, class) = (self.threads, self.cpus, self.class);
        let mut text = format!(
            "{machine}; host {host}\n{threads} threads on {cpus} CPUs ({class}), {workload}\n\n"
        );
        let titles = "lock, Mop/s, Jain, CPU s/Mop, longest wait, how sure".split(", ");
        let (level, behind) = self.split(self.class.known().map_or(0.0, |known| known.error));
        let best = || self.locks.iter().take(BEST);
        let rows = best().map(|standing| self.row(standing, &level));
        text += &table(titles, rows, |column| (1..5).contains(&column));
        text += "\n";
        for lock in best().filter_map(|best| locks::named(Family::Exclusive, best.lock).ok()) {
            let _ = writeln!(text, "{}: {}", locks::plain(lock.name), lock.about);
        }
        for (what, locks) in [
            ("Level with", &level[1.min(level.len())..]),
            ("Behind", &behind),
        ] {
            if let (Some(first), [_, ..]) = (self.locks.first(), locks) {
                let told = |lock: &&Standing| format!("{} {}", lock.lock, lock.operations());
                let told = locks.iter().map(told).join(", ");
                let _ = writeln!(text, "\n{what} {}, in Mop/s: {told}.", first.lock);
            }
        }
        for (lock, why) in &self.failed {
            let _ = writeln!(text, "{lock} failed: {why}");
        }
        text += "\nA range is that of constants a tenth smaller and larger. A lock is level with the \
                 first if their ranges meet, once the error of the score has widened them.\n";
        text + &class.told()
    }

    /// The locks that are level with the best one, whose ranges meet if they are widened by this
    /// error, and the other ones: worse than the best one, whatever the error.
    pub(crate) fn split(&self, error: f64) -> (Vec<&Standing>, Vec<&Standing>) {
        let range = |standing: &Standing| standing.varied().widened(error);
        let level = |standing: &&Standing| range(&self.locks[0]).meets(range(standing));
        self.locks.iter().partition(level)
    }

    fn row(&self, standing: &Standing, level: &[&Standing]) -> [String; 6] {
        let is = |lock: &Standing| lock.lock == standing.lock;
        let mut sure = match level {
            [] => NOTHING.to_owned(),
            _ if self.locks.len() == 1 => NOTHING.to_owned(),
            [first] if is(first) => "ahead of all others".to_owned(),
            [first, ..] if is(first) => "level with others".to_owned(),
            [first, ..] if level.iter().any(|lock| is(lock)) => {
                format!("level with {}", first.lock)
            }
            [first, ..] => format!("behind {}", first.lock),
        };
        let is_near = standing.varied().is_regime_change();
        let fails = standing.changed.iter().any(Result::is_err);
        let unsettled = standing.measured.is_unsettled();
        for (is_so, what) in [
            (is_near, "near a change of regime"),
            (fails, "fails with other constants"),
            (unsettled, "not settled"),
        ] {
            if is_so {
                sure += &format!("; {what}");
            }
        }
        let longest = |m: &Measured| m.waits.as_ref().map(|waits| waits.max_ns);
        [
            standing.lock.to_owned(),
            standing.operations(),
            standing.cell(|m| m.jain, |jain| format!("{jain:.2}")),
            standing.cell(|m| m.cpu_s_per_mop, significant),
            standing.cell(longest, time),
            sure,
        ]
    }
}

impl Standing {
    pub(crate) fn new(lock: &'static str, case: Case, measured: Measured) -> Self {
        Self {
            lock,
            case,
            measured,
            range: None,
            changed: Vec::new(),
        }
    }

    /// The range of its operations, or the figure where it has none.
    pub fn varied(&self) -> Range {
        let high = self.measured.ops_per_sec;
        self.range.unwrap_or(Range { low: high, high })
    }

    fn operations(&self) -> String {
        self.cell(|m| Some(m.ops_per_sec), rate)
    }

    /// A figure, or its range.
    fn cell(&self, figure: fn(&Measured) -> Option<f64>, write: fn(f64) -> String) -> String {
        let changed = self.changed.iter().flatten();
        let all = once(&self.measured).chain(changed).filter_map(figure);
        match Range::of(all).filter(|range| range.high > ONE * range.low) {
            Some(Range { low, high }) => format!("{} to {}", write(low), write(high)),
            None => optional(figure(&self.measured), write),
        }
    }
}
