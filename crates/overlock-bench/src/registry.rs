//! The locks that can be measured: everything that is measured, tested or named goes by this list.

mod list;

use std::fmt;
use std::sync::LazyLock;

use crate::lock::Nothing;
use crate::workload::Rounds;
use crate::world::native::Native;

/// Where a lock comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of this project's.
    Ours,
    /// One that people use today.
    Peer,
    /// No lock, the limit.
    Limit,
}

impl Kind {
    /// The name for people of a lock of this kind: nobody should take the limit for a lock.
    pub fn title(self, name: &'static str) -> &'static str {
        match self {
            Self::Limit => "(no lock)",
            _ => name,
        }
    }
}

/// A lock that can be measured.
#[derive(Debug)]
pub struct Entry {
    /// What the user types and the tables say.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Where it comes from.
    pub kind: Kind,
    /// Whether a run that names no locks takes it.
    pub default: bool,
    /// One line on what it is.
    pub about: &'static str,
    /// The most threads that may use it at once.
    pub most_threads: Option<usize>,
    /// The workloads, compiled for it.
    pub rounds: Rounds<Native>,
}

/// All locks, in the order of the tables: ours, then the peers.
pub static LOCKS: LazyLock<Vec<Entry>> = LazyLock::new(list::all);

/// The limit: measured in every run, chosen by nobody.
pub static LIMIT: Entry = Entry {
    name: "none",
    aliases: &[],
    kind: Kind::Limit,
    default: false,
    about: "no lock at all: the limit",
    most_threads: None,
    rounds: Rounds::of::<Nothing>(),
};

/// The peers that a lock of ours has to beat: its `vs_best_peer` is the ratio to the best of them in
/// the same cell. For `parking_lot` that is the better of its two versions.
pub const RIVALS: &[&str] = &[
    "std",
    "parking_lot",
    "parking_lot-0.12",
    "glibc",
    "glibc-adaptive",
];

/// The list for people: names, what they are, and which ones a run takes that names none.
pub fn describe() -> String {
    let mut text = String::new();
    for (kind, title) in [(Kind::Ours, "ours"), (Kind::Peer, "peers")] {
        let locks: Vec<&Entry> = LOCKS.iter().filter(|entry| entry.kind == kind).collect();
        if locks.is_empty() {
            continue;
        }
        text += &format!("{title}:\n");
        for entry in locks {
            let mark = if entry.default { '*' } else { ' ' };
            let most = entry
                .most_threads
                .map(|most| format!(", at most {most} threads"))
                .unwrap_or_default();
            text += &format!("{mark} {:<22} {}{most}\n", entry.name, entry.about);
        }
    }
    text + "* in the default selection\n"
}

/// A name that is not in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLock(pub String);

impl fmt::Display for UnknownLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown lock '{}'; the locks are {}",
            self.0,
            names().join(", ")
        )
    }
}

impl std::error::Error for UnknownLock {}

/// What the user may type: the words for groups, then the names.
pub fn names() -> Vec<&'static str> {
    let groups = GROUPS.iter().map(|(word, _)| *word);
    groups.chain(LOCKS.iter().map(|entry| entry.name)).collect()
}

