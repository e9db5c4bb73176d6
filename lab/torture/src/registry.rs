//! The list of all that can be tortured. A lock of overlock-core's lists is here as soon as it is
//! in one of them.

mod list;
mod select;

use std::fmt::Write;
use std::sync::{LazyLock, OnceLock};

use overlock_core::facts::{Facts, Waiting};
use overlock_core::raw::CreateError;

use crate::subject::Subject;

pub use select::{NoSuchLock, select};

/// The entry of a lock of mutual exclusion that is written once over
/// [`Platform`](overlock_core::Platform), for [`add`](crate::registry::add). The first word says
/// whether it is a [model](crate::registry::Entry::model), the second its abilities (see
/// [`spin_locks`](overlock_family::spin_locks)), the third is the type without its platform.
///
/// ```
/// use overlock_family::spin::Ticket;
///
/// assert_eq!(overlock_torture::entry!(false, basic, Ticket)().name, "ticket");
/// ```
#[macro_export]
macro_rules! entry {
    ($model:literal, $can:ident, $($lock:ident)::+) => {
        || {
            use $crate::__private::{Exclusive, ExclusiveExtras, Facts, HasFacts, Linux, RawLock};
            const FACTS: Facts = <$($lock)::+<Linux> as HasFacts>::FACTS;
            $crate::registry::Entry {
                name: <$($lock)::+<Linux> as RawLock>::NAME,
                facts: FACTS,
                model: $model,
                make: |_| {
                    let extras = ExclusiveExtras::<$($lock)::+<Linux>>::$can();
                    Ok(Box::new(Exclusive::new(extras, &FACTS)?))
                },
            }
        }
    };
}

/// Something that can be tortured.
#[derive(Debug)]
pub struct Entry {
    /// Its name in options and tables.
    pub name: &'static str,
    /// Its row: the promises of its documentation.
    pub facts: Facts,
    /// Whether it is the algorithm of a lock of others: `all` leaves it out, and `models` names it.
    pub model: bool,
    /// Creates some, for so many threads.
    #[doc(hidden)]
    pub make: Make,
}

/// See [`Entry::make`].
#[doc(hidden)]
pub type Make = fn(usize) -> Result<Box<dyn Subject>, CreateError>;

/// All of them, in the order of the tables.
pub fn all() -> &'static [Entry] {
    static ALL: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let mut all = list::all();
        all.extend(ADDED.get_or_init(Vec::new).iter().map(|make| make()));
        all
    });
    &ALL
}

/// Locks that the program adds to the list.
static ADDED: OnceLock<Vec<fn() -> Entry>> = OnceLock::new();

/// Adds locks to the end of the list: see [`entry!`](crate::entry). Their names are new.
///
/// # Panics
///
/// If locks have been added already, or the list has been used.
pub fn add(entries: Vec<fn() -> Entry>) {
    assert!(
        ADDED.set(entries).is_ok(),
        "locks are added once, and first"
    );
}

/// The faulty locks, and the names of their flaws.
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
