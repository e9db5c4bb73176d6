//! Which lock for which class of machines: the same locks with the same loads on all of them.
//!
//! A range is what constants a tenth smaller and larger make of a figure, widened by the error of
//! the score. Locks whose ranges meet are level: nothing is known about their order.

pub mod text;

use std::io::{self, Write};

use itertools::iproduct;
use overlock_bench::error::Error;
use overlock_bench::registry::Entry;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use serde::Serialize;

use crate::curves::{self, Curve, Rate};
use crate::rank::{Place, Question, rank};
use crate::score::{Case, Class, Options, known};
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
    /// The locks whose ranges meet that of the best one, the best one first.
    pub fn level(&self) -> impl Iterator<Item = &Standing> {
        self.locks.iter().filter(|lock| self.is_level(lock))
    }

    /// The other ones: worse than the best one, whatever the error.
    pub fn behind(&self) -> impl Iterator<Item = &Standing> {
        self.locks.iter().filter(|lock| !self.is_level(lock))
    }

    fn is_level(&self, lock: &Standing) -> bool {
        let best = self.locks.first();
        best.is_some_and(|best| best.range.meets(lock.range))
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
    let (mut cells, mut questions) = (Vec::new(), Vec::new());
    let wanted = |place: &str| places.is_empty() || places.iter().any(|wanted| wanted == place);
    let places = PLACES.iter().filter(|(place, _, _)| wanted(place));
    for ((place, _, machine), level, (section, _, workload)) in iproduct!(places, LEVELS, SECTIONS)
    {
        let machine = Machine::named(machine).expect("a machine");
        let cpus = machine.cpus();
        let threads = (level * cpus as f64) as usize;
        cells.push(Cell {
            place,
            cpus,
            section,
            level,
            threads,
            class: Class::of(machine.sockets, cpus, threads),
            locks: Vec::new(),
            failed: Vec::new(),
        });
        questions.push(Question {
            machine,
            host: Host::threads(),
            workload: workload.parse().expect("a workload"),
            threads,
            locks: locks.to_vec(),
        });
    }
    let rankings = rank(&questions, VARIED, options, done)?;
    for (cell, ranking) in cells.iter_mut().zip(rankings) {
        let error = known::of(cell.class).map_or(0.0, |known| known.error);
        let standing = |place: &Place| standing(place, error);
        cell.locks = ranking.places.iter().map(standing).collect();
        cell.failed = ranking.failed;
    }
    Ok(cells)
}

fn standing(place: &Place, error: f64) -> Standing {
    let ops_per_sec = place.measured.ops_per_sec;
    let changed = place.changed.iter();
    // A lock that fails with other constants may make anything down to nothing.
    let changed = changed.map(|outcome| outcome.as_ref().map_or(0.0, |m| m.ops_per_sec));
    let varied = changed.fold(Range::one(ops_per_sec), Range::with);
    Standing {
        lock: place.name(),
        ops_per_sec,
        varied,
        range: varied.widened(error),
        settled: place.measured.simulation.settled,
    }
}

/// Draws the picture, if its class is among the cells.
pub fn draw(out: impl Write, cells: &[Cell]) -> io::Result<()> {
    let (place, section, locks) = DRAWN;
    let mine = || {
        let cells = cells.iter();
        cells.filter(|cell| (cell.place, cell.section) == (place, section))
    };
    let curve = |name: &str| {
        let points = mine().filter_map(|cell| {
            let lock = cell.locks.iter().find(|lock| lock.lock == name)?;
            Rate::new(cell.threads, lock.ops_per_sec, lock.settled)
        });
        Curve {
            lock: name.to_owned(),
            points: points.collect(),
        }
    };
    let about = |all: &[(&str, &'static str, &str)], name: &str| {
        all.iter()
            .find(|entry| entry.0 == name)
            .map_or("", |entry| entry.1)
    };
    let title = format!(
        "Simulated: {}, {section} sections ({})",
        about(&PLACES, place),
        about(&SECTIONS, section)
    );
    let cpus = mine().next().map_or(1, |cell| cell.cpus);
    curves::write(out, &title, cpus, &locks.map(curve))
}

#[cfg(test)]
mod tests {
    use overlock_bench::registry::Family;
    use overlock_bench::workload::Workload;

    use super::*;
    use crate::{locks, vary};

    fn standing(lock: &str, low: f64, high: f64) -> Standing {
        Standing {
            lock: lock.to_owned(),
            ops_per_sec: high,
            varied: Range::one(high).with(low),
            range: Range::one(high).with(low),
            settled: Some(true),
        }
    }

    pub(super) fn cell(locks: &[(&str, f64, f64)]) -> Cell {
        let locks = locks.iter();
        Cell {
            place: "8",
            cpus: 8,
            section: "short",
            level: 2.0,
            threads: 16,
            class: Class::Overcommit,
            locks: locks
                .map(|&(lock, low, high)| standing(lock, low, high))
                .collect(),
            failed: Vec::new(),
        }
    }

    #[test]
    fn locks_are_level_with_the_best_where_their_ranges_meet() {
        let cell = cell(&[("a", 4.0, 9.0), ("b", 2.0, 5.0), ("c", 1.0, 3.0)]);
        let level: Vec<&str> = cell.level().map(|lock| lock.lock.as_str()).collect();
        assert_eq!(level, ["a", "b"]);
    }

    #[test]
    fn a_cell_has_all_locks_and_the_ranges_of_the_best() {
        let lock = |name| locks::named(Family::Exclusive, name).unwrap();
        let all = ["ticket", "unfair", "mcs"].map(lock);
        let options = Options::of(100);
        let mut count = 0;
        let cells = cells(&["8".to_owned()], &all, &options, |_, _, _| count += 1).unwrap();
        assert_eq!(cells.len(), LEVELS.len() * SECTIONS.len());
        assert_eq!(count, cells.len() * (3 + VARIED * vary::COUNT));
        for cell in &cells {
            assert_eq!((cell.locks.len(), cell.failed.len()), (3, 0));
            for (place, lock) in cell.locks.iter().enumerate() {
                let Range { low, high } = lock.varied;
                assert!((low..=high).contains(&lock.ops_per_sec), "{lock:?}");
                assert!(place < VARIED || low >= high, "{lock:?}");
                assert!(lock.range.low <= low && lock.range.high >= high, "{lock:?}");
            }
        }
    }

    #[test]
    fn all_classes_sections_and_locks_can_be_simulated() {
        for (place, _, machine) in PLACES {
            let machine = Machine::named(machine).unwrap();
            let cpus: Option<usize> = place.parse().ok();
            assert!(cpus.is_none_or(|cpus| cpus == machine.cpus()), "{place}");
        }
        for (section, _, workload) in SECTIONS {
            assert!(workload.parse::<Workload>().is_ok(), "{section}");
        }
        let (place, section, lines) = DRAWN;
        assert!(PLACES.iter().any(|entry| entry.0 == place));
        assert!(SECTIONS.iter().any(|entry| entry.0 == section));
        assert!(lines.iter().all(|lock| LOCKS.contains(lock)));
    }
}
