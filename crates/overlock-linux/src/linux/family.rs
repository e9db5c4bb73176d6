//! The tables of the kernel's lock family.

use overlock_family::FamilyPlatform;
use overlock_family::tables::{Storage, Tables};

use overlock_core::node::MAX_SLOTS;

use super::Linux;

/// The threads that these locks have a place for. Miri tracks every byte that a borrow covers, each
/// time; with the full tables it does little else.
const THREADS: usize = if cfg!(miri) { 64 } else { MAX_SLOTS };

/// The largest number of fast queue spinlocks at a time.
const FAST_QUEUES: usize = if cfg!(miri) { 64 } else { 1 << 16 };

/// All zero bytes, as those of every lock.
static STORAGE: Storage<Linux, THREADS, { THREADS.div_ceil(8) }, { 2 * FAST_QUEUES }> =
    Storage::new();

impl FamilyPlatform for Linux {
    #[inline(always)]
    fn family_tables() -> Tables<Linux> {
        // Miri tracks every byte that a borrow covers: here that is once.
        #[cfg(miri)]
        static TABLES: Tables<Linux> = Tables::new(&STORAGE);
        #[cfg(miri)]
        return TABLES;
        #[cfg(not(miri))]
        Tables::new(&STORAGE)
    }
}
