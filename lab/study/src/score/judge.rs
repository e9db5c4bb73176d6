//! How well simulated figures agree with published ones.

use std::collections::HashMap;

use itertools::Itertools;
use overlock_bench::error::Error;
use serde::Serialize;

use super::data::{Figure, Half, Row};
use crate::case::{Case, Options, Outcome, outcomes};
use crate::vary::{self, Range};

/// Two locks differ if one has this many times the operations of the other.
const DIFFER: f64 = 1.2;

/// The classes of figures, each with a goal of its own, in the order of the report.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display, strum::EnumString,
)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// No more threads than CPUs, on one socket.
    #[strum(serialize = "one socket")]
    OneSocket,
    /// The same on several.
    #[strum(serialize = "across sockets")]
    AcrossSockets,
    /// More threads than CPUs.
    #[strum(serialize = "overcommit")]
    Overcommit,
}

impl Class {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 3] = [Self::OneSocket, Self::AcrossSockets, Self::Overcommit];

    /// The class of so many threads on such a machine.
    pub fn of(sockets: usize, cpus: usize, threads: usize) -> Self {
        match threads {
            _ if threads > cpus => Self::Overcommit,
            2.. if sockets > 1 => Self::AcrossSockets,
            _ => Self::OneSocket,
        }
    }

    /// The largest mean error that is wanted.
    pub fn goal(self) -> f64 {
        match self {
            Self::OneSocket => 0.2,
            Self::AcrossSockets => 0.35,
            Self::Overcommit => 0.5,
        }
    }
}

/// The share of orders that is wanted.
pub const ORDERS_GOAL: f64 = 0.9;

/// The outcomes of each case by its key: with the cost model as it is, then with changed constants.
pub type Results = HashMap<String, Vec<Outcome>>;

/// All simulations that `figures` need, also with changed constants if `vary` says so. Calls `done`
/// after each with how many have ended, and of how many.
pub fn simulate_all(
    figures: &[Figure],
    vary: bool,
    options: &Options,
    done: impl FnMut(usize, usize, &Case),
) -> Result<Results, Error> {
    let cases = figures
        .iter()
        .flat_map(Figure::cases)
        .unique_by(|case| case.key());
    let (mut keys, mut all) = (Vec::new(), Vec::new());
    for case in cases {
        all.push(case.clone());
        if vary {
            all.extend(vary::around(case));
        }
        keys.resize(all.len(), case.key());
    }
    let outcomes = outcomes(&all, options, done)?;
    Ok(keys.into_iter().zip(outcomes).into_group_map())
}

/// A figure beside the simulated one.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The published one.
    #[serde(flatten)]
    pub row: Row,
    pub class: Class,
    /// The simulated figure, if there is one.
    pub simulated: Option<f64>,
    /// Whether longer simulations would bring the same, where that is known.
    pub settled: Option<bool>,
    /// Its range where constants a tenth smaller or larger change the lock's regime.
    pub range: Option<Range>,
    /// The null model's figure; none if its series is this figure alone.
    pub null: Option<f64>,
    /// The simulated one times a constant for its series.
    pub scaled: Option<f64>,
    /// Why there is no simulated figure.
    pub failed: Option<String>,
    /// The lock by its own name.
    #[serde(skip)]
    lock: &'static str,
    /// As [`Unit::better`](super::data::Unit::better).
    #[serde(skip)]
    better: f64,
}

/// The sums of some figures. Errors are means of absolute logarithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sum {
    pub figures: usize,
    /// Those without a simulated figure.
    pub failed: usize,
    /// Pairs of locks that differ.
    pub orders: usize,
    /// Pairs in the right order.
    pub orders_right: usize,
    /// The error of the simulated figures.
    pub error: Option<f64>,
    /// Of those times a constant for each series.
    pub shape: Option<f64>,
    /// Of the null model: locks are equal, and each series is a constant, fitted to it.
    pub null: Option<f64>,
    /// One minus the error over that of the null model, of figures that have one.
    pub skill: Option<f64>,
}

/// A group, or a class of a half.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub name: String,
    pub half: Half,
    /// Its documents, if it is a group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    #[serde(flatten)]
    pub sum: Sum,
    /// Whether it has all that is wanted of a class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<bool>,
}

impl Part {
    /// The class that it is.
    pub fn class(&self) -> Option<Class> {
        self.name.parse().ok()
    }
}

/// The score.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// The groups, the worst first.
    pub groups: Vec<Part>,
    /// The classes of each half.
    pub classes: Vec<Part>,
    pub figures: Vec<Line>,
}

impl Score {
    /// Judges `figures` by the results of their cases.
    pub fn new(figures: &[Figure], results: &Results) -> Self {
        let mut lines: Vec<Line> = figures.iter().map(|f| Line::new(f, results)).collect();
        fit(&mut lines);
        let mut groups = parts(&lines, |line| line.row.group.clone());
        for part in &mut groups {
            let rows = lines.iter().map(|line| &line.row);
            let rows = rows.filter(|row| row.group == part.name);
            part.source = rows.map(|row| &row.source).dedup().join("; ");
        }
        let worst = |part: &Part| part.sum.skill.unwrap_or(f64::INFINITY);
        groups.sort_by(|a, b| worst(a).total_cmp(&worst(b)));
        let mut classes = parts(&lines, |line| line.class.to_string());
        for part in &mut classes {
            part.reached = part.class().map(|class| part.sum.reaches(class));
        }
        classes.sort_by_key(|part| (part.half, part.class()));
        Self {
            groups,
            classes,
            figures: lines,
        }
    }

