//! What the header's inline functions rely on, and has a number there. The header asserts its half, and `tests/header.rs` compares the two.

use overlock::core::platform::{Platform, spread};
use overlock::core::spin::Overlock;
use overlock::core::spin::overlock::{Policy, Unlock};
use overlock::{KICK_ENTRIES, KICKS, KickTable, Linux};

use crate::cond::Cond;
use crate::mutex::Mutex;
use crate::rwlock::RwLock;

/// The kick table: `ovl_kick_table`. A pointer to it, and not the table itself: a program that is linked at fixed addresses would have a copy
/// of its own of that.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)] // as in C
pub static ovl_kick_table: &KickTable = &KICKS;

/// By how much the product of address and factor is shifted for the index in the table.
pub const KICK_SHIFT: u32 = 64 - KICK_ENTRIES.ilog2();

/// The index of a lock's entry, as the header computes it.
pub fn kick_index(address: usize) -> usize {
    (Linux::spread(address) >> (KICK_SHIFT - 32)) as usize
}

const _: () = {
    assert!(KICK_ENTRIES == 1024 && KICK_SHIFT == 54);
    assert!(spread(1) == 0x9e37_79b9);
    assert!(size_of::<Mutex>() == 16 && align_of::<Mutex>() == 4);
    assert!(Mutex::LOCKED_OFFSET == 0 && Mutex::DONE_OFFSET == 12 && Mutex::HELD == 0xfe);
    assert!(size_of::<RwLock>() == 40 && align_of::<RwLock>() == 8);
    assert!(size_of::<Cond>() == 16 && align_of::<Cond>() == 4);
};

/// The header's functions are this lock's fast paths: it looks, then stores, and counts its acquisitions. They do not record the owner's CPU: `HELD` is
/// that of an owner whose CPU is not known.
const _: () = {
    const fn fits<Y: Policy>(_: Option<&Overlock<Linux, Y>>) {
        assert!(matches!(Y::UNLOCK, Unlock::LookThenStore));
        assert!(Y::LEARN);
    }
    fits(None::<&Mutex>);
};
