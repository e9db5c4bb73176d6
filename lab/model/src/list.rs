//! The locks that are checked, with their scenarios.

use std::sync::OnceLock;

use overlock_core::facts::HasFacts;
use overlock_core::raw::{RawLock, RawRwLock};
use overlock_core::rw::{OverlockRw, PerCpuRwSem};
use overlock_core::sleep;
use overlock_family::rw::Qrwlock;
use overlock_family::sleep as family;
use overlock_family::spin;
use overlock_family::spin::faulty::{Faulty, FaultyRw, LostKick, NoExclusion, Relaxed};

use crate::scenario::exclusive::{Abilities as Exclusive, scenarios};
use crate::scenario::reader_writer::Abilities as Shared;
use crate::scenario::{Scenario, fair, marked, reader_writer, reentrant, several, waiting};
use crate::world::World;

/// A lock to check.
#[derive(Debug)]
pub struct Lock {
    /// Its name in tables and options.
    pub name: &'static str,
    /// The scenarios for it.
    pub scenarios: Vec<Scenario>,
    /// Whether it is broken on purpose, and by which checkers that must be found. Empty for the
    /// others.
    pub broken_for: &'static [&'static str],
}

/// A lock that the program adds to the list, in the world of each checker: see
/// [`lock`](crate::lock).
#[derive(Clone, Copy, Debug)]
pub struct Added {
    /// Its name.
    pub name: &'static str,
    #[doc(hidden)]
    pub explore: fn() -> Lock,
    #[doc(hidden)]
    pub shuttle: fn() -> Lock,
}

static ADDED: OnceLock<Vec<Added>> = OnceLock::new();

/// Adds locks to the end of the list. Their names are new.
///
/// # Panics
///
/// If locks have been added already, or the list has been used.
pub fn add(locks: Vec<Added>) {
    assert!(ADDED.set(locks).is_ok(), "locks are added once, and first");
}

/// The locks that were added.
pub(crate) fn added() -> &'static [Added] {
    ADDED.get_or_init(Vec::new)
}

/// A lock of mutual exclusion that is written once over [`Platform`](overlock_core::Platform), for
/// [`list::add`](crate::list::add): its abilities (see
/// [`spin_locks`](overlock_family::spin_locks)), and its type without the platform. Its scenarios
/// are those of all locks with these abilities.
#[macro_export]
macro_rules! lock {
    ($can:ident, $($lock:ident)::+) => {
        $crate::list::Added {
            name: <$($lock)::+<$crate::explore::Explorer> as $crate::__private::RawLock>::NAME,
            explore: || $crate::lock!(@ $crate::explore::Explorer, $can, $($lock)::+),
            shuttle: || $crate::lock!(@ $crate::shuttle::Shuttle, $can, $($lock)::+),
        }
    };
    (@ $world:ty, $can:ident, $($lock:ident)::+) => {
        $crate::list::exclusive(
            $crate::__private::Abilities::<$world, $($lock)::+<$world>>::$can(),
        )
    };
}

const ALL: &[&str] = &["explore", "shuttle"];
/// Shuttle is sequentially consistent.
const WEAK: &[&str] = &["explore"];

/// Whether a build has been restricted to other locks: `OVERLOCK_MODEL_ONLY=queued,kernel_mutex
/// cargo build` compiles these alone, in a small part of the time. For checks of mutants, each of
/// which is a build.
const fn left_out(name: &str) -> bool {
    match option_env!("OVERLOCK_MODEL_ONLY") {
        Some(list) => !names(list, name),
        None => false,
    }
}

/// Whether a list, separated by commas, names `name`.
pub(crate) const fn names(list: &str, name: &str) -> bool {
    let (list, name) = (list.as_bytes(), name.as_bytes());
    let mut start = 0;
    while start + name.len() <= list.len() {
        let mut same = 0;
        while same < name.len() && list[start + same] == name[same] {
            same += 1;
        }
        let end = start + name.len();
        if same == name.len() && (end == list.len() || list[end] == b',') {
            return true;
        }
        while start < list.len() && list[start] != b',' {
            start += 1;
        }
        start += 1;
    }
    false
}

