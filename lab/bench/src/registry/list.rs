//! The lists themselves.
//!
//! A lock of ours is here as soon as it is in one of overlock-core's lists. A type that people use,
//! ours or a peer, is a line below.

use overlock::Linux;
use overlock::rw::OverlockRw;
use overlock_core::facts::{Facts, HasFacts};
use overlock_core::raw::{RawLock, RawRwLock};

use super::{Entry, Family, Origin};
use crate::lock::{AllAlone, BenchCondvar, BenchLock, BenchRwLock};
use crate::ours::{self, Ours, types};
use crate::peers;
use crate::workload::{Rounds, grid};
use crate::world::native::Native;
use crate::world::sim::{Marked, Platform as Sim, Simulated};

/// The other names of models, the usual one first, where that is not its name without `model:`.
const OF_MODELS: [(&str, &[&str]); 3] = [
    ("model:glibc", &["glibc", "pthread_mutex", "pthread"]),
    ("model:parking_lot", &["parking_lot-0.12"]),
    (
        "model:parking_lot-0.13",
        &["parking_lot-0.13", "parking_lot"],
    ),
];

/// All locks of a family, ours first.
pub fn of(family: Family) -> Vec<Entry> {
    match family {
        Family::Exclusive => exclusive(),
        Family::ReaderWriter => reader_writer(),
        Family::Condvar => condvar(),
    }
}

fn exclusive() -> Vec<Entry> {
    macro_rules! spin {
        ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => { [$(crate::entry!(Ours, overlock_family::spin::$lock)()),*] };
    }
    macro_rules! sleep {
        ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => { [$(crate::entry!(Ours, overlock_family::sleep::$lock)()),*] };
    }
    let mut all = Vec::new();
    all.extend(overlock_family::sleep_locks!(sleep));
    all.extend(overlock_family::spin_locks!(spin));
    all.extend(exclusive_types());
    all.extend(exclusive_peers());
    all
}

/// The types that people use; with a `default` those that a run takes which names no locks.
#[rustfmt::skip]
fn exclusive_types() -> Vec<Entry> {
    fn ours<L: BenchLock>(name: &'static str, about: &'static str) -> Entry {
        Entry::new(Origin::Ours, name, about, Rounds::exclusive::<L>()).shaped::<L>()
    }
    vec![
        ours::<types::Mutex>("overlock-mutex", "overlock::Mutex: the lock of overlock behind a type with data").default(),
        ours::<types::RtMutex>("overlock-rt-mutex", "overlock::RtMutex: the kernel lends the owner its waiters' priority"),
    ]
}

/// The peers; with a `default` those that a run takes which names no locks.
#[rustfmt::skip]
fn exclusive_peers() -> Vec<Entry> {
    fn peer<L: BenchLock>(name: &'static str, about: &'static str) -> Entry {
        Entry::new(Origin::Peer, name, about, Rounds::exclusive::<L>()).shaped::<L>()
    }
    vec![
        peer::<peers::Std>("std", "std::sync::Mutex").default(),
        peer::<peers::ParkingLot>("parking_lot", "parking_lot 0.13 Mutex").alias(&["parking_lot-0.13"]).default(),
        peer::<peers::ParkingLot012>("parking_lot-0.12", "parking_lot 0.12 Mutex").default(),
        peer::<peers::ParkingLotFair>("parking_lot-fair", "parking_lot 0.13 FairMutex, hands off at every unlock").alias(&["parking_lot-fair-0.13"]),
        peer::<peers::ParkingLotFair012>("parking_lot-fair-0.12", "parking_lot 0.12 FairMutex, hands off at every unlock"),
        peer::<peers::SpinMutex>("spin", "spin 0.12 SpinMutex, test and set"),
        peer::<peers::SpinTicket>("spin-ticket", "spin 0.12 TicketMutex"),
        peer::<peers::Usync>("usync", "usync 0.2 Mutex").default(),
        #[cfg(target_env = "gnu")]
        peer::<peers::glibc::Default>("glibc", "pthread_mutex_t, default attributes").alias(&["pthread"]).default(),
        #[cfg(target_env = "gnu")]
        peer::<peers::glibc::Adaptive>("glibc-adaptive", "pthread_mutex_t, PTHREAD_MUTEX_ADAPTIVE_NP").default(),
        #[cfg(target_env = "gnu")]
        peer::<peers::glibc::SpinLock>("pthread-spin", "pthread_spinlock_t"),
    ]
}

fn reader_writer() -> Vec<Entry> {
    fn ours<L: RawRwLock + HasFacts, S: RawRwLock>() -> Entry {
        let simulated = Rounds::reader_writer::<Marked<ours::rw::Ours<S>>>();
        let rounds = Rounds::reader_writer::<ours::rw::Ours<L>>();
        Entry::listed(Origin::Ours, L::NAME, &L::FACTS, rounds, simulated)
    }
    macro_rules! entries {
        ($($name:ident: $module:ident::$lock:ident, $can:ident;)*) => { [$(ours::<overlock_family::$module::$lock<Linux>, overlock_family::$module::$lock<Sim>>()),*] };
    }
    let mut all = Vec::new();
    all.extend(overlock_family::rw_locks!(entries));
    for lock in &mut all {
        // A run on the real machine takes the type in its place; a simulation has no types.
        lock.default &= lock.name != <OverlockRw as RawRwLock>::NAME;
    }
    all.extend(reader_writer_types());
    all.extend(reader_writer_peers());
    all
}

