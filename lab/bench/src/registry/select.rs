//! From names to locks.

use std::fmt;

use overlock_sim::spec::meant;

use super::{Entry, Family, GROUPS_OF_AN_ORIGIN, Listed, Origin, runs_in};
use crate::world::native::Native;
use crate::world::sim::Simulated;

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
        let all = names.join(", ");
        if GROUPS.contains(&&*word.to_lowercase()) {
            write!(
                f,
                "'{word}' has no lock for {workloads} that can be simulated"
            )?;
        } else if knows(family) {
            write!(f, "'{word}' {UNIT_TESTED}")?;
        } else {
            let others: Vec<&str> = Family::ALL
                .iter()
                .filter(|other| knows(other))
                .flat_map(|other| other.workloads())
                .collect();
            if others.is_empty() {
                let aliases = family
                    .locks()
                    .iter()
                    .flat_map(|entry| entry.aliases)
                    .copied();
                let names: Vec<&str> = names.iter().copied().chain(aliases).collect();
                let meant = meant(&word.to_lowercase(), &names);
                return write!(f, "unknown lock '{word}'{meant} locks are {all}");
            }
            write!(f, "'{word}' is for {}, not for {workloads}", list(&others))?;
        }
        write!(f, "; the locks are {all}")
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

/// The names that the user may type: the words for groups that have locks, then the names, of a
/// model that of its lock unless this is another one there.
pub fn names<W: Listed>(family: Family) -> Vec<&'static str> {
    let locks = || family.locks().iter().filter(|entry| runs_in::<W>(entry));
    let groups = GROUPS.iter().copied();
    let name = |entry: &'static Entry| match find::<W>(family, entry.plain()) {
        Some(found) if found == entry => entry.plain(),
        _ => entry.name,
    };
    groups
        .filter(|word| locks().any(|entry| in_group::<W>(word, entry)))
        .chain(locks().map(name))
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
        match self.name.strip_prefix(MODEL) {
            Some(name) => self.aliases.first().copied().unwrap_or(name),
            None => self.name,
        }
    }

    /// Whether a program can have it: it is no model, or that of a lock which a library has.
    pub fn is_at_hand(&self) -> bool {
        self.origin != Origin::Model || LIBRARIES.contains(&self.plain())
    }

    /// Whether the word is one of its names.
    fn is(&self, word: &str) -> bool {
        let names = [self.name, self.plain()].into_iter();
        let mut names = names.chain(self.aliases.iter().copied());
        names.any(|name| same(name, word))
    }
}

/// The beginning of a model's name.
const MODEL: &str = "model:";

/// The models of locks that a program in Rust or C can have, by their plain names.
const LIBRARIES: [&str; 5] = [
    "std",
    "glibc",
    "glibc-adaptive",
    "parking_lot-0.12",
    "parking_lot-0.13",
];

/// Whether two names are the same but for the case, and for `-` and `_`.
pub(super) fn same(a: &str, b: &str) -> bool {
    let plain = |name: &str| name.to_lowercase().replace(['-', ' '], "_");
    plain(a) == plain(b)
}

/// The lock of that name, or else the first that has it among its other names. So `std` is its
/// model where the lock itself does not run.
fn find<W: Listed>(family: Family, word: &str) -> Option<&'static Entry> {
    let locks = || family.locks().iter().filter(|entry| runs_in::<W>(entry));
    let named = locks().find(|entry| same(entry.name, word));
    named.or_else(|| locks().find(|entry| entry.is(word)))
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
    for word in words.into_iter().map(str::trim) {
        let found = find::<W>(family, word);
        let mut known = false;
        for (entry, chosen) in locks.iter().zip(&mut chosen) {
            let in_group = runs_in::<W>(entry) && in_group::<W>(&word.to_lowercase(), entry);
            if in_group || found == Some(entry) {
                known = true;
                *chosen = true;
            }
        }
        if !known {
            return Err(unknown::<W>(family, word));
        }
    }
    Ok(locks
        .iter()
        .zip(chosen)
        .filter_map(|(entry, chosen)| chosen.then_some(entry))
        .collect())
}

fn unknown<W: Listed>(family: Family, word: &str) -> NoSuchLock {
    NoSuchLock {
        word: word.to_owned(),
        family,
        names: names::<W>(family),
    }
}

/// The one lock of that name, if it runs on simulated machines.
///
/// # Errors
///
/// Says which names there are.
pub fn simulated(family: Family, name: &str) -> Result<&'static Entry, String> {
    let lock = find::<Simulated>(family, name.trim());
    lock.ok_or_else(|| unknown::<Simulated>(family, name).to_string())
}
