//! The locks that can be measured, a list for each family: everything that is measured, tested or
//! named goes by these lists.

mod list;
mod select;
#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::ptr;
use std::sync::{LazyLock, OnceLock};

use crate::lock::Nothing;
use crate::workload::{Round, Rounds, Workload, grid};
use crate::world::World;
use crate::world::native::Native;
use crate::world::sim::Simulated;

pub use select::{NoSuchLock, names, select, select_in, simulated};

use select::same;

/// Locks of mutual exclusion that the program adds to the lists.
static ADDED: OnceLock<Vec<fn() -> Entry>> = OnceLock::new();

/// Adds locks of mutual exclusion to the end of their list: see [`entry`](crate::entry).
///
/// # Panics
///
/// If locks have been added already, or a list has been used. A later use of the lists panics if
/// two locks have the same name.
pub fn add(entries: Vec<fn() -> Entry>) {
    assert!(
        ADDED.set(entries).is_ok(),
        "locks are added once, and first"
    );
}

/// The entry of a lock of mutual exclusion that is written once over
/// [`Platform`](overlock_core::Platform), for [`add`](crate::registry::add): it runs on this
/// machine and on simulated ones. The first word is its [`Origin`](crate::registry::Origin), the
/// second the type without its platform.
///
/// ```
/// use overlock_family::spin::Ticket;
///
/// let entry = overlock_bench::entry!(Added, Ticket)();
/// assert_eq!((entry.name, entry.simulated.is_some()), ("ticket", true));
/// ```
#[macro_export]
macro_rules! entry {
    ($origin:ident, $($lock:ident)::+) => {
        || {
            $crate::registry::Entry::exclusive::<
                $($lock)::+<$crate::world::native::Platform>,
                $($lock)::+<$crate::world::sim::Platform>,
            >($crate::registry::Origin::$origin)
        }
    };
}

/// The kinds of locks: each has its workloads. A name may stand for a lock in each
/// family: `std` is its mutex, its reader-writer lock, or its condition variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Mutual exclusion.
    Exclusive,
    /// Many readers or one writer.
    ReaderWriter,
    /// A mutex and its condition variables.
    Condvar,
}

impl Family {
    /// All of them, in the order in which they are declared.
    pub const ALL: [Self; 3] = [Self::Exclusive, Self::ReaderWriter, Self::Condvar];

    /// Its locks in the order of the tables: ours, the peers, models and others that are added.
    pub fn locks(self) -> &'static [Entry] {
        static LISTS: LazyLock<[Vec<Entry>; 3]> = LazyLock::new(|| {
            let mut lists = Family::ALL.map(list::of);
            for make in ADDED.get_or_init(Vec::new) {
                let (entry, list) = (make(), &mut lists[Family::Exclusive as usize]);
                let names = list.iter().map(|other| other.name);
                let taken = names.into_iter().find(|name| same(name, entry.name));
                assert!(taken.is_none(), "two locks have the name '{}'", entry.name);
                list.push(entry);
            }
            lists
        });
        &LISTS[self as usize]
    }

    /// The limit, for the workloads that have one: measured in every run, chosen by nobody.
    pub fn limit(self) -> Option<&'static Entry> {
        match self {
            Self::Exclusive => Some(&LIMIT),
            Self::ReaderWriter => Some(&RW_LIMIT),
            Self::Condvar => None,
        }
    }

    /// The peers that a lock of ours has to beat: its `vs_best_peer` is the ratio to the best of
    /// them in the same cell. They are at hand for everybody, and the best version or kind of
    /// each counts.
    pub fn rivals(self) -> &'static [&'static str] {
        match self {
            Self::Exclusive | Self::Condvar => &[
                "std",
                "parking_lot",
                "parking_lot-0.12",
                "glibc",
                "glibc-adaptive",
            ],
            Self::ReaderWriter => &[
                "std",
                "parking_lot",
                "parking_lot-0.12",
                "glibc",
                "glibc-writer",
            ],
        }
    }

    /// The type of this family that we recommend: what the grid judges.
    pub fn ours(self) -> &'static str {
        match self {
            Self::Exclusive => "overlock-mutex",
            Self::ReaderWriter => "overlock-rwlock",
            Self::Condvar => "overlock-condvar",
        }
    }

    /// Its name in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exclusive => "mutex",
            Self::ReaderWriter => "rwlock",
            Self::Condvar => "condvar",
        }
    }

    /// The name of such locks, for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Exclusive => "mutual exclusion",
            Self::ReaderWriter => "reader-writer locks",
            Self::Condvar => "condition variables",
        }
    }

    /// The names of the workloads that they are for.
    pub fn workloads(self) -> Vec<&'static str> {
        Workload::ALL
            .iter()
            .filter(|workload| workload.family() == self)
            .map(Workload::name)
            .collect()
    }
}

