//! How well simulated figures agree with published ones.

use std::iter::once;

use itertools::{Itertools, iproduct};
use overlock_bench::error::Error;
use overlock_bench::stats::median;
use serde::Serialize;

use super::Class;
use super::data::{Figure, Half, Row};
use crate::case::{Case, Options, Outcome, outcomes};
use crate::vary::{self, Range};

/// Two locks differ if one has this many times the operations of the other.
const DIFFER: f64 = 1.2;

/// The share of orders that is wanted.
pub const ORDERS_GOAL: f64 = 0.9;

/// The outcomes of all simulations that `figures` need: of each as it is, then with changed
/// constants if `vary` says so. Calls `done` after each with how many have ended, and of how many.
pub fn simulate_all(
    figures: &[Figure],
    vary: bool,
    options: &Options,
    done: impl FnMut(usize, usize, &Case),
) -> Result<Vec<Outcome>, Error> {
    let changes = if vary { vary::COUNT } else { 0 };
    let cases = figures.iter().flat_map(Figure::cases);
    let cases = cases.flat_map(|case| once(case.clone()).chain(vary::around(case).take(changes)));
    outcomes(&cases.collect_vec(), options, done)
}

/// A figure beside the simulated one.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The published one.
    #[serde(flatten)]
    pub row: Row,
    pub class: Class,
    /// The simulated figure, if there is one: the median over the runs.
    pub simulated: Option<f64>,
    /// Whether longer simulations would bring the same, where that is known.
    pub settled: Option<bool>,
    /// Its range where another seed, or constants a tenth smaller or larger, change the lock's
    /// regime.
    pub range: Option<Range>,
    /// The null model's figure; none if its series is this figure alone.
    pub null: Option<f64>,
    /// Why there is no simulated figure.
    pub failed: Option<String>,
    /// The lock by its own name.
    #[serde(skip)]
    lock: &'static str,
    /// As in a [`Unit`](super::data::Unit).
    #[serde(skip)]
    better: f64,
}

/// A group, or a class of a half. Errors are means of absolute logarithms.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub name: String,
    pub half: Half,
    /// Its documents, if it is a group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    pub figures: usize,
    /// Figures without a simulated one.
    pub failed: usize,
    /// Pairs of locks that differ.
    pub orders: usize,
    /// Pairs in the right order.
    pub orders_right: usize,
    /// The error of the simulated figures.
    pub error: Option<f64>,
    /// Of the null model: locks are equal, and each series is a constant, fitted to it.
    pub null: Option<f64>,
    /// One minus the error over that of the null model, of figures that have one.
    pub skill: Option<f64>,
    /// Whether it has all that is wanted of a class, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<bool>,
}

/// The score.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// The groups, the worst first.
    pub groups: Vec<Part>,
    /// The classes of each half.
    pub classes: Vec<Part>,
    pub figures: Vec<Line>,
    /// The seeds of the runs.
    pub seeds: Vec<u64>,
}

impl Score {
    /// Judges `figures` by the outcomes of runs of [`simulate_all`], at least one, each with a seed
    /// of its own.
    pub fn new(figures: &[Figure], seeds: Vec<u64>, runs: &[Vec<Outcome>]) -> Self {
        let each = runs[0].len() / figures.iter().flat_map(Figure::cases).count();
        let mut runs = runs.iter().map(|run| run.chunks(each)).collect_vec();
        let line = |figure: &Figure| {
            let count = figure.cases().count();
            let runs = runs.iter_mut().map(|run| run.by_ref().take(count));
            Line::new(figure, &runs.map(Iterator::collect).collect_vec())
        };
        let mut lines = figures.iter().map(line).collect_vec();
        fit(&mut lines);
        let mut groups = parts(&lines, |line| line.row.group.clone());
        let worst = |part: &Part| part.skill.unwrap_or(f64::INFINITY);
        groups.sort_by(|a, b| worst(a).total_cmp(&worst(b)));
        let mut classes = parts(&lines, |line| line.class.to_string());
        classes.sort_by_key(|part| (part.half, part.class()));
        Self {
            groups,
            classes,
            figures: lines,
            seeds,
        }
    }

    /// The figures that could not be simulated.
    pub fn failures(&self) -> impl Iterator<Item = (&Row, &str)> {
        let lines = self.figures.iter();
        lines.filter_map(|line| Some((&line.row, line.failed.as_deref()?)))
    }
}