#[rustfmt::skip]
fn reader_writer_types() -> Vec<Entry> {
    fn ours<L: BenchRwLock>(name: &'static str, about: &'static str) -> Entry {
        Entry::new(Origin::Ours, name, about, Rounds::reader_writer::<L>())
    }
    vec![
        ours::<types::RwLock>("overlock-rwlock", "overlock::RwLock: the lock of overlock_rw behind a type with data").alias(&["overlock"]).default(),
        ours::<types::PerCpuRwLock>("overlock-percpu-rwlock", "overlock::PerCpuRwLock: the lock of percpu_rwsem behind a type with data"),
    ]
}

#[rustfmt::skip]
fn reader_writer_peers() -> Vec<Entry> {
    fn peer<L: BenchRwLock>(name: &'static str, about: &'static str) -> Entry {
        Entry::new(Origin::Peer, name, about, Rounds::reader_writer::<L>())
    }
    vec![
        peer::<peers::rw::Std>("std", "std::sync::RwLock").default(),
        peer::<peers::rw::ParkingLot>("parking_lot", "parking_lot 0.13 RwLock").alias(&["parking_lot-0.13"]).default(),
        peer::<peers::rw::ParkingLot012>("parking_lot-0.12", "parking_lot 0.12 RwLock").default(),
        peer::<peers::rw::Sharded>("crossbeam", "crossbeam 0.8 ShardedLock, eight RwLocks of std").default(),
        peer::<peers::rw::Usync>("usync", "usync 0.2 RwLock").default(),
        #[cfg(target_env = "gnu")]
        peer::<peers::glibc::rw::Default>("glibc", "pthread_rwlock_t, default attributes: readers first").alias(&["pthread"]).default(),
        #[cfg(target_env = "gnu")]
        peer::<peers::glibc::rw::Writer>("glibc-writer", "pthread_rwlock_t, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP").default(),
        peer::<AllAlone<peers::Std>>("std-mutex", "std::sync::Mutex, for comparison: readers exclude each other").default(),
    ]
}

fn condvar() -> Vec<Entry> {
    let mut all = condvar_types();
    all.extend(condvar_peers());
    all
}

#[rustfmt::skip]
fn condvar_types() -> Vec<Entry> {
    fn ours<V: BenchCondvar>(name: &'static str, about: &'static str) -> Entry {
        Entry::new(Origin::Ours, name, about, Rounds::condvar::<V>())
    }
    vec![
        ours::<types::Condvar>("overlock-condvar", "overlock::Condvar and Mutex").alias(&["overlock"]).default(),
    ]
}

#[rustfmt::skip]
fn condvar_peers() -> Vec<Entry> {
    fn peer<V: BenchCondvar>(name: &'static str, about: &'static str) -> Entry {
        Entry::new(Origin::Peer, name, about, Rounds::condvar::<V>())
    }
    vec![
        peer::<peers::condvar::Std>("std", "std::sync::Condvar and Mutex").default(),
        peer::<peers::condvar::ParkingLot>("parking_lot", "parking_lot 0.13 Condvar and Mutex").alias(&["parking_lot-0.13"]).default(),
        peer::<peers::condvar::ParkingLot012>("parking_lot-0.12", "parking_lot 0.12 Condvar and Mutex").default(),
        peer::<peers::condvar::Usync>("usync", "usync 0.2 Condvar and Mutex").default(),
        #[cfg(target_env = "gnu")]
        peer::<peers::glibc::condvar::Condvar<peers::glibc::Default>>("glibc", "pthread_cond_t and pthread_mutex_t, default attributes").alias(&["pthread"]).default(),
        #[cfg(target_env = "gnu")]
        peer::<peers::glibc::condvar::Condvar<peers::glibc::Adaptive>>("glibc-adaptive", "pthread_cond_t and pthread_mutex_t, PTHREAD_MUTEX_ADAPTIVE_NP").default(),
    ]
}

impl Entry {
    /// A lock of mutual exclusion, on this machine (`L`) and on simulated ones (`S`).
    pub fn exclusive<L: RawLock + HasFacts, S: RawLock>(origin: Origin) -> Self {
        let simulated = Rounds::exclusive::<Marked<Ours<S>>>();
        let rounds = Rounds::exclusive::<Ours<L>>();
        Self::listed(origin, L::NAME, &L::FACTS, rounds, simulated).shaped::<Ours<L>>()
    }

    /// A lock over a platform, by its row.
    fn listed(
        origin: Origin,
        name: &'static str,
        facts: &Facts,
        rounds: Rounds<Native>,
        simulated: Rounds<Simulated>,
    ) -> Self {
        let aliases = OF_MODELS.iter().find(|(model, _)| *model == name);
        Self {
            aliases: aliases.map_or(&[], |(_, aliases)| *aliases),
            default: facts.compared,
            most_threads: facts.most_threads,
            simulated: Some(simulated),
            simulated_default: facts.compared,
            ..Self::new(origin, name, facts.about, rounds)
        }
    }

    fn new(
        origin: Origin,
        name: &'static str,
        about: &'static str,
        rounds: Rounds<Native>,
    ) -> Self {
        Self {
            name,
            aliases: &[],
            origin,
            default: false,
            about,
            most_threads: None,
            rounds,
            shapes: None,
            simulated: None,
            simulated_default: false,
        }
    }

    /// With the shapes of the grid, for a lock of mutual exclusion.
    fn shaped<L: BenchLock>(self) -> Self {
        Self {
            shapes: Some(grid::round::<L>),
            ..self
        }
    }

    fn default(self) -> Self {
        Self {
            default: true,
            ..self
        }
    }

    fn alias(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lock_has_its_line() {
        for entry in Family::ALL.into_iter().flat_map(of) {
            assert!(!entry.about.is_empty(), "{}", entry.name);
        }
    }
}