/// The origin of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// One of this project's.
    Ours,
    /// One that people use today.
    Peer,
    /// The published algorithm of a lock of others, written over our platforms.
    Model,
    /// One that the program has [added](add).
    Added,
    /// No lock, the limit.
    Limit,
}

impl Origin {
    /// The name for people of a lock of this origin: nobody should take the limit for a lock.
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
    /// Its name in options and tables.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Its origin.
    pub origin: Origin,
    /// Whether a run that names no locks takes it.
    pub default: bool,
    /// One line on what it is.
    pub about: &'static str,
    /// The most threads that may use it at once.
    pub most_threads: Option<usize>,
    /// The workloads that it is for, compiled for it.
    pub rounds: Rounds<Native>,
    /// The shapes of the grid that are for mutual exclusion, compiled for it.
    pub shapes: Option<Round<Native, grid::Shape>>,
    /// `rounds` for a simulated machine, where the lock runs on one: locks that are written
    /// against a platform do.
    pub simulated: Option<Rounds<Simulated>>,
    /// `default` of a simulation.
    pub simulated_default: bool,
}

/// A world that locks of the lists run in.
pub trait Listed: World {
    /// The workloads of a lock, compiled for this world; `None` where it does not run in it.
    fn rounds(entry: &Entry) -> Option<&Rounds<Self>>
    where
        Self: Sized;

    /// Whether a run in this world that names no locks takes this one.
    fn takes_by_default(entry: &Entry) -> bool;
}

impl Listed for Native {
    fn rounds(entry: &Entry) -> Option<&Rounds<Self>> {
        Some(&entry.rounds)
    }

    fn takes_by_default(entry: &Entry) -> bool {
        entry.default
    }
}

impl Listed for Simulated {
    fn rounds(entry: &Entry) -> Option<&Rounds<Self>> {
        entry.simulated.as_ref()
    }

    fn takes_by_default(entry: &Entry) -> bool {
        entry.simulated_default
    }
}

static LIMIT: Entry = limit(
    Rounds::exclusive::<Nothing>(),
    Some(grid::round::<Nothing>),
    Rounds::exclusive::<Nothing>(),
);
static RW_LIMIT: Entry = limit(
    Rounds::reader_writer::<Nothing>(),
    None,
    Rounds::reader_writer::<Nothing>(),
);

const fn limit(
    rounds: Rounds<Native>,
    shapes: Option<Round<Native, grid::Shape>>,
    simulated: Rounds<Simulated>,
) -> Entry {
    Entry {
        name: "none",
        aliases: &[],
        origin: Origin::Limit,
        default: false,
        about: "no lock at all: the limit",
        most_threads: None,
        rounds,
        shapes,
        simulated: Some(simulated),
        simulated_default: false,
    }
}

/// The lists of a world for people: names, what they are, what they are for, and which ones a run
/// takes that names none.
pub fn describe<W: Listed>() -> String {
    let mut text = String::new();
    let listed = |family: &Family| family.locks().iter().any(runs_in::<W>);
    for family in Family::ALL.into_iter().filter(listed) {
        let workloads = family.workloads().join(", ");
        let _ = writeln!(text, "{}, for {workloads}:", family.title());
        for (origin, title) in GROUPS_OF_AN_ORIGIN {
            let locks = family.locks().iter();
            let mut locks = locks.filter(|entry| entry.origin == origin && runs_in::<W>(entry));
            if let Some(first) = locks.next() {
                let _ = writeln!(text, "  {title}");
                for entry in std::iter::once(first).chain(locks) {
                    text += &entry.line(W::takes_by_default(entry));
                }
            }
        }
        text.push('\n');
    }
    text + "* in the default selection\n"
}

/// The kinds that the lists show, with the word for all locks of each.
const GROUPS_OF_AN_ORIGIN: [(Origin, &str); 4] = [
    (Origin::Ours, "ours"),
    (Origin::Peer, "peers"),
    (Origin::Model, "models"),
    (Origin::Added, "added"),
];

/// Whether the lock runs in that world.
fn runs_in<W: Listed>(entry: &Entry) -> bool {
    W::rounds(entry).is_some()
}

/// A lock has one entry. A name may be that of a lock in each family.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Entry {
    /// Whether so many threads may use it at once.
    pub fn takes(&self, threads: usize) -> bool {
        self.most_threads.is_none_or(|most| threads <= most)
    }

    fn line(&self, default: bool) -> String {
        let mark = if default { '*' } else { ' ' };
        let most = self
            .most_threads
            .map(|most| format!(", at most {most} threads"))
            .unwrap_or_default();
        format!("  {mark} {:<22} {}{most}\n", self.name, self.about)
    }
}
