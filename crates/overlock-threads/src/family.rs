//! The tables of the kernel's lock family.

use overlock_family::FamilyPlatform;
use overlock_family::tables::{Storage, Tables};

use super::Threads;
use super::slot::SLOTS;

/// The largest number of fast queue spinlocks at a time.
const FAST_QUEUES: usize = 1 << 12;

/// All zero bytes, as those of every lock.
static STORAGE: Storage<Threads, SLOTS, { SLOTS.div_ceil(8) }, { 2 * FAST_QUEUES }> =
    Storage::new();

impl FamilyPlatform for Threads {
    #[inline(always)]
    fn family_tables() -> Tables<Threads> {
        Tables::new(&STORAGE)
    }
}
