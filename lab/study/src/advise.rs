//! Which lock for which machine and load: the three best, with ranges.

mod picture;
#[cfg(test)]
mod tests;

use std::iter::once;

use itertools::Itertools;
use overlock_bench::error::Error;
use overlock_bench::registry::{self, Entry, Family, Origin};
use overlock_report::columns::{NOTHING, optional, table};
use overlock_report::numbers::{rate, significant, time};
use overlock_sim::MOST_VCPUS;
use serde::Serialize;

use crate::case::{Case, Measured, Options, Outcome, Place, outcomes};
use crate::score::Class;
use crate::vary::{self, Range};

/// So many locks are the answer.
pub const BEST: usize = 3;
/// So many are simulated with changed constants.
pub const FINALISTS: usize = 5;
/// The locks of ours that a program may choose, beside the models of the locks of others.
const OURS: &str = "overlock, kernel_mutex, hybrid, hybrid_short, queued, pv_queued, mcs, ticket";
/// The locks that the picture has beside the best ones: ours, and what programs have.
const BESIDE: [&str; 2] = ["overlock", "std"];
/// So many of the best models of published locks, which no library has, likewise.
const MODELS: usize = 1;
/// The most lines of the picture.
const LINES: usize = 5;
/// After what is said of models.
pub(crate) const NO_LIBRARY: &str = ", which no library has";
/// A range whose ends differ by less than this factor is one figure.
const ONE: f64 = 1.05;

/// A load, and the locks to choose from.
#[derive(Clone, Debug)]
pub struct Question {
    pub place: Place,
    /// Those that take fewer threads are left out.
    pub locks: Vec<&'static Entry>,
}

/// A lock with the load.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Standing {
    /// The name that people use for it.
    pub lock: &'static str,
    #[serde(flatten)]
    pub measured: Measured,
    /// The range of the operations a second, with constants a tenth smaller and larger, of the best
    /// locks. A lock that fails with some may make anything down to nothing.
    pub range: Option<Range>,
    /// Whether its order to the best one is not known: their ranges meet, if both are widened by
    /// the error of the score.
    pub level: bool,
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
    /// The error of the score in that class, if it has one: a mean absolute logarithm.
    pub error: Option<f64>,
    /// The locks, the best first.
    pub locks: Vec<Standing>,
    /// Models of published locks that no library has, the best first.
    pub models: Vec<Standing>,
    /// Locks that failed, and how.
    pub failed: Vec<(&'static str, String)>,
    /// The best locks with other numbers of threads, if they were asked for.
    pub curves: Vec<Advice>,
}

/// The locks to choose from if none are named.
pub fn candidates() -> Vec<&'static Entry> {
    let models = Family::Exclusive.locks().iter();
    let models = models.filter(|lock| lock.origin == Origin::Model && lock.simulated.is_some());
    named(OURS).chain(models).collect()
}

