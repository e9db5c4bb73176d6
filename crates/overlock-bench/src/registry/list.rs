//! The list itself.
//!
//! A lock of ours is there as soon as it is in overlock-core's own list; what the bench alone has to know
//! of it is a line in [`NOTES`]. A peer is a line in [`peers`].

use overlock::Linux;
use overlock::core::raw::RawLock;
use overlock::core::spin;

use super::{Entry, Kind};
use crate::lock::BenchLock;
use crate::ours::Ours;
use crate::peers;
use crate::workload::Rounds;

/// What [`RawLock`] does not tell of a lock of ours.
struct Note {
    name: &'static str,
    /// See [`Entry::default`].
    default: bool,
    most_threads: Option<usize>,
    about: &'static str,
}

#[rustfmt::skip]
const NOTES: &[Note] = &[
    Note { name: "overlock", default: true, most_threads: None, about: "what overlock::SpinLock is: the one we recommend" },
    Note { name: "overlock_exchange", default: false, most_threads: None, about: "overlock with an exchange to unlock" },
    Note { name: "overlock_fixed", default: false, most_threads: None, about: "overlock with fixed spin limits: nothing is learned" },
    Note { name: "overlock_owner_cpu", default: false, most_threads: None, about: "overlock with the owner's CPU in the lock: a waiter on it does not spin" },
    Note { name: "ticket", default: false, most_threads: Some(65_535), about: "first come, first served, by number" },
    Note { name: "backoff_ticket", default: false, most_threads: Some(65_535), about: "ticket with proportional back-off" },
    Note { name: "pv_ticket", default: false, most_threads: Some(28_672), about: "paravirtual ticket: waiters halt and are kicked; 16-bit numbers" },
    Note { name: "pv_ticket_small", default: false, most_threads: Some(127), about: "pv_ticket with 8-bit numbers" },
    Note { name: "pv_ticket_tail_flag", default: false, most_threads: Some(28_672), about: "pv_ticket as first published: its unlock touches the lock after releasing it" },
    Note { name: "mcs", default: false, most_threads: None, about: "classic queue, each waiter on its own line" },
    Note { name: "fast_queue", default: false, most_threads: None, about: "queue with one exchange to lock and one store to unlock" },
    Note { name: "queued", default: false, most_threads: None, about: "queue in 4 bytes, with a pending bit" },
    Note { name: "unfair", default: true, most_threads: None, about: "test and set" },
    Note { name: "pv_queued", default: true, most_threads: None, about: "paravirtual queue: waiters halt and are kicked" },
    Note { name: "hybrid", default: true, most_threads: None, about: "paravirtual queue with an unfair mode, chosen by each waiter" },
    Note { name: "hybrid_short", default: false, most_threads: None, about: "hybrid with a spin threshold for user space" },
];

/// All locks, ours first.
pub fn all() -> Vec<Entry> {
    macro_rules! entries {
        ($($name:ident: $lock:ident, $kind:ident;)*) => { vec![$(ours::<spin::$lock<Linux>>()),*] };
    }
    let mut all = overlock::core::spin_locks!(entries);
    all.extend(peers());
    all
}

fn ours<L: RawLock>() -> Entry {
    let note = NOTES.iter().find(|note| note.name == L::NAME);
    Entry {
        name: L::NAME,
        aliases: &[],
        kind: Kind::Ours,
        default: note.is_some_and(|note| note.default),
        about: note.map_or("", |note| note.about),
        most_threads: note.and_then(|note| note.most_threads),
        rounds: Rounds::of::<Ours<L>>(),
    }
}

/// The peers; with a `default` those that a run takes which names no locks.
#[rustfmt::skip]
fn peers() -> Vec<Entry> {
    vec![
        peer::<peers::Std>("std", &[], "std::sync::Mutex").default(),
        peer::<peers::ParkingLot>("parking_lot", &["parking_lot-0.13"], "parking_lot 0.13 Mutex").default(),
        peer::<peers::ParkingLot012>("parking_lot-0.12", &[], "parking_lot 0.12 Mutex").default(),
        peer::<peers::ParkingLotFair>("parking_lot-fair", &["parking_lot-fair-0.13"], "parking_lot 0.13 FairMutex, hands over at every unlock"),
        peer::<peers::ParkingLotFair012>("parking_lot-fair-0.12", &[], "parking_lot 0.12 FairMutex, hands over at every unlock"),
        peer::<peers::SpinMutex>("spin", &[], "spin 0.12 SpinMutex, test and set"),
        peer::<peers::SpinTicket>("spin-ticket", &[], "spin 0.12 TicketMutex"),
        peer::<peers::Usync>("usync", &[], "usync 0.2 Mutex").default(),
        #[cfg(target_env = "gnu")]
        peer::<peers::glibc::Default>("glibc", &["pthread"], "pthread_mutex_t, default attributes").default(),
        #[cfg(target_env = "gnu")]
        peer::<peers::glibc::Adaptive>("glibc-adaptive", &[], "pthread_mutex_t, PTHREAD_MUTEX_ADAPTIVE_NP").default(),
        #[cfg(target_env = "gnu")]
        peer::<peers::glibc::SpinLock>("pthread-spin", &[], "pthread_spinlock_t"),
    ]
}

fn peer<L: BenchLock>(
    name: &'static str,
    aliases: &'static [&'static str],
    about: &'static str,
) -> Entry {
    Entry {
        name,
        aliases,
        kind: Kind::Peer,
        default: false,
        about,
        most_threads: None,
        rounds: Rounds::of::<L>(),
    }
}

impl Entry {
    fn default(self) -> Self {
        Self {
            default: true,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lock_has_its_note() {
        for entry in all() {
            assert!(
                !entry.about.is_empty(),
                "{} has no line in NOTES",
                entry.name
            );
        }
    }
}
