//! Which lock for which class of machines: the same locks with the same loads on all of them.
//!
//! A range is what constants a tenth smaller and larger make of a figure, widened by the error of
//! the score. Locks whose ranges meet are level: nothing is known about their order.

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::iter::once;
use std::sync::Arc;

use itertools::{Itertools, iproduct};
use overlock_bench::error::Error;
use overlock_bench::registry::Entry;
use overlock_report::numbers::rate;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use serde::Serialize;

use crate::advise::{self, Advice, Question, Standing};
use crate::case::{Case, Options};
use crate::score::Class;
use crate::score::text::{Form, rows};
use crate::vary::Range;

/// The classes of machines: a name, what it is, and the machine that stands for it.
pub const PLACES: [(&str, &str, &str); 7] = [
    (
        "8",
        "one socket, 8 CPUs",
        "xeon-8480:sockets=1:cores_per_socket=4",
    ),
    (
        "16",
        "one socket, 16 CPUs",
        "xeon-8480:sockets=1:cores_per_socket=8",
    ),
    (
        "64",
        "one socket, 64 CPUs",
        "xeon-8480:sockets=1:cores_per_socket=32",
    ),
    (
        "128",
        "one socket, 128 CPUs",
        "xeon-8480:sockets=1:cores_per_socket=64",
    ),
    (
        "two-sockets",
        "two sockets, 128 CPUs",
        "xeon-8480:cores_per_socket=32",
    ),
    (
        "epyc",
        "EPYC, 128 CPUs in 8 complexes",
        "epyc-9654:sockets=1:clusters=8:cores_per_socket=64",
    ),
    ("graviton", "Graviton, 64 CPUs", "graviton3"),
];

/// The sections: a name, what it is, and the workload.
pub const SECTIONS: [(&str, &str, &str); 3] = [
    ("short", "200 ns, 2 us between", "micro:cs=200ns:ncs=2us"),
    ("medium", "2 us, 20 us between", "micro:cs=2us:ncs=20us"),
    ("long", "20 us, 200 us between", "micro:cs=20us:ncs=200us"),
];

/// Threads for each CPU.
const LEVELS: [f64; 4] = [0.5, 1.0, 2.0, 4.0];

/// The locks, by the names that people use: ours, a queue of spinners, and what programs have.
pub const LOCKS: [&str; 6] = [
    "overlock",
    "hybrid_short",
    "mcs",
    "std",
    "glibc",
    "parking_lot-0.13",
];

/// So many of the best locks of a cell are simulated with changed constants.
const VARIED: usize = 1;

/// The picture: a class, a section, and at most five locks.
const DRAWN: (&str, &str, [&str; 5]) = (
    "64",
    "medium",
    ["overlock", "hybrid_short", "mcs", "std", "glibc"],
);

/// A machine with a load, and all locks.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The class of the machine, by its name in [`PLACES`].
    pub place: &'static str,
    /// The section, by its name in [`SECTIONS`].
    pub section: &'static str,
    /// Threads for each CPU.
    pub level: f64,
    /// The error of the score in the class of this load, by which ranges are widened.
    pub error: f64,
    #[serde(flatten)]
    pub advice: Advice,
}

impl Cell {
    /// The range of a lock's operations, with the error of the score.
    fn range(&self, standing: &Standing) -> Range {
        standing.varied().widened(self.error)
    }

    /// The locks whose ranges meet that of the best one, and the other ones: worse than the best
    /// one, whatever the error.
    fn split(&self) -> (Vec<&Standing>, Vec<&Standing>) {
        self.advice.split(self.error)
    }
}

