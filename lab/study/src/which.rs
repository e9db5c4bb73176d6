//! Which lock for which class of machines: the same locks with the same loads on all of them.
//!
//! A range is what constants a tenth smaller and larger make of a figure, widened by the error of
//! the score. Locks whose ranges meet are level: nothing is known about their order.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
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

use crate::case::{Case, Options};
use crate::curves::{self, Curve, Rate};
use crate::rank::{Place, Question, rank};
use crate::score::text::{Form, rows};
use crate::score::{Class, known};
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
pub const LEVELS: [f64; 4] = [0.5, 1.0, 2.0, 4.0];

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

/// A lock with a load on a machine.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    pub lock: String,
    pub ops_per_sec: f64,
    /// Its range with constants a tenth smaller and larger, of the best; the figure of the others.
    pub varied: Range,
    /// That range, widened by the error of the score.
    pub range: Range,
    /// Whether longer simulations would bring the same, where that is known.
    pub settled: Option<bool>,
}

/// A machine with a load, and all locks.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The class of the machine, by its name in [`PLACES`].
    pub place: &'static str,
    pub cpus: usize,
    /// The section, by its name in [`SECTIONS`].
    pub section: &'static str,
    /// Threads for each CPU.
    pub level: f64,
    pub threads: usize,
    /// The class of the score.
    pub class: Class,
    /// The locks, the best first.
    pub locks: Vec<Standing>,
    /// Locks that failed, and how.
    pub failed: Vec<(String, String)>,
}

