//! The tables that a platform of a checker brings: small, since a scenario has few threads.

use overlock_core::platform::{Atomic, Platform};
use overlock_core::tables::{self, Storage};
use overlock_family::tables::{self as family, Storage as FamilyStorage};

/// Threads with queue nodes, at most.
pub const SLOTS: usize = 5;

/// Threads, at most.
const THREADS: usize = 8;

/// Fast queue spinlocks that may live at a time.
const FAST_QUEUES: usize = 8;

/// The tables of the locks, and what the checkers count for each thread.
#[derive(Debug)]
pub struct Tables<P: Platform> {
    storage: Storage<P, SLOTS>,
    family: FamilyStorage<P, SLOTS, 1, { 2 * FAST_QUEUES }>,
    granted: [P::U32; THREADS],
}

impl<P: Platform> Tables<P> {
    /// Empty tables.
    pub fn new() -> Self {
        Tables {
            storage: Storage::new(),
            family: FamilyStorage::new(),
            granted: [const { P::U32::ZERO }; THREADS],
        }
    }

    /// See [`Platform::tables`].
    pub fn view(&'static self) -> tables::Tables<P> {
        tables::Tables::new(&self.storage)
    }

    /// See [`FamilyPlatform::family_tables`](overlock_family::FamilyPlatform::family_tables).
    pub fn family(&'static self) -> family::Tables<P> {
        family::Tables::new(&self.family)
    }

    /// A count for each thread, for the kernel's part of a PI futex.
    pub fn granted(&self, thread: usize) -> &P::U32 {
        &self.granted[thread]
    }
}

impl<P: Platform> Default for Tables<P> {
    fn default() -> Self {
        Self::new()
    }
}