/// The locks of these names that this program has.
pub(crate) fn named(names: &'static str) -> impl Iterator<Item = &'static Entry> {
    let names = names.split(", ");
    names.filter_map(|name| registry::simulated(Family::Exclusive, name).ok())
}

/// Answers all questions. So many of the best locks of each are simulated again with changed
/// constants, once it is known which those are.
pub fn answer(
    questions: &[Question],
    finalists: usize,
    options: &Options,
    mut done: impl FnMut(usize, usize, &Case),
) -> Result<Vec<Advice>, Error> {
    let cases = questions.iter().flat_map(Question::cases).collect_vec();
    let mut simulated = cases.iter().zip(outcomes(&cases, options, &mut done)?);
    let (mut answers, mut best, varied_models) = (Vec::new(), Vec::new(), finalists.min(MODELS));
    for question in questions {
        let mut advice = Advice::of(&question.place);
        let mut ended = Vec::new();
        for (case, outcome) in simulated.by_ref().take(question.cases().count()) {
            let lock = case.lock.plain();
            match outcome {
                Ok(measured) => ended.push((case, Standing::new(lock, measured))),
                Err(why) => advice.failed.push((lock, why)),
            }
        }
        let rate = |standing: &Standing| standing.measured.ops_per_sec;
        ended.sort_by(|(_, a), (_, b)| rate(b).total_cmp(&rate(a)));
        let at_hand = |(case, _): &(&Case, Standing)| case.lock.is_at_hand();
        let (locks, models): (Vec<_>, Vec<_>) = ended.into_iter().partition(at_hand);
        let finalists = locks.iter().take(finalists);
        let finalists = finalists.chain(models.iter().take(varied_models));
        best.extend(finalists.map(|(case, _)| *case));
        let standings = |ended: Vec<(_, Standing)>| ended.into_iter().map(|(_, own)| own).collect();
        (advice.locks, advice.models) = (standings(locks), standings(models));
        answers.push(advice);
    }
    let changed = best.into_iter().flat_map(vary::around).collect_vec();
    let mut changed = outcomes(&changed, options, done)?.into_iter();
    let best = answers.iter_mut().flat_map(|answer| {
        let models = answer.models.iter_mut().take(varied_models);
        answer.locks.iter_mut().take(finalists).chain(models)
    });
    for standing in best {
        standing.changed = changed.by_ref().take(vary::COUNT).collect();
        let rate = |outcome: &Outcome| outcome.as_ref().map_or(0.0, |m| m.ops_per_sec);
        let rates = standing.changed.iter().map(rate);
        standing.range = Range::of(rates.chain([standing.measured.ops_per_sec]));
    }
    answers.iter_mut().for_each(Advice::compare);
    Ok(answers)
}

impl Question {
    fn cases(&self) -> impl Iterator<Item = Case> {
        let locks = self.locks.iter();
        let locks = locks.filter(|lock| lock.takes(self.place.threads));
        locks.map(|lock| self.place.with(lock))
    }

    /// Answers it, with curves over the number of threads if they are wanted: of the best locks and
    /// two for comparison, from one thread to four for each CPU.
    pub fn answer(
        &self,
        options: &Options,
        curves: bool,
        mut done: impl FnMut(usize, usize, &Case),
    ) -> Result<Advice, Error> {
        let asked = std::slice::from_ref(self);
        let mut advice = answer(asked, FINALISTS, options, &mut done)?.remove(0);
        if curves {
            let few = [0.25, 0.5, 1.0, 2.0, 4.0];
            let few = few.map(|level| (level * advice.cpus as f64) as usize);
            let threads = few.into_iter().chain([1, advice.threads]).sorted().dedup();
            let threads = threads.filter(|threads| (1..=MOST_VCPUS).contains(threads));
            let (drawn, mut asked) = (advice.drawn(), self.clone());
            let is_drawn = |lock: &Entry| drawn.contains(&lock.plain());
            asked.locks.retain(|lock| is_drawn(lock));
            let asked = threads.map(|threads| {
                asked.place.threads = threads;
                asked.clone()
            });
            advice.curves = answer(&asked.collect_vec(), 0, options, done)?;
        }
        Ok(advice)
    }
}

impl Advice {
    /// Nothing is known yet.
    pub(crate) fn of(place: &Place) -> Self {
        let class = Class::of(place);
        Self {
            machine: place.machine.about.to_string(),
            cpus: place.machine.cpus(),
            host: place.host.name.to_string(),
            workload: place.workload.to_string(),
            threads: place.threads,
            class,
            error: class.error(),
            locks: Vec::new(),
            models: Vec::new(),
            failed: Vec::new(),
            curves: Vec::new(),
        }
    }

    /// The locks of the picture.
    fn drawn(&self) -> Vec<&'static str> {
        let names = self.locks.iter().map(|standing| standing.lock);
        let beside = BESIDE.into_iter();
        let beside = beside.filter(|lock| names.clone().contains(lock));
        let model = self.model_ahead().map(|model| model.lock);
        let drawn = names.clone().take(BEST).chain(model).chain(beside);
        drawn.unique().take(LINES).collect()
    }

    /// For people: the three best locks, what each costs, and how sure it is.
    pub fn describe(&self) -> String {
        let (machine, host, workload) = (&self.machine, &self.host, &self.workload);
        let (threads, cpus, class) = (self.threads, self.cpus, self.class);
        let mut text = format!(
            "{machine}; host {host}\n{threads} threads on {cpus} CPUs ({class}), {workload}\n\n"
        );
        let titles = "lock, Mop/s, Jain, CPU s/Mop, longest wait, how sure".split(", ");
        let best = || self.locks.iter().take(BEST).chain(self.model_ahead());
        let rows = best().map(|standing| self.row(standing));
        text += &table(titles, rows, |column| (1..5).contains(&column));
        text += "\n";
        for lock in best().flat_map(|best| named(best.lock)) {
            text += &format!("{}: {}\n", lock.plain(), lock.about);
        }
        for (what, level) in [("level with", true), ("behind", false)] {
            let others = self.locks.iter().skip(BEST);
            let mut others = others.filter(|lock| lock.level == level).peekable();
            if others.peek().is_some() {
                let told = |lock: &Standing| format!("{} {}", lock.lock, lock.operations());
                let (first, told) = (self.locks[0].lock, others.map(told).join(", "));
                text += &format!("\nAlso {what} {first}, in Mop/s: {told}.\n");
            }
        }
        if !self.models.is_empty() {
            let told = |model: &Standing| format!("{} {}", model.lock, model.operations());
            let models = self.models.iter().map(told).join(", ");
            text += &format!("\nModels of published locks{NO_LIBRARY}, in Mop/s: {models}.\n");
        }
        let failed = self.failed.iter();
        text.extend(failed.map(|(lock, why)| format!("{lock} failed: {why}\n")));
        let widened = self
            .error
            .map_or("", |_| ", once the error of the score has widened them");
        text += &format!(
            "\nA range is that of constants a tenth smaller and larger; locks after the best \
             {FINALISTS}, and models after the best, have none. A lock is level with the first if \
             their ranges meet{widened}.\n"
        );
        text + &self.class.told()
    }

    /// Finds out which locks are level with the best one.
    pub(crate) fn compare(&mut self) {
        let best = self.locks.first().map(|best| best.widened(self.error));
        for lock in self.locks.iter_mut().chain(&mut self.models) {
            lock.level = best.is_some_and(|best| best.meets(lock.widened(self.error)));
        }
    }

    /// The best model of a lock that no library has, if it is ahead of all locks by more than the
    /// mean errors.
    pub(crate) fn model_ahead(&self) -> Option<&Standing> {
        let best = self.locks.first()?.measured.ops_per_sec;
        let model = self.models.first();
        model.filter(|model| !model.level && model.measured.ops_per_sec > best)
    }

    /// The locks that are level with the best one, and the other ones: worse than the best one by
    /// more than the mean errors.
    pub(crate) fn split(&self) -> (Vec<&Standing>, Vec<&Standing>) {
        self.locks.iter().partition(|lock| lock.level)
    }

    fn row(&self, standing: &Standing) -> [String; 6] {
        let (first, others) = (self.locks[0].lock, &self.locks[1..]);
        let model = self.model_ahead().map(|model| model.lock);
        let mut sure = match (standing.lock == first, standing.level) {
            _ if model == Some(standing.lock) => format!("ahead of {first}{NO_LIBRARY}"),
            _ if others.is_empty() => NOTHING.to_owned(),
            (true, _) if others.iter().any(|lock| lock.level) => "level with others".to_owned(),
            (true, _) => "ahead of all others".to_owned(),
            (false, true) => format!("level with {first}"),
            (false, false) => format!("behind {first}"),
        };
        let is_near = standing.varied().is_regime_change();
        let fails = standing.changed.iter().any(Result::is_err);
        let told = [
            (is_near, "; near a change of regime"),
            (fails, "; fails with other constants"),
            (standing.measured.is_unsettled(), "; not settled"),
        ];
        sure.extend(told.into_iter().filter(|told| told.0).map(|told| told.1));
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
    pub(crate) fn new(lock: &'static str, measured: Measured) -> Self {
        Self {
            lock,
            measured,
            ..Self::default()
        }
    }

    /// The range of its operations, or the figure where it has none.
    pub fn varied(&self) -> Range {
        let high = self.measured.ops_per_sec;
        self.range.unwrap_or(Range { low: high, high })
    }

    /// The same, widened by the error of the score.
    pub(crate) fn widened(&self, error: Option<f64>) -> Range {
        self.varied().widened(error.unwrap_or_default())
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
