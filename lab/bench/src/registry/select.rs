//! From names to locks.

use std::fmt;

use overlock_sim::spec::meant;

use super::{Entry, Family, GROUPS_OF_AN_ORIGIN, Listed, runs_in};
use crate::world::native::Native;

/// A word that names no lock of the family, or none that runs in the world that it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchLock {
    word: String,
    family: Family,
    /// The names that exist.
    names: Vec<&'static str>,
}

impl fmt::Display for NoSuchLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            word,
            family,
            names,
        } = self;
        let has = |family: &Family| family.locks().iter().any(|entry| same(entry.name, word));
        // An alias of one lock may be the name of another, which is meant then.
        let is_a_name = Family::ALL.iter().any(has);
        let knows = |family: &Family| match is_a_name {
            true => has(family),
            false => family.locks().iter().any(|entry| entry.is(word)),
        };
        let workloads = list(&family.workloads());
        if names.is_empty() {
            return write!(f, "{workloads} {UNIT_TESTED}");
        }
        if GROUPS.contains(&word.as_str()) {
            write!(
                f,
                "'{word}' has no lock for {workloads} that can be simulated"
            )?;
        } else if knows(family) {
            write!(f, "'{word}' {UNIT_TESTED}")?;
            let model = names.iter().find(|name| **name == format!("model:{word}"));
            model.map_or(Ok(()), |model| write!(f, "; its model is '{model}'"))?;
        } else {
            let others: Vec<&str> = Family::ALL
                .iter()
                .filter(|other| knows(other))
                .flat_map(|other| other.workloads())
                .collect();
            if others.is_empty() {
                write!(f, "unknown lock '{word}'")?;
            } else {
                write!(f, "'{word}' is for {}, not for {workloads}", list(&others))?;
            }
        }
        write!(f, "; the locks are {}", names.join(", "))
    }
}

/// Why a lock that is known does not run in some world.
const UNIT_TESTED: &str = "needs the real machine: locks that are written over a platform can be simulated, the types above them and peers cannot";

impl std::error::Error for NoSuchLock {}

/// `a, b and c`
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The names that the user may type: the words for groups that have locks, then the names.
fn names<W: Listed>(family: Family) -> Vec<&'static str> {
    let locks = || family.locks().iter().filter(|entry| runs_in::<W>(entry));
    let groups = GROUPS.iter().copied();
    groups
        .filter(|word| locks().any(|entry| in_group::<W>(word, entry)))
        .chain(locks().map(|entry| entry.name))
        .collect()
}

/// The words for several locks.
pub(super) const GROUPS: &[&str] = &["all", "ours", "peers", "models", "added", "default"];

fn in_group<W: Listed>(word: &str, entry: &Entry) -> bool {
    match word {
        "all" => true,
        "default" => W::takes_by_default(entry),
        _ => GROUPS_OF_AN_ORIGIN.contains(&(entry.origin, word)),
    }
}

impl Entry {
    /// The name that people use for it: that of a peer for its model.
    pub fn plain(&self) -> &'static str {
        self.name.strip_prefix("model:").unwrap_or(self.name)
    }

    /// Whether the word is one of its names.
    fn is(&self, word: &str) -> bool {
        same(self.name, word) || self.aliases.iter().any(|name| same(name, word))
    }
}

/// Whether two names are the same but for `-` and `_`.
pub(super) fn same(a: &str, b: &str) -> bool {
    let plain = |name: &'_ str| name.replace('-', "_");
    plain(a) == plain(b)
}

/// The locks of the family that `words` name, each once, in the order of the list.
///
/// # Errors
///
/// [`NoSuchLock`] for the first word that names nothing.
pub fn select<'a>(
    family: Family,
    words: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<&'static Entry>, NoSuchLock> {
    select_in::<Native>(family, words)
}

/// The same of the locks that run in a world. A word for several locks names those of them that do.
///
/// # Errors
///
/// [`NoSuchLock`] for the first word that names nothing.
pub fn select_in<'a, W: Listed>(
    family: Family,
    words: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<&'static Entry>, NoSuchLock> {
    let locks = family.locks();
    let mut chosen = vec![false; locks.len()];
    for word in words {
        let mut known = false;
        for (entry, chosen) in locks.iter().zip(&mut chosen) {
            let named = entry.is(word) || in_group::<W>(word, entry);
            if named && runs_in::<W>(entry) {
                known = true;
                *chosen = true;
            }
        }
        if !known {
            return Err(NoSuchLock {
                word: word.to_owned(),
                family,
                names: names::<W>(family),
            });
        }
    }
    Ok(locks
        .iter()
        .zip(chosen)
        .filter_map(|(entry, chosen)| chosen.then_some(entry))
        .collect())
}

/// Other names of models.
const MODELS: [(&str, &str); 3] = [
    ("pthread_mutex", "glibc"),
    ("pthread", "glibc"),
    ("parking_lot-0.12", "parking_lot"),
];

/// The lock by the name that people use, if it runs on simulated machines: the name of a peer is
/// that of its model, and `pthread_mutex` is glibc's.
///
/// # Errors
///
/// Says which names there are.
pub fn simulated(family: Family, name: &str) -> Result<&'static Entry, String> {
    let locks = || {
        family
            .locks()
            .iter()
            .filter(|lock| lock.simulated.is_some())
    };
    let dashed = name.trim().replace(' ', "-");
    let model = MODELS.iter().find(|(other, _)| *other == dashed);
    let wanted = model.map_or(&*dashed, |(_, model)| model);
    let lock = locks().find(|lock| lock.name == wanted || lock.plain() == wanted);
    lock.ok_or_else(|| {
        let names: Vec<&str> = locks().map(Entry::plain).collect();
        let others = MODELS.map(|(other, _)| other);
        let meant = meant(name, &[&names[..], &others].concat());
        let names = names.join(", ");
        format!("there is no lock '{name}' to simulate{meant} locks are {names}")
    })
}
