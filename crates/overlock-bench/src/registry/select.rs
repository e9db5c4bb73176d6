//! From names to locks.

use std::fmt;

use super::{Entry, Family, Kind};

/// A word that names no lock of the family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchLock {
    word: String,
    family: Family,
}

impl fmt::Display for NoSuchLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { word, family } = self;
        let others: Vec<&str> = Family::ALL
            .iter()
            .filter(|other| other.locks().iter().any(|entry| entry.is(word)))
            .flat_map(|other| other.workloads())
            .collect();
        if GROUPS.iter().any(|(name, _)| name == word) {
            write!(f, "'{word}' has no lock for {}", list(&family.workloads()))?;
        } else if others.is_empty() {
            write!(f, "unknown lock '{word}'")?;
        } else {
            let workloads = family.workloads();
            write!(
                f,
                "'{word}' is for {}, not for {}",
                list(&others),
                list(&workloads)
            )?;
        }
        write!(f, "; the locks are {}", names(*family).join(", "))
    }
}

impl std::error::Error for NoSuchLock {}

/// `a, b and c`
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// What the user may type: the words for groups, then the names.
pub fn names(family: Family) -> Vec<&'static str> {
    let groups = GROUPS.iter().map(|(word, _)| *word);
    groups
        .chain(family.locks().iter().map(|entry| entry.name))
        .collect()
}

/// A word for several locks.
type Group = (&'static str, fn(&Entry) -> bool);

pub(super) const GROUPS: &[Group] = &[
    ("all", |_| true),
    ("ours", |entry| entry.kind == Kind::Ours),
    ("peers", |entry| entry.kind == Kind::Peer),
    ("default", |entry| entry.default),
];

impl Entry {
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
    let locks = family.locks();
    let mut chosen = vec![false; locks.len()];
    for word in words {
        let group = GROUPS.iter().find(|(name, _)| *name == word);
        let mut known = false;
        for (entry, chosen) in locks.iter().zip(&mut chosen) {
            let named = entry.is(word) || group.is_some_and(|(_, belongs)| belongs(entry));
            known |= named;
            *chosen |= named;
        }
        if !known {
            return Err(NoSuchLock {
                word: word.to_owned(),
                family,
            });
        }
    }
    Ok(locks
        .iter()
        .zip(chosen)
        .filter_map(|(entry, chosen)| chosen.then_some(entry))
        .collect())
}