/// A word for several locks.
type Group = (&'static str, fn(&Entry) -> bool);

const GROUPS: &[Group] = &[
    ("all", |_| true),
    ("ours", |entry| entry.kind == Kind::Ours),
    ("peers", |entry| entry.kind == Kind::Peer),
    ("default", |entry| entry.default),
];

/// Whether two names are the same but for `-` and `_`.
fn same(a: &str, b: &str) -> bool {
    let plain = |name: &'_ str| name.replace('-', "_");
    plain(a) == plain(b)
}

/// The locks that `words` name, each once, in the order of the list.
///
/// # Errors
///
/// [`UnknownLock`] for the first word that names nothing.
pub fn select<'a>(
    words: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<&'static Entry>, UnknownLock> {
    let mut chosen = vec![false; LOCKS.len()];
    for word in words {
        let group = GROUPS.iter().find(|(name, _)| *name == word);
        let mut known = group.is_some();
        for (entry, chosen) in LOCKS.iter().zip(&mut chosen) {
            let named = same(entry.name, word) || entry.aliases.iter().any(|name| same(name, word));
            known |= named;
            *chosen |= named || group.is_some_and(|(_, belongs)| belongs(entry));
        }
        if !known {
            return Err(UnknownLock(word.to_owned()));
        }
    }
    Ok(LOCKS
        .iter()
        .zip(chosen)
        .filter_map(|(entry, chosen)| chosen.then_some(entry))
        .collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::lock::BenchLock;
    use crate::probe::Pass;
    use crate::workload::{Workload, micro};
    use crate::world::Team;

    #[test]
    fn names_are_unique() {
        let mut seen = HashSet::new();
        let groups = GROUPS.iter().map(|(word, _)| word);
        for name in groups.chain(
            LOCKS
                .iter()
                .flat_map(|entry| entry.aliases.iter().chain([&entry.name])),
        ) {
            assert!(seen.insert(name), "{name} twice");
        }
    }

    #[test]
    fn groups_and_names_select_in_the_order_of_the_list() {
        let names = |words: &[&str]| -> Vec<_> {
            select(words.iter().copied())
                .unwrap()
                .iter()
                .map(|entry| entry.name)
                .collect()
        };
        assert_eq!(names(&["usync", "std", "usync"]), ["std", "usync"]);
        assert_eq!(names(&["parking_lot-0.13"]), ["parking_lot"]);
        assert_eq!(names(&["parking-lot"]), ["parking_lot"]);
        assert_eq!(names(&["all"]).len(), LOCKS.len());
        assert!(names(&["peers"]).contains(&"spin-ticket"));
        assert!(!names(&["default"]).contains(&"spin-ticket"));
    }

    #[test]
    fn an_unknown_name_gets_the_list() {
        let message = select(["std", "mutex"]).unwrap_err().to_string();
        assert!(
            message.starts_with("unknown lock 'mutex'; the locks are all, ours, peers, default, "),
            "{message}"
        );
        assert!(message.contains("std, parking_lot"));
    }

    #[test]
    fn rivals_exist() {
        assert!(select(RIVALS.iter().copied()).is_ok());
    }

    fn world() -> Native {
        Native::new(vec![0], Arc::default(), |team, left| {
            panic!("{left} threads of {team:?} hang")
        })
    }

    fn team(threads: usize, milliseconds: u64) -> Team {
        Team {
            lock: "test",
            threads,
            pin: false,
            stop_after: Duration::from_millis(milliseconds),
        }
    }

    #[test]
    fn every_lock_excludes_in_every_workload() {
        let world = world();
        let round = Duration::from_millis(2);
        let workloads = [
            Workload::Micro { cs: 0.0, ncs: 0.0 },
            Workload::Semop { arrays: 2 },
            Workload::Qdisc,
            Workload::Build,
        ];
        for workload in workloads {
            let prepared = workload.prepare(&world, 1.0, round);
            for entry in &*LOCKS {
                for pass in [Pass::Throughput, Pass::Latency] {
                    // A round may be over before a busy machine gives its threads a CPU.
                    let locked = (0..100).any(|_| {
                        let sample = prepared
                            .round(&entry.rounds, &world, &team(2, 2), pass)
                            .unwrap();
                        assert_eq!(sample.waits.is_some(), pass == Pass::Latency);
                        sample.total() > 0
                    });
                    assert!(locked, "{} does nothing in {workload:?}", entry.name);
                }
            }
        }
    }

    #[test]
    fn a_lock_that_does_not_exclude_is_found_out() {
        struct Broken;
        impl BenchLock for Broken {
            type Guard<'a> = ();
            fn create() -> Result<Self, crate::lock::CreateError> {
                Ok(Self)
            }
            fn lock(&self) {}
        }
        let world = world();
        let broken = || {
            micro::round::<_, Broken>(
                &world,
                &team(4, 50),
                &micro::Shape::default(),
                Pass::Throughput,
            )
        };
        // Two threads in one place at one time are likely, not certain.
        assert!((0..20).any(|_| matches!(broken(), Err(crate::error::Error::NotExclusive { .. }))));
    }
}
