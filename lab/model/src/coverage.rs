//! How often each site of the locks' sources was reached: see [`sources`](crate::sources).

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::panic::Location;

use serde::Serialize;

/// The outcome of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was reached.
    Reached,
    /// A word was changed.
    Done,
    /// An exchange was refused.
    Refused,
}

/// A place, and how often it was reached.
type Times = (&'static Location<'static>, u64);

thread_local! {
    /// By the place's address. Several addresses may be the same place.
    static COUNTS: RefCell<HashMap<(usize, Outcome), Times>> = RefCell::default();
}

/// Counts an access on this operating-system thread.
pub(crate) fn count(place: &'static Location<'static>, outcome: Outcome) {
    let address = std::ptr::from_ref(place).addr();
    COUNTS.with_borrow_mut(|counts| {
        counts.entry((address, outcome)).or_insert((place, 0)).1 += 1;
    });
}

/// How often each place was reached, with each outcome: by file, line and column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<(&'static str, u32, u32, Outcome), u64>);

impl Coverage {
    /// Takes what was counted on this operating-system thread since the last call.
    pub fn take() -> Self {
        let mut all = Self::default();
        for ((_, outcome), (place, times)) in COUNTS.take() {
            let place = (place.file(), place.line(), place.column(), outcome);
            *all.0.entry(place).or_default() += times;
        }
        all
    }

    /// Adds another one's counts.
    pub fn add(&mut self, other: &Self) {
        for (place, times) in &other.0 {
            *self.0.entry(*place).or_default() += times;
        }
    }

    /// How often this place was reached with this outcome. `file` is the end of its path.
    pub fn times(&self, file: &str, line: u32, column: u32, outcome: Outcome) -> u64 {
        let here = self.0.iter().filter(|(place, _)| {
            (place.1, place.2, place.3) == (line, column, outcome) && place.0.ends_with(file)
        });
        here.map(|(_, times)| times).sum()
    }
}