impl Line {
    /// With the outcomes of each of its cases, in each run.
    fn new(figure: &Figure, runs: &[Vec<&[Outcome]>]) -> Self {
        let settled = |each: &&[Outcome]| each[0].as_ref().ok()?.simulation.settled;
        let mut settled = runs.iter().flatten().map(settled);
        let of = |outcome: &Outcome| {
            let brings = figure.of(outcome.as_ref()?);
            brings.ok_or_else(|| "there is nothing to compare".to_owned())
        };
        let simulated = |(at, run): (usize, &Vec<&[Outcome]>)| {
            let figures = run.iter().map(|each| of(&each[at]));
            let ratio = figures.reduce(|ours, over| Ok(ours? / over?));
            ratio.expect("a figure has a case")
        };
        // First the figure as it is in each run, then those with changed constants.
        let all = iproduct!(0..runs[0][0].len(), runs).map(simulated);
        let simulated: Result<Vec<f64>, _> = all.collect();
        let failed = simulated.as_ref().err().cloned();
        let simulated = simulated.unwrap_or_default();
        let as_it_is = simulated.iter().copied().take(runs.len());
        Self {
            row: figure.row.clone(),
            class: Class::of(&figure.case.place),
            simulated: (!simulated.is_empty()).then(|| median(as_it_is)),
            settled: settled.try_fold(true, |so_far, one| Some(so_far && one?)),
            range: Range::of(simulated).filter(|range| range.is_regime_change()),
            null: None,
            failed,
            lock: figure.case.lock.name,
            better: figure.unit.1,
        }
    }
}

/// Fits the null model: a constant for each series, the figures of a group in one unit. Ratios have
/// 1.
fn fit(lines: &mut [Line]) {
    for line in lines.iter_mut().filter(|line| line.row.over.is_some()) {
        line.null = Some(1.0);
    }
    let fitted = lines.iter_mut();
    let fitted = fitted.filter(|line| line.row.over.is_none() && line.simulated.is_some());
    let series = fitted.into_group_map_by(|line| (line.row.group.clone(), line.row.unit.clone()));
    for members in series.into_values().filter(|members| members.len() > 1) {
        let logs = members.iter().map(|line| line.row.figure.ln());
        let null = (logs.sum::<f64>() / members.len() as f64).exp();
        for line in members {
            line.null = Some(null);
        }
    }
}

/// The figures by a name and their half.
fn parts(lines: &[Line], name: impl Fn(&Line) -> String) -> Vec<Part> {
    let of = |line: &&Line| (name(line), line.row.half());
    let parts = lines.iter().into_group_map_by(of).into_iter();
    let parts = parts.sorted_by(|(one, _), (other, _)| one.cmp(other));
    parts
        .map(|((name, half), members)| Part::new(name, half, &members))
        .collect()
}

impl Part {
    /// The class that it is.
    pub fn class(&self) -> Option<Class> {
        self.name.parse().ok()
    }

    fn new(name: String, half: Half, members: &[&Line]) -> Self {
        let mean = |value: fn(&Line) -> Option<f64>, only: fn(&Line) -> bool| {
            let lines = members.iter().filter(|line| only(line));
            let errors = lines.filter_map(|line| Some((value(line)? / line.row.figure).ln().abs()));
            let (count, sum) = errors.fold((0, 0.0), |(count, sum), one| (count + 1, sum + one));
            (count > 0).then(|| sum / f64::from(count))
        };
        let has_null = |line: &Line| line.null.is_some() && line.simulated.is_some();
        let (error, null) = (
            mean(|line| line.simulated, |_| true),
            mean(|line| line.null, has_null),
        );
        let beside = mean(|line| line.simulated, has_null);
        let skill = beside.zip(null).map(|(beside, null)| 1.0 - beside / null);
        let all = orders(members);
        let (orders, orders_right) = (all.len(), all.iter().filter(|right| **right).count());
        let reached = name.parse().ok().map(|class: Class| {
            let orders = orders_right as f64 >= ORDERS_GOAL * orders as f64;
            let is_near = error.is_some_and(|error| error <= class.goal());
            orders && is_near && skill.is_none_or(|skill| skill > 0.0)
        });
        let sources = members.iter().filter(|_| reached.is_none());
        Self {
            half,
            name,
            source: sources.map(|line| &line.row.source).dedup().join("; "),
            figures: members.len(),
            failed: members.iter().filter(|line| line.failed.is_some()).count(),
            orders,
            orders_right,
            error,
            null,
            skill,
            reached,
        }
    }
}

/// Whether each pair of locks that differ is in the right order.
fn orders(members: &[&Line]) -> Vec<bool> {
    let mut right = Vec::new();
    let mut judge = |published: f64, simulated: Option<f64>| {
        if published.ln().abs() > DIFFER.ln() {
            right.push(simulated.is_some_and(|simulated| simulated.ln() * published.ln() > 0.0));
        }
    };
    for line in members.iter().filter(|line| line.row.over.is_some()) {
        judge(line.row.figure, line.simulated);
    }
    let series = |Line { row, .. }: &Line| {
        let names = [
            &row.group,
            &row.machine,
            &row.host,
            &row.workload,
            &row.unit,
        ];
        (names.map(String::clone), row.threads, row.guests)
    };
    for (line, other) in members.iter().tuple_combinations() {
        if line.better != 0.0 && line.lock != other.lock && series(line) == series(other) {
            let ratio = |a: f64, b: f64| (a / b).powf(line.better);
            let simulated = line.simulated.zip(other.simulated);
            judge(
                ratio(line.row.figure, other.row.figure),
                simulated.map(|(ours, theirs)| ratio(ours, theirs)),
            );
        }
    }
    right
}
