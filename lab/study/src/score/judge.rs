//! How well simulated figures agree with published ones.

use std::collections::{BTreeMap, HashMap};

use itertools::Itertools;
use serde::Serialize;

use super::data::{Figure, Half, Row};
use super::run::Results;
use crate::vary::Range;

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
    /// Its document, if it is a group.
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
    pub fn new(figures: &[Figure], results: &HashMap<String, Results>) -> Self {
        let mut lines: Vec<Line> = figures.iter().map(|figure| line(figure, results)).collect();
        fit(figures, &mut lines);
        let all: Members<'_> = figures.iter().zip(&lines).collect();
        let mut groups = parts(&all, |figure, _| figure.row.group.clone());
        for part in &mut groups {
            part.source = sources(&all, &part.name);
        }
        let worst = |part: &Part| part.sum.skill.unwrap_or(f64::INFINITY);
        groups.sort_by(|a, b| worst(a).total_cmp(&worst(b)));
        let mut classes = parts(&all, |_, line| line.class.to_string());
        for part in &mut classes {
            part.reached = part.class().map(|class| reached(&part.sum, class));
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

fn reached(sum: &Sum, class: Class) -> bool {
    let orders = sum.orders_right as f64 >= ORDERS_GOAL * sum.orders as f64;
    let skill = sum.skill.is_none_or(|skill| skill > 0.0);
    orders && skill && sum.error.is_some_and(|error| error <= class.goal())
}

/// The figures of a line: with the cost model as it is, and with each changed constant.
fn simulated(figure: &Figure, results: &HashMap<String, Results>) -> Result<Vec<f64>, String> {
    let none = || "there is nothing to compare".to_owned();
    let of = |case: &super::Case| {
        let results = &results[&case.key()];
        let each = results.iter().map(|result| match result {
            Ok(measured) => figure.unit.of(measured, case.threads).ok_or_else(none),
            Err(error) => Err(error.clone()),
        });
        each.collect::<Result<Vec<f64>, String>>()
    };
    let ours = of(&figure.case)?;
    match &figure.over {
        None => Ok(ours),
        Some(over) => {
            let theirs = of(over)?;
            Ok(ours.iter().zip(theirs).map(|(a, b)| a / b).collect())
        }
    }
}

/// Whether the simulations of a figure have settled.
fn settled(figure: &Figure, results: &HashMap<String, Results>) -> Option<bool> {
    let cases = std::iter::once(&figure.case).chain(&figure.over);
    let mut each = cases.map(|case| match results[&case.key()].first()? {
        Ok(measured) => measured.simulation.settled,
        Err(_) => None,
    });
    each.try_fold(true, |so_far, one| Some(so_far && one?))
}

fn line(figure: &Figure, results: &HashMap<String, Results>) -> Line {
    let case = &figure.case;
    let (simulated, failed) = match simulated(figure, results) {
        Ok(figures) => (figures, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    Line {
        row: figure.row.clone(),
        class: Class::of(case.machine.sockets, case.machine.cpus(), case.threads),
        simulated: simulated.first().copied(),
        settled: settled(figure, results),
        range: Range::of(simulated).filter(|range| range.is_regime_change()),
        null: None,
        scaled: None,
        failed,
    }
}

/// Fits a constant to each series: the figures of a group in one unit. Ratios have 1.
fn fit(figures: &[Figure], lines: &mut [Line]) {
    let mut series: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (index, figure) in figures.iter().enumerate() {
        let row = &figure.row;
        if figure.over.is_some() {
            lines[index].null = Some(1.0);
            lines[index].scaled = lines[index].simulated;
        } else if lines[index].simulated.is_some() {
            let key = (row.group.clone(), row.unit.clone());
            series.entry(key).or_default().push(index);
        }
    }
    for members in series.values().filter(|members| members.len() > 1) {
        let mean = |value: &dyn Fn(&Line) -> f64| {
            let logs = members.iter().map(|&index| value(&lines[index]).ln());
            (logs.sum::<f64>() / members.len() as f64).exp()
        };
        let null = mean(&|line| line.row.figure);
        let factor = null / mean(&|line| line.simulated.unwrap_or(line.row.figure));
        for &index in members {
            lines[index].null = Some(null);
            lines[index].scaled = lines[index].simulated.map(|figure| figure * factor);
        }
    }
}

/// Figures with their lines.
type Members<'a> = Vec<(&'a Figure, &'a Line)>;

/// The figures by a name and their half.
fn parts(members: &Members<'_>, name: impl Fn(&Figure, &Line) -> String) -> Vec<Part> {
    let of = |&(figure, line): &(&Figure, &Line)| (name(figure, line), figure.half());
    let parts = members.iter().copied().into_group_map_by(of);
    let parts = parts
        .into_iter()
        .sorted_by(|(one, _), (other, _)| one.cmp(other));
    parts
        .map(|((name, half), members)| Part {
            name,
            half,
            source: String::new(),
            sum: sum(&members),
            reached: None,
        })
        .collect()
}

/// The documents of a group.
fn sources(members: &Members<'_>, group: &str) -> String {
    let rows = members.iter().map(|(figure, _)| &figure.row);
    let rows = rows.filter(|row| row.group == group);
    rows.map(|row| &row.source).dedup().join("; ")
}

fn sum(members: &Members<'_>) -> Sum {
    let error = |value: fn(&Line) -> Option<f64>, only: fn(&Line) -> bool| {
        let errors = members.iter().filter(|(_, line)| only(line));
        let errors =
            errors.filter_map(|(_, line)| Some((value(line)? / line.row.figure).ln().abs()));
        mean(errors)
    };
    let has_null = |line: &Line| line.null.is_some() && line.simulated.is_some();
    let null = error(|line| line.null, has_null);
    let beside = error(|line| line.simulated, has_null);
    let pairs = orders(members);
    Sum {
        figures: members.len(),
        failed: members
            .iter()
            .filter(|(_, line)| line.failed.is_some())
            .count(),
        orders: pairs.len(),
        orders_right: pairs.iter().filter(|right| **right).count(),
        error: error(|line| line.simulated, |_| true),
        shape: error(|line| line.scaled, has_null),
        null,
        skill: beside.zip(null).map(|(beside, null)| 1.0 - beside / null),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

/// The common things of two figures whose locks are compared.
fn series(row: &Row) -> impl PartialEq {
    let Row {
        group,
        machine,
        host,
        workload,
        unit,
        ..
    } = row.clone();
    (
        group,
        machine,
        host,
        workload,
        unit,
        row.threads,
        row.guests,
    )
}

/// Whether each pair of locks that differ is in the right order.
fn orders(members: &Members<'_>) -> Vec<bool> {
    let mut right = Vec::new();
    let mut judge = |published: f64, simulated: Option<f64>| {
        if published.ln().abs() > DIFFER.ln() {
            right.push(simulated.is_some_and(|simulated| simulated.ln() * published.ln() > 0.0));
        }
    };
    for (_, line) in members.iter().filter(|(figure, _)| figure.over.is_some()) {
        judge(line.row.figure, line.simulated);
    }
    for (&(figure, line), &(other, theirs)) in members.iter().tuple_combinations() {
        let differ = figure.case.lock.name != other.case.lock.name;
        if let Some(better) = figure.unit.better()
            && differ
            && series(&figure.row) == series(&other.row)
        {
            let ratio = |a: f64, b: f64| (a / b).powf(better);
            let simulated = line.simulated.zip(theirs.simulated);
            judge(
                ratio(line.row.figure, theirs.row.figure),
                simulated.map(|(ours, theirs)| ratio(ours, theirs)),
            );
        }
    }
    right
}
