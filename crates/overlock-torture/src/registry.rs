//! The list of all that can be tortured. A lock of overlock-core's lists is here as soon as it is
//! in one of them.

mod list;
mod select;

use std::fmt::Write;
use std::sync::LazyLock;

use overlock_core::facts::{Facts, Waiting};
use overlock_core::raw::CreateError;

use crate::subject::Subject;

pub use select::{NoSuchLock, select};

/// Something that can be tortured.
#[derive(Debug)]
pub struct Entry {
    /// Its name in options and tables.
    pub name: &'static str,
    /// Its row: the promises of its documentation.
    pub facts: Facts,
    /// Creates some, for so many threads.
    pub(crate) make: Make,
}

/// See [`Entry::make`].
pub(crate) type Make = fn(usize) -> Result<Box<dyn Subject>, CreateError>;

/// All of them, in the order of the tables.
pub fn all() -> &'static [Entry] {
    static ALL: LazyLock<Vec<Entry>> = LazyLock::new(list::all);
    &ALL
}

/// The faulty locks, and the names of their flaws.
#[cfg(feature = "inject")]
pub fn flaws() -> &'static [(&'static str, Entry)] {
    static FLAWS: LazyLock<Vec<(&'static str, Entry)>> = LazyLock::new(list::flaws);
    &FLAWS
}

/// The list for people.
pub fn describe() -> String {
    let mut text = String::new();
    for entry in all() {
        let Facts { about, bound, .. } = entry.facts;
        let _ = writeln!(text, "{:<22} {about} ({bound})", entry.name);
    }
    text
}

/// Threads for each CPU, where nobody says how many.
const OVERCOMMIT: f64 = 8.0;

/// The same for locks whose waiters only spin. An owner without a CPU, or a next waiter without
/// one, keeps all others waiting for a time slice.
const SPINNING: f64 = 2.0;

impl Entry {
    /// How many threads torture it on so many CPUs, where nobody says how many; at least 2.
    pub fn threads(&self, cpus: f64) -> usize {
        let times = match self.facts.waiting {
            Waiting::Spins => SPINNING,
            Waiting::SpinsLong | Waiting::Sleeps => OVERCOMMIT,
        };
        let threads = ((times * cpus).round() as usize).max(2);
        threads.min(self.facts.most_threads.unwrap_or(usize::MAX))
    }
}