/// Simulates `locks` in the cells of the classes of these names; of all classes if there are none.
///
/// # Panics
///
/// If a constant of this module is no machine or workload.
pub fn cells(
    places: &[String],
    locks: &[&'static Entry],
    options: &Options,
    done: impl FnMut(usize, usize, &Case) + Send,
) -> Result<Vec<Cell>, Error> {
    let wanted = |place: &str| places.is_empty() || places.iter().any(|wanted| wanted == place);
    let places = PLACES.iter().filter(|(place, _, _)| wanted(place));
    let all = iproduct!(places, LEVELS, SECTIONS).collect_vec();
    let questions = all
        .iter()
        .map(|((_, _, machine), level, (_, _, workload))| {
            let machine = Machine::named(machine).expect("a machine");
            Question {
                threads: (level * machine.cpus() as f64) as usize,
                machine: Arc::new(machine),
                host: Arc::new(Host::threads()),
                workload: workload.parse().expect("a workload"),
                locks: locks.to_vec(),
            }
        });
    let answers = advise::answer(&questions.collect_vec(), VARIED, options, done)?;
    let cell = |((&(place, _, _), level, (section, _, _)), advice): (_, Advice)| Cell {
        place,
        section,
        level,
        error: advice.class.known().map_or(0.0, |known| known.error),
        advice,
    };
    Ok(all.into_iter().zip(answers).map(cell).collect())
}

/// Draws the picture, if its class is among the cells.
pub fn draw(out: impl Write, cells: &[Cell]) -> io::Result<()> {
    let (place, section, locks) = DRAWN;
    let mine = |cell: &&Cell| (cell.place, cell.section) == (place, section);
    let advices = cells.iter().filter(mine).map(|cell| &cell.advice);
    let (machine, times) = (about(&PLACES, place), about(&SECTIONS, section));
    let title = format!("Simulated: {machine}, {section} sections ({times})");
    advise::draw(out, &title, &locks, &advices.collect_vec())
}

/// The description of a name of [`PLACES`] or [`SECTIONS`].
fn about(all: &[(&str, &'static str, &str)], name: &str) -> &'static str {
    let entry = all.iter().find(|entry| entry.0 == name);
    entry.map_or("", |entry| entry.1)
}

/// The table, how often each lock is behind, what a range is, and which locks failed.
pub fn describe(form: Form, cells: &[Cell]) -> String {
    let sections = SECTIONS.map(|(section, about, _)| format!("{section}: {about}"));
    let titles = ["machine", "threads"].into_iter();
    let titles = titles.chain(sections.iter().map(String::as_str));
    let lines = cells.chunk_by(|a, b| (a.place, a.level) == (b.place, b.level));
    let lines = lines.map(|line| {
        let threads = format!("{} ({}x)", line[0].advice.threads, line[0].level);
        let begin = [about(&PLACES, line[0].place).to_owned(), threads];
        begin.into_iter().chain(line.iter().map(best))
    });
    let table = rows(form, &titles.collect_vec(), |_| false, lines);
    let mut text = format!("{table}\n{}\n", behind(form, cells));
    text.extend(Class::ALL.into_iter().filter_map(scored));
    text.extend(cells.iter().flat_map(failed));
    text
}

/// The locks of a cell that failed, and how.
fn failed(cell: &Cell) -> impl Iterator<Item = String> {
    let (place, section, threads) = (cell.place, cell.section, cell.advice.threads);
    let failed = cell.advice.failed.iter();
    failed.map(move |(lock, why)| {
        format!("- {lock} failed ({place}, {threads} threads, {section}): {why}\n")
    })
}

fn scored(class: Class) -> Option<String> {
    let error = class.known()?.error;
    Some(format!("- Error of the score, {class}: {error:.2}.\n"))
}

/// The best locks of a cell, the range of the best one, and what else to know of them. A lock that
/// failed is not among `any`.
fn best(cell: &Cell) -> String {
    let Some(best) = cell.advice.locks.first() else {
        return "none".to_owned();
    };
    let (level, behind) = cell.split();
    let named = |locks: &[&Standing]| locks.iter().map(|lock| lock.lock).join(", ");
    let failed = cell.advice.failed.iter().map(|(lock, _)| *lock);
    let others = behind.iter().map(|lock| lock.lock).chain(failed);
    let others = others.collect_vec();
    let locks = match others.len() {
        0 if level.len() > 1 => "any".to_owned(),
        count if count > 0 && level.len() > count => format!("any but {}", others.join(", ")),
        _ => named(&level),
    };
    let Range { low, high } = cell.range(best);
    let mut text = format!("{locks}: {} to {}", rate(low), rate(high));
    let mut told = |what: &str, is_so: fn(&Standing) -> bool| {
        let locks = level.iter().copied().filter(|lock| is_so(lock));
        let locks = locks.collect_vec();
        if !locks.is_empty() {
            text += &format!("; {what}: {}", named(&locks));
        }
    };
    told("near a change of regime", |lock| {
        lock.varied().is_regime_change()
    });
    told("not settled", |lock| lock.measured.is_unsettled());
    text
}

/// In how many cells each lock is behind, by the threads for each CPU.
fn behind(form: Form, cells: &[Cell]) -> String {
    let levels = LEVELS.map(|level| format!("{level}x"));
    let titles = once("behind, with threads for each CPU of");
    let titles = titles.chain(levels.iter().map(String::as_str));
    let has = |locks: &[&Standing], name: &str| locks.iter().any(|lock| lock.lock == name);
    let names = cells.iter().flat_map(|cell| &cell.advice.locks);
    let names = names.map(|lock| lock.lock).unique().sorted();
    let lines = names.map(|name| {
        let counts = LEVELS.map(|level| {
            let mine = cells
                .iter()
                .filter(|cell| cell.level.total_cmp(&level).is_eq());
            let splits = mine.map(Cell::split).collect_vec();
            let behind = splits
                .iter()
                .filter(|(_, behind)| has(behind, name))
                .count();
            let level = splits.iter().filter(|(level, _)| has(level, name)).count();
            format!("{behind} of {}", behind + level)
        });
        once(name.to_owned()).chain(counts)
    });
    rows(form, &titles.collect_vec(), |column| column > 0, lines)
}
