//! The shapes of the grid: what threads do with a lock, and which numbers of threads make sense.

use std::fmt;
use std::time::Duration;

use crate::registry::Family;
use crate::workload::Workload;
use crate::workload::condvar::Pattern;
use crate::workload::grid::{Inside, Locks, Pause};

/// A row of the grid.
#[derive(Debug)]
pub struct Shape {
    /// Name on the command line and in the tables. Unique in its family.
    pub name: &'static str,
    /// One line on what it is.
    pub about: &'static str,
    /// The locks that it is for.
    pub family: Family,
    /// The numbers of threads that it is measured with.
    pub threads: &'static [usize],
    /// Whether the gap is shorter than a cache line takes to another CPU. One thread alone is the
    /// best that can be then, and a figure says little of programs.
    pub tight: bool,
    /// How many times the usual length a round takes.
    pub stretch: u32,
    /// Other load on the machine.
    pub setting: Setting,
    /// The load of the threads.
    pub load: Load,
}

/// Other load beside the threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting {
    /// Nothing.
    Alone,
    /// So many processes that want a CPU all the time.
    Hogs(usize),
    /// So many percent of one CPU for the whole process.
    Quota(f64),
}

/// The load of the threads.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// Sections of mutual exclusion.
    Exclusive {
        /// Nanoseconds in the section.
        critical: f64,
        /// Nanoseconds between two of them.
        between: f64,
        /// The holder's other actions.
        inside: Inside,
        /// Which lock an operation takes.
        locks: Locks,
        /// When threads sleep without a lock.
        pause: Option<Pause>,
    },
    /// One of the other workloads.
    Workload(Workload),
}

/// For ordinary shapes.
const USUAL: &[usize] = &[1, 2, 4, 8, 32, 64, 200];
/// For the shape that is nearest to what programs do.
const ALL: &[usize] = &[1, 2, 4, 8, 32, 64, 200, 500, 2000];
/// For a second one, so that many threads are not judged by one row alone.
const UP_TO_500: &[usize] = &[1, 2, 4, 8, 32, 64, 200, 500];
/// For shapes in which something strange happens.
const STRANGE: &[usize] = &[2, 8, 32, 64];
/// For shapes in which the scheduler decides.
const CROWDED: &[usize] = &[2, 8, 32];
/// For reader-writer locks.
const READERS: &[usize] = &[1, 2, 8, 32, 64];
/// For threads that each want the lock once in a while.
const MANY: &[usize] = &[500, 2000];

const fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

const fn sections(critical: f64, between: f64) -> Load {
    Load::Exclusive {
        critical,
        between,
        inside: Inside::Nothing,
        locks: Locks::One,
        pause: None,
    }
}

const fn among(critical: f64, between: f64, locks: Locks) -> Load {
    Load::Exclusive {
        critical,
        between,
        inside: Inside::Nothing,
        locks,
        pause: None,
    }
}

const fn held(critical: f64, between: f64, inside: Inside) -> Load {
    Load::Exclusive {
        critical,
        between,
        inside,
        locks: Locks::One,
        pause: None,
    }
}

const fn paused(critical: f64, between: f64, every: u64, least: u64, most: u64) -> Load {
    Load::Exclusive {
        critical,
        between,
        inside: Inside::Nothing,
        locks: Locks::One,
        pause: Some(Pause {
            every,
            least: micros(least),
            most: micros(most),
        }),
    }
}

const fn reads(percent: f64, cs: f64, ncs: f64) -> Load {
    Load::Workload(Workload::Rw {
        cs,
        ncs,
        reads: percent,
        records: 1,
    })
}

const fn waits(pattern: Pattern) -> Load {
    Load::Workload(Workload::Condvar { pattern })
}

const fn shape(
    family: Family,
    name: &'static str,
    threads: &'static [usize],
    load: Load,
    about: &'static str,
) -> Shape {
    Shape {
        name,
        about,
        family,
        threads,
        tight: false,
        stretch: 1,
        setting: Setting::Alone,
        load,
    }
}

const fn mutex(
    name: &'static str,
    threads: &'static [usize],
    load: Load,
    about: &'static str,
) -> Shape {
    shape(Family::Exclusive, name, threads, load, about)
}

const fn rwlock(name: &'static str, load: Load, about: &'static str) -> Shape {
    shape(Family::ReaderWriter, name, READERS, load, about)
}

const fn condvar(name: &'static str, load: Load, about: &'static str) -> Shape {
    shape(Family::Condvar, name, STRANGE, load, about)
}

impl Shape {
    const fn tight(self) -> Self {
        Self {
            tight: true,
            ..self
        }
    }

    /// In a setting whose chances even out over longer rounds only.
    const fn set_in(self, setting: Setting, stretch: u32) -> Self {
        Self {
            setting,
            stretch,
            ..self
        }
    }
}

