//! The figures of a program's own locks.

use std::fmt;
use std::time::Duration;
use std::vec::Vec;

use overlock_shared::{ObjectKind, Path};

use crate::figures::{self, Class};

/// How a lock is acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A mutex, or another lock for one thread at a time.
    Mutex,
    /// A reader-writer lock, by readers.
    Read,
    /// A reader-writer lock, by writers and upgradable readers.
    Write,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Mutex => "mutex",
            Kind::Read => "read",
            Kind::Write => "write",
        })
    }
}

/// Figures of the locks of one name and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// The name, or the line on which the locks were made.
    pub name: String,
    /// How they were acquired.
    pub kind: Kind,
    /// All acquisitions.
    pub acquisitions: u64,
    /// Waits: acquisitions that found a lock held, and those that gave up.
    pub waits: u64,
    /// Waits that ended without the lock.
    pub gave_up: u64,
    /// The sum of all waits.
    pub waited: Duration,
    /// Half of the waits were no longer. This and the other percentiles are at most an eighth too
    /// long.
    pub p50: Duration,
    /// 90 % of the waits were no longer.
    pub p90: Duration,
    /// 99 % of the waits were no longer.
    pub p99: Duration,
    /// 99.9 % of the waits were no longer.
    pub p999: Duration,
    /// The longest wait.
    pub longest_wait: Duration,
    /// Acquisitions of which it was measured how long they held the lock: a sample, and those after
    /// waits. None by readers.
    pub holds: u64,
    /// The sum of their times.
    pub held: Duration,
    /// The longest of them.
    pub longest_hold: Duration,
}

/// Figures of all locks: see [`report`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Those that were waited for longest first.
    pub locks: Vec<Figures>,
    /// Locks that are not counted, for there are too many names.
    pub lost: u64,
}

/// The figures so far; none where counting was never on.
///
/// A child of fork() begins with the figures of its parent.
pub fn report() -> Report {
    let mut locks: Vec<Figures> = figures::all().filter_map(Figures::of).collect();
    locks.sort_by(|a, b| {
        let order = |figures: &Figures| (figures.waited, figures.acquisitions);
        let names = || (&a.name, a.kind).cmp(&(&b.name, b.kind));
        order(b).cmp(&order(a)).then_with(names)
    });
    Report {
        locks,
        lost: figures::lost(),
    }
}

/// Sets all figures to 0. Events that happen meanwhile may be counted or lost.
pub fn reset() {
    for class in figures::all() {
        class.reset();
    }
}

impl Figures {
    fn of(class: &Class) -> Option<Self> {
        let kind = match class.kind()? {
            ObjectKind::Read => Kind::Read,
            ObjectKind::Write => Kind::Write,
            _ => Kind::Mutex,
        };
        let (waits, holds) = (class.waits(), class.holds());
        let quantile = |permille| Duration::from_nanos(class.quantile_ns(permille));
        Some(Figures {
            name: String::from_utf8_lossy(class.text(&mut [0; Path::MAX])).into_owned(),
            kind,
            acquisitions: class.acquisitions(),
            waits: waits.count,
            gave_up: class.gave_up(),
            waited: Duration::from_nanos(waits.ns),
            p50: quantile(500),
            p90: quantile(900),
            p99: quantile(990),
            p999: quantile(999),
            longest_wait: Duration::from_nanos(waits.max_ns),
            holds: holds.count,
            held: Duration::from_nanos(holds.ns),
            longest_hold: Duration::from_nanos(holds.max_ns),
        })
    }
}

/// A table, with a line for each name and kind.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.locks.is_empty() {
            return writeln!(f, "nothing was counted");
        }
        let widths = self.locks.iter().map(|lock| lock.name.chars().count());
        let width = widths.max().unwrap_or_default().max(4);
        writeln!(
            f,
            "{:width$}  kind   acquisitions     waits  waited      p50       p90       p99       \
             p99.9     longest   held avg",
            "lock",
        )?;
        for lock in &self.locks {
            write!(
                f,
                "{:width$}  {:5} {:>13} {:>9}",
                lock.name, lock.kind, lock.acquisitions, lock.waits
            )?;
            let mean = (lock.held.as_nanos() as u64).checked_div(lock.holds);
            let times = [
                lock.waited,
                lock.p50,
                lock.p90,
                lock.p99,
                lock.p999,
                lock.longest_wait,
                Duration::from_nanos(mean.unwrap_or_default()),
            ];
            for time in times {
                write!(f, "  {:<8}", format!("{time:.1?}"))?;
            }
            writeln!(f)?;
        }
        match self.lost {
            0 => Ok(()),
            lost => writeln!(f, "{lost} locks are not counted: there are too many names"),
        }
    }
}