    /// The figures that could not be simulated.
    pub fn failures(&self) -> impl Iterator<Item = (&Row, &str)> {
        let lines = self.figures.iter();
        lines.filter_map(|line| Some((&line.row, line.failed.as_deref()?)))
    }
}

impl Line {
    fn new(figure: &Figure, results: &Results) -> Self {
        let case = &figure.case;
        let (simulated, failed) = match simulated(figure, results) {
            Ok(figures) => (figures, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let mut settled = figure.cases().map(|case| {
            let measured = results[&case.key()].first()?.measured().ok()?;
            measured.simulation.settled
        });
        Self {
            row: figure.row.clone(),
            class: Class::of(case.machine.sockets, case.machine.cpus(), case.threads),
            simulated: simulated.first().copied(),
            settled: settled.try_fold(true, |so_far, one| Some(so_far && one?)),
            range: Range::of(simulated).filter(|range| range.is_regime_change()),
            null: None,
            scaled: None,
            failed,
            lock: case.lock.name,
            better: figure.unit.better,
        }
    }
}

/// The figures of a line: with the cost model as it is, and with each changed constant.
fn simulated(figure: &Figure, results: &Results) -> Result<Vec<f64>, String> {
    let of = |case: &Case| {
        let each = results[&case.key()].iter().map(|outcome| {
            let brings = figure.of(outcome.measured()?);
            brings.ok_or("there is nothing to compare")
        });
        each.collect::<Result<Vec<f64>, &str>>()
    };
    let ours = of(&figure.case)?;
    match &figure.over {
        None => Ok(ours),
        Some(over) => Ok(ours.iter().zip(of(over)?).map(|(a, b)| a / b).collect()),
    }
}

/// Fits a constant to each series: the figures of a group in one unit. Ratios have 1.
fn fit(lines: &mut [Line]) {
    for line in lines.iter_mut().filter(|line| line.row.over.is_some()) {
        (line.null, line.scaled) = (Some(1.0), line.simulated);
    }
    let fitted = lines.iter_mut();
    let fitted = fitted.filter(|line| line.row.over.is_none() && line.simulated.is_some());
    let series = fitted.into_group_map_by(|line| (line.row.group.clone(), line.row.unit.clone()));
    for mut members in series.into_values().filter(|members| members.len() > 1) {
        let mean = |members: &[&mut Line], value: fn(&Line) -> f64| {
            let logs = members.iter().map(|line| value(line).ln());
            (logs.sum::<f64>() / members.len() as f64).exp()
        };
        let null = mean(&members, |line| line.row.figure);
        let simulated = mean(&members, |line| line.simulated.unwrap_or(line.row.figure));
        for line in &mut members {
            line.null = Some(null);
            line.scaled = line.simulated.map(|figure| figure * (null / simulated));
        }
    }
}

/// The figures by a name and their half.
fn parts(lines: &[Line], name: impl Fn(&Line) -> String) -> Vec<Part> {
    let of = |line: &&Line| (name(line), line.row.half.unwrap_or(Half::Score));
    let parts = lines.iter().into_group_map_by(of).into_iter();
    let parts = parts.sorted_by(|(one, _), (other, _)| one.cmp(other));
    let part = |((name, half), members): (_, Vec<&Line>)| Part {
        name,
        half,
        source: String::new(),
        sum: Sum::of(&members),
        reached: None,
    };
    parts.map(part).collect()
}

impl Sum {
    fn of(members: &[&Line]) -> Self {
        let error = |value: fn(&Line) -> Option<f64>, only: fn(&Line) -> bool| {
            let lines = members.iter().filter(|line| only(line));
            let errors = lines.filter_map(|line| Some((value(line)? / line.row.figure).ln().abs()));
            let (count, sum) = errors.fold((0, 0.0), |(count, sum), one| (count + 1, sum + one));
            (count > 0).then(|| sum / f64::from(count))
        };
        let has_null = |line: &Line| line.null.is_some() && line.simulated.is_some();
        let null = error(|line| line.null, has_null);
        let beside = error(|line| line.simulated, has_null);
        let orders = orders(members);
        Self {
            figures: members.len(),
            failed: members.iter().filter(|line| line.failed.is_some()).count(),
            orders: orders.len(),
            orders_right: orders.iter().filter(|right| **right).count(),
            error: error(|line| line.simulated, |_| true),
            shape: error(|line| line.scaled, has_null),
            null,
            skill: beside.zip(null).map(|(beside, null)| 1.0 - beside / null),
        }
    }

    /// Whether it has all that is wanted of a class.
    fn reaches(&self, class: Class) -> bool {
        let orders = self.orders_right as f64 >= ORDERS_GOAL * self.orders as f64;
        let skill = self.skill.is_none_or(|skill| skill > 0.0);
        orders && skill && self.error.is_some_and(|error| error <= class.goal())
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
    // The common things of two figures whose locks are compared.
    let series = |line: &Line| Row {
        lock: String::new(),
        figure: 0.0,
        half: None,
        source: String::new(),
        seen: String::new(),
        over: None,
        note: String::new(),
        ..line.row.clone()
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
