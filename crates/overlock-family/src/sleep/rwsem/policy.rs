//! How long waiters of the reader-writer semaphore spin before they sleep: the published forms.

use core::fmt::Debug;
use core::time::Duration;

use super::RwSem;
use overlock_core::facts::{Bound, Facts, HasFacts};
use overlock_core::platform::Platform;

/// How waiters spin; see the [module's page](super).
pub trait Policy: Send + Sync + Debug + 'static {
    /// The lock's name in tables.
    const NAME: &'static str;
    /// How a writer spins while readers hold the lock.
    const ON_READERS: OnReaders;
    /// Whether a reader that came in vain keeps the lock if it is free by now, even with waiters.
    /// Such readers also spin on a writer all at once. Otherwise they join the spin queue, whose
    /// head alone polls the lock.
    const READERS_STEAL: bool = false;
    /// How long a waiter spins while writers hold the lock, in all, including its time in the spin
    /// queue.
    const SPIN_NS: u64 = 10_000;
    /// How long others may barge past the first of the list.
    const HANDOFF_NS: u64 = 4_000_000;
    /// The most readers that are woken at a time.
    const BATCH: usize = 256;
}

/// See [`Policy::ON_READERS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnReaders {
    /// It gives up.
    Sleep,
    /// It polls the lock a number of times, which starts again whenever the lock's word has
    /// changed, and another number of times in all. Then nobody spins on readers until a writer has
    /// had the lock.
    Count {
        /// Polls without a change.
        threshold: u32,
        /// Polls in all.
        most: u32,
    },
    /// It polls the lock for [a time](reader_spin_ns) that grows with the number of readers.
    /// Then nobody spins on readers until a writer has had the lock, or all readers have left.
    Time,
}

/// Returns how long a writer spins on so many readers: 10 us, half a microsecond more for each, 25
/// us at most.
pub const fn reader_spin_ns(readers: u32) -> u64 {
    let readers = if readers < 30 { readers } else { 30 };
    10_000 + readers as u64 * 500
}

/// Nobody spins on readers: the lock before the document. Both kinds of waiter spin on a writer.
#[derive(Clone, Copy, Debug)]
pub struct None;

impl Policy for None {
    const NAME: &'static str = "rwsem_none";
    const ON_READERS: OnReaders = OnReaders::Sleep;
}

/// The document's: 2^10 polls without a change, 2^14 in all.
#[derive(Clone, Copy, Debug)]
pub struct Counted;

impl Policy for Counted {
    const NAME: &'static str = "rwsem_count";
    const ON_READERS: OnReaders = OnReaders::Count {
        threshold: 1 << 10,
        most: 1 << 14,
    };
}

/// The merged form, and the default: writers spin on readers for a time (5.3), readers steal a free
/// lock instead of queueing for it (5.11).
///
/// The kernel's readers do not spin at all since then. They are woken together, and a reader that
/// gets in early by spinning only splits the group. Here a wake-up costs 50 us and most sections
/// last less than one. So readers do spin on a writer, but together: all of them see it leave.
#[derive(Clone, Copy, Debug)]
pub struct Timed;

impl Policy for Timed {
    const NAME: &'static str = "rwsem";
    const ON_READERS: OnReaders = OnReaders::Time;
    const READERS_STEAL: bool = true;
}

/// The part that the rows share.
const fn facts<Y: Policy>(about: &'static str) -> Facts {
    Facts {
        about,
        bound: Bound::Each(Duration::from_nanos(Y::HANDOFF_NS)),
        ..Facts::SLEEPING
    }
}

impl<P: Platform> HasFacts for RwSem<P, Timed> {
    const FACTS: Facts = Facts {
        compared: true,
        ..facts::<Timed>("sleeping: readers and writers spin, on readers for a time")
    };
}

impl<P: Platform> HasFacts for RwSem<P, None> {
    const FACTS: Facts = facts::<None>("rwsem whose waiters do not spin while readers hold it");
}

impl<P: Platform> HasFacts for RwSem<P, Counted> {
    const FACTS: Facts = facts::<Counted>("rwsem whose waiters spin on readers for a count");
}