/// All locks, in the world of one checker.
pub fn locks<W: World>() -> Vec<Lock> {
    let mut all = Vec::new();
    // A constant condition keeps what is left out from being compiled at all.
    macro_rules! add {
        ($name:expr, $lock:expr) => {
            if const { !left_out($name) } {
                all.push($lock);
            }
        };
    }
    macro_rules! spinning {
        ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {
            $(add!(stringify!($name), exclusive::<W, spin::$lock<W>>(Exclusive::$can()));)*
        };
    }
    macro_rules! sleeping {
        ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {
            $(add!(stringify!($name), exclusive::<W, family::$lock<W>>(Exclusive::$can()));)*
        };
    }
    macro_rules! reader_writer {
        ($($name:ident: $module:ident::$lock:ident, $can:ident;)*) => {
            $(add!(stringify!($name), shared::<W, overlock_family::$module::$lock<W>>(Shared::$can()));)*
        };
    }
    overlock_family::spin_locks!(spinning);
    add!(
        spin::LazyFastQueue::<W>::NAME,
        exclusive::<W, spin::LazyFastQueue<W>>(Exclusive::basic())
    );
    overlock_family::sleep_locks!(sleeping);
    add!(sleep::RtMutex::<W>::NAME, {
        let scenarios = scenarios(Exclusive::<W, sleep::RtMutex<W>>::timed());
        without_signals(sleep::RtMutex::<W>::NAME, scenarios)
    });
    add!(sleep::FairOverlock::<W>::NAME, {
        let mut scenarios = scenarios(Exclusive::<W, sleep::FairOverlock<W>>::full());
        scenarios.extend(fair::fair::<W>());
        scenarios.extend(adopted::<W, sleep::FairOverlock<W>>());
        without_signals(sleep::FairOverlock::<W>::NAME, scenarios)
    });
    overlock_family::rw_locks!(reader_writer);
    // Scenarios for one lock alone. `add_to!` leaves out the same locks as `add!`.
    macro_rules! add_to {
        ($lock:ty, $scenarios:expr) => {
            if const { !left_out(<$lock>::NAME) } {
                let mut locks = all.iter_mut();
                let lock = locks.find(|lock| lock.name == <$lock>::NAME);
                lock.expect("listed").scenarios.extend($scenarios);
            }
        };
    }
    add_to!(sleep::Overlock<W>, adopted::<W, sleep::Overlock<W>>());
    add_to!(sleep::Overlock<W>, marked::marked::<W>());
    add_to!(sleep::Overlock<W>, reentrant::reentrant::<W>());
    add_to!(OverlockRw<W>, reader_writer::barging::<W>());
    add_to!(PerCpuRwSem<W>, reader_writer::visible::<W>());
    add_to!(Qrwlock<W>, reader_writer::in_handlers::<W>());
    add!(sleep::WwMutex::<W>::NAME, {
        let mut scenarios = scenarios(Exclusive::<W, sleep::WwMutex<W>>::basic());
        scenarios.extend(several::ww_mutex::<W>());
        without_signals(sleep::WwMutex::<W>::NAME, scenarios)
    });
    add!("semaphore", named("semaphore", waiting::semaphore::<W>()));
    add!(
        "condvar",
        named("condvar", {
            let with_mutex = waiting::condvar::<W, family::KernelMutex<W>>();
            let mut with_overlock = waiting::condvar::<W, sleep::Overlock<W>>();
            with_overlock.push(waiting::condvar_freed::<W>());
            (with_mutex
                .into_iter()
                .map(|scenario| scenario.with("kernel_mutex")))
            .chain(
                with_overlock
                    .into_iter()
                    .map(|scenario| scenario.with("overlock")),
            )
            .collect()
        })
    );
    add!("once", named("once", waiting::once::<W>()));
    add!("barrier", named("barrier", waiting::barrier::<W>()));
    add!("osq", named("osq", waiting::osq::<W>()));
    add!(
        "faulty_no_exclusion",
        faulty(
            "faulty_no_exclusion",
            ALL,
            scenarios(Exclusive::<W, Faulty<W, NoExclusion>>::basic())
        )
    );
    add!(
        "faulty_lost_kick",
        faulty(
            "faulty_lost_kick",
            ALL,
            scenarios(Exclusive::<W, Faulty<W, LostKick>>::basic())
        )
    );
    add!(
        "faulty_relaxed",
        faulty(
            "faulty_relaxed",
            WEAK,
            scenarios(Exclusive::<W, Faulty<W, Relaxed>>::basic())
        )
    );
    add!(
        "faulty_rw",
        faulty(
            "faulty_rw",
            ALL,
            reader_writer::scenarios(Shared::<W, FaultyRw<W>>::basic())
        )
    );
    all
}

/// The scenarios of a waiter for a condition that becomes a sleeper of the lock.
fn adopted<W: World, L: RawLock>() -> impl Iterator<Item = Scenario> {
    let all = waiting::condvar::<W, L>().into_iter();
    let names = [
        "all-locked",
        "one-locked",
        "within-all-locked",
        "within-locked",
    ];
    all.filter(move |scenario| names.contains(&&*scenario.name))
        .map(|scenario| scenario.with("condvar"))
}

#[doc(hidden)]
pub fn exclusive<W: World, L: RawLock<Token: 'static> + HasFacts>(
    abilities: Exclusive<W, L>,
) -> Lock {
    listed::<L>(L::NAME, scenarios(abilities))
}

fn shared<W: World, L: RawRwLock + HasFacts>(abilities: Shared<W, L>) -> Lock {
    listed::<L>(L::NAME, reader_writer::scenarios(abilities))
}

/// A lock with a row, which says whether handlers may try it.
fn listed<L: HasFacts>(name: &'static str, scenarios: Vec<Scenario>) -> Lock {
    if L::FACTS.tried_in_handlers {
        named(name, scenarios)
    } else {
        without_signals(name, scenarios)
    }
}

fn without_signals(name: &'static str, mut scenarios: Vec<Scenario>) -> Lock {
    scenarios.retain(|scenario| !scenario.setting.signals);
    named(name, scenarios)
}

fn named(name: &'static str, scenarios: Vec<Scenario>) -> Lock {
    faulty(name, &[], scenarios)
}

fn faulty(
    name: &'static str,
    broken_for: &'static [&'static str],
    scenarios: Vec<Scenario>,
) -> Lock {
    Lock {
        name,
        scenarios,
        broken_for,
    }
}
