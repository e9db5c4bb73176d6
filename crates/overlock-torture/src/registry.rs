//! What can be tortured. A lock of overlock-core's lists is there as soon as it is in one of them;
//! what torture alone has to know of it is a line in the notes of `registry/list.rs`.

mod list;
mod select;

use std::fmt::Write;
use std::sync::LazyLock;

use overlock_core::raw::CreateError;

use crate::bound::{Bound, Waiting};
use crate::subject::Subject;

pub use select::{NoSuchLock, select};

/// Something that can be tortured.
#[derive(Debug)]
pub struct Entry {
    /// What the user types and the tables say.
    pub name: &'static str,
    /// One line on what it is.
    pub about: &'static str,
    /// What it promises to those that wait.
    pub bound: Bound,
    /// How they wait.
    pub waiting: Waiting,
    /// The most threads that may use it.
    pub most_threads: Option<usize>,
    /// New ones, for so many threads.
    pub(crate) make: fn(usize) -> Result<Box<dyn Subject>, CreateError>,
}

/// All of them, in the order of the tables.
pub fn all() -> &'static [Entry] {
    static ALL: LazyLock<Vec<Entry>> = LazyLock::new(list::all);
    &ALL
}

/// The locks that are broken on purpose, and the names of their flaws.
#[cfg(feature = "inject")]
pub fn flaws() -> &'static [(&'static str, Entry)] {
    static FLAWS: LazyLock<Vec<(&'static str, Entry)>> = LazyLock::new(list::flaws);
    &FLAWS
}

/// The list for people.
pub fn describe() -> String {
    let mut text = String::new();
    for entry in all() {
        let bound = entry.bound.describe();
        let _ = writeln!(text, "{:<22} {} ({bound})", entry.name, entry.about);
    }
    text
}

/// Threads for each CPU, where nobody says how many.
const OVERCOMMIT: f64 = 8.0;

/// The same for locks whose waiters only spin: whoever holds one, or is next, and has no CPU keeps
/// all others waiting for a slice of the scheduler's.
const SPINNING: f64 = 2.0;

impl Entry {
    /// How many threads torture it on so many CPUs, where nobody says how many; at least 2.
    pub fn threads(&self, cpus: f64) -> usize {
        let times = match self.waiting {
            Waiting::Spins => SPINNING,
            Waiting::SpinsLong | Waiting::Sleeps => OVERCOMMIT,
        };
        let threads = ((times * cpus).round() as usize).max(2);
        threads.min(self.most_threads.unwrap_or(usize::MAX))
    }
}