/// All shapes, in the order of the tables.
#[rustfmt::skip]
pub static SHAPES: &[Shape] = &[
    mutex("0/0", USUAL, sections(0.0, 0.0), "an empty section, nothing between").tight(),
    mutex("20/80", USUAL, sections(20.0, 80.0), "20 ns in the section, 80 ns between").tight(),
    mutex("20/200", USUAL, sections(20.0, 200.0), "20 ns, 200 ns between"),
    mutex("65/330", ALL, sections(65.0, 330.0), "65 ns, 330 ns between"),
    mutex("100/100", USUAL, sections(100.0, 100.0), "100 ns, 100 ns between").tight(),
    mutex("100/450", USUAL, sections(100.0, 450.0), "100 ns, 450 ns between"),
    mutex("300/300", UP_TO_500, sections(300.0, 300.0), "300 ns, 300 ns between"),
    mutex("1000/5000", USUAL, sections(1e3, 5e3), "1 us, 5 us between"),
    mutex("5000/5000", USUAL, sections(5e3, 5e3), "5 us, 5 us between"),
    mutex("20000/20000", USUAL, sections(2e4, 2e4), "20 us, 20 us between"),
    mutex("bursts", STRANGE, paused(65.0, 330.0, 200, 100, 100), "200 operations of 65/330, then 100 us asleep"),
    mutex("yield", STRANGE, held(300.0, 300.0, Inside::Yield), "300/300, held across sched_yield"),
    mutex("sleep", STRANGE, held(300.0, 5e3, Inside::Sleep(micros(50))), "300/5000, held across a sleep of 50 us"),
    mutex("hot", STRANGE, among(100.0, 100.0, Locks::Hot), "100/100, one lock of all for 10 % of the operations, private ones for 90 %"),
    mutex("zipf", STRANGE, among(100.0, 100.0, Locks::Zipf), "100/100, 1,000 locks by Zipf's law"),
    mutex("two", STRANGE, among(100.0, 300.0, Locks::InTurn), "100/300, two locks in turn"),
    mutex("hogs", CROWDED, sections(100.0, 450.0), "100/450, beside two foreign processes that want a CPU each").set_in(Setting::Hogs(2), 2),
    mutex("quota", CROWDED, sections(100.0, 450.0), "100/450, with a CPU quota of 120 %").set_in(Setting::Quota(120.0), 4),
    mutex("now-and-then", MANY, paused(500.0, 0.0, 1, 10_000, 30_000), "500 ns, then 10 to 30 ms asleep"),

    rwlock("r50-50/100", reads(50.0, 50.0, 100.0), "50 % reads, 50 ns in the section, 100 ns between"),
    rwlock("r90-50/100", reads(90.0, 50.0, 100.0), "90 % reads, 50 ns, 100 ns between"),
    rwlock("r99-50/100", reads(99.0, 50.0, 100.0), "99 % reads, 50 ns, 100 ns between"),
    rwlock("r50-2000/2000", reads(50.0, 2e3, 2e3), "50 % reads, 2 us, 2 us between"),
    rwlock("r90-2000/2000", reads(90.0, 2e3, 2e3), "90 % reads, 2 us, 2 us between"),
    rwlock("r99-2000/2000", reads(99.0, 2e3, 2e3), "99 % reads, 2 us, 2 us between"),

    condvar("queue", waits(Pattern::Queue), "producers and consumers of a bounded queue"),
    condvar("broadcast", waits(Pattern::Broadcast), "one thread wakes all others, and waits until all have heard"),
    condvar("ping-pong", waits(Pattern::PingPong), "pairs that pass a turn to and fro"),
];

/// The cells of the short form: some of every kind, above all those where locks lose.
pub const SHORT: &[(Family, &str, &[usize])] = &[
    (Family::Exclusive, "20/80", &[8]),
    (Family::Exclusive, "20/200", &[2]),
    (Family::Exclusive, "65/330", &[1, 2, 8, 64]),
    (Family::Exclusive, "300/300", &[8, 200]),
    (Family::Exclusive, "1000/5000", &[32]),
    (Family::Exclusive, "bursts", &[32]),
    (Family::Exclusive, "yield", &[8]),
    (Family::Exclusive, "zipf", &[8]),
    (Family::Exclusive, "now-and-then", &[500]),
    (Family::ReaderWriter, "r90-50/100", &[2, 32]),
    (Family::ReaderWriter, "r50-2000/2000", &[8]),
    (Family::Condvar, "queue", &[8]),
    (Family::Condvar, "broadcast", &[8]),
    (Family::Condvar, "ping-pong", &[2]),
];

/// A shape of that name in one of these families.
pub fn find(families: &[Family], name: &str) -> Option<&'static Shape> {
    SHAPES
        .iter()
        .find(|shape| shape.name == name && families.contains(&shape.family))
}

/// The list for people.
pub fn describe() -> String {
    let mut text = String::new();
    for family in Family::ALL {
        text += &format!("{} ({}):\n", family.word(), family.title());
        for shape in SHAPES.iter().filter(|shape| shape.family == family) {
            text += &format!("  {shape}\n");
        }
    }
    text
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads: Vec<String> = self.threads.iter().map(ToString::to_string).collect();
        let threads = threads.join(", ");
        write!(f, "{:<14} {}; threads {threads}", self.name, self.about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_its_name() {
        for shape in SHAPES {
            let found = find(&[shape.family], shape.name).unwrap();
            assert!(std::ptr::eq(found, shape), "{} twice", shape.name);
            assert!(!shape.name.contains([',', ' ']), "{}", shape.name);
            assert!(shape.threads.is_sorted(), "{}", shape.name);
        }
    }

    #[test]
    fn the_short_form_is_a_part_of_the_grid() {
        for (family, name, threads) in SHORT {
            let shape = find(&[*family], name).expect(name);
            for count in *threads {
                assert!(shape.threads.contains(count), "{name}, {count} threads");
            }
        }
    }
}