impl Cell {
    /// The locks whose ranges meet that of the best one, and the other ones: worse than the best
    /// one, whatever the error.
    pub fn split(&self) -> (Vec<&Standing>, Vec<&Standing>) {
        let best = |lock: &Standing| self.locks[0].range.meets(lock.range);
        self.locks.iter().partition(|lock| best(lock))
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
    done: impl FnMut(usize, usize, &Case),
) -> Result<Vec<Cell>, Error> {
    let wanted = |place: &str| places.is_empty() || places.iter().any(|wanted| wanted == place);
    let places = PLACES.iter().filter(|(place, _, _)| wanted(place));
    let (mut cells, questions): (Vec<Cell>, Vec<Question>) = iproduct!(places, LEVELS, SECTIONS)
        .map(|((place, _, machine), level, (section, _, workload))| {
            let machine = Machine::named(machine).expect("a machine");
            let cpus = machine.cpus();
            let threads = (level * cpus as f64) as usize;
            let cell = Cell {
                place,
                cpus,
                section,
                level,
                threads,
                class: Class::of(machine.sockets, cpus, threads),
                locks: Vec::new(),
                failed: Vec::new(),
            };
            let question = Question {
                machine: Arc::new(machine),
                host: Arc::new(Host::threads()),
                workload: workload.parse().expect("a workload"),
                threads,
                locks: locks.to_vec(),
            };
            (cell, question)
        })
        .unzip();
    let rankings = rank(&questions, VARIED, options, done)?;
    for (cell, ranking) in cells.iter_mut().zip(rankings) {
        let error = known::of(cell.class).map_or(0.0, |known| known.error);
        let standing = |place| standing(place, error);
        cell.locks = ranking.places.iter().filter_map(standing).collect();
        cell.failed = ranking.failed;
    }
    Ok(cells)
}

fn standing(place: &Place, error: f64) -> Option<Standing> {
    let ops_per_sec = place.measured.ops_per_sec;
    // A lock that fails with other constants may make anything down to nothing.
    let changed = place.changed.iter().map(|outcome| outcome.measured());
    let changed = changed.map(|measured| measured.map_or(0.0, |m| m.ops_per_sec));
    let varied = Range::of(once(ops_per_sec).chain(changed))?;
    Some(Standing {
        lock: place.name().to_owned(),
        ops_per_sec,
        varied,
        range: varied.widened(error),
        settled: place.settled(),
    })
}

/// Draws the picture, if its class is among the cells.
pub fn draw(out: impl Write, cells: &[Cell]) -> io::Result<()> {
    let (place, section, locks) = DRAWN;
    let mine = cells.iter();
    let mine = mine.filter(|cell| (cell.place, cell.section) == (place, section));
    let curve = |name: &str| {
        let points = mine.clone().filter_map(|cell| {
            let lock = cell.locks.iter().find(|lock| lock.lock == name)?;
            Rate::new(cell.threads, lock.ops_per_sec, lock.settled)
        });
        Curve {
            lock: name.to_owned(),
            points: points.collect(),
        }
    };
    let (machine, times) = (about(&PLACES, place), about(&SECTIONS, section));
    let title = format!("Simulated: {machine}, {section} sections ({times})");
    let cpus = mine.clone().next().map_or(1, |cell| cell.cpus);
    curves::write(out, &title, cpus, &locks.map(curve))
}

/// The description of a name of [`PLACES`] or [`SECTIONS`].
fn about(all: &[(&str, &'static str, &str)], name: &str) -> &'static str {
    let entry = all.iter().find(|entry| entry.0 == name);
    entry.map_or("", |entry| entry.1)
}

/// The table, how often each lock is behind, and what a range is.
pub fn describe(form: Form, cells: &[Cell]) -> String {
    let sections = SECTIONS.map(|(section, about, _)| format!("{section}: {about}"));
    let titles = ["machine", "threads"].into_iter();
    let titles = titles.chain(sections.iter().map(String::as_str));
    let lines = cells.chunk_by(|a, b| (a.place, a.threads) == (b.place, b.threads));
    let lines = lines.map(|line| {
        let threads = format!("{} ({}x)", line[0].threads, line[0].level);
        let begin = [about(&PLACES, line[0].place).to_owned(), threads];
        begin.into_iter().chain(line.iter().map(best))
    });
    let table = rows(form, &titles.collect_vec(), |_| false, lines);
    let mut text = format!("{table}\n{}\n", behind(form, cells));
    let known = Class::ALL.map(|class| known::of(class).map(|known| scored(class, known.error)));
    text.extend(known.into_iter().flatten());
    for cell in cells {
        for (lock, why) in &cell.failed {
            let (place, threads, section) = (cell.place, cell.threads, cell.section);
            let _ = writeln!(
                text,
                "{lock} failed ({place}, {threads} threads, {section}): {why}"
            );
        }
    }
    text
}

fn scored(class: Class, error: f64) -> String {
    format!("- Error of the score, {class}: {error:.2}.\n")
}

/// The best locks of a cell, the range of the best one, and what else to know of them.
fn best(cell: &Cell) -> String {
    let Some(best) = cell.locks.first() else {
        return "none".to_owned();
    };
    let (level, behind) = cell.split();
    let named = |locks: &[&Standing]| locks.iter().map(|lock| &lock.lock).join(", ");
    let locks = match behind.len() {
        0 if level.len() > 1 => "any".to_owned(),
        count if level.len() > count => format!("any but {}", named(&behind)),
        _ => named(&level),
    };
    let mut text = format!(
        "{locks}: {} to {}",
        rate(best.range.low),
        rate(best.range.high)
    );
    let mut told = |what: &str, is_so: fn(&Standing) -> bool| {
        let locks = level
            .iter()
            .copied()
            .filter(|lock| is_so(lock))
            .collect_vec();
        if !locks.is_empty() {
            text += &format!("; {what}: {}", named(&locks));
        }
    };
    told("near a change of regime", |lock| {
        lock.varied.is_regime_change()
    });
    told("not settled", |lock| lock.settled == Some(false));
    text
}

/// In how many cells each lock is behind, by the threads for each CPU.
fn behind(form: Form, cells: &[Cell]) -> String {
    let levels = LEVELS.map(|level| format!("{level}x"));
    let titles = once("behind, with threads for each CPU of");
    let titles = titles.chain(levels.iter().map(String::as_str));
    let count = |name: &str, level: f64| {
        let mine = cells
            .iter()
            .filter(|cell| (cell.level - level).abs() < 1e-9);
        let mine = mine.filter(|cell| cell.locks.iter().any(|lock| lock.lock == name));
        let is_behind = |cell: &&Cell| cell.split().1.iter().any(|lock| lock.lock == name);
        format!(
            "{} of {}",
            mine.clone().filter(is_behind).count(),
            mine.count()
        )
    };
    let locks = cells.iter().flat_map(|cell| &cell.locks);
    let lines = locks.map(|lock| &lock.lock).unique().sorted().map(|name| {
        let counts = LEVELS.map(|level| count(name, level));
        once(name.clone()).chain(counts)
    });
    rows(form, &titles.collect_vec(), |column| column > 0, lines)
}
