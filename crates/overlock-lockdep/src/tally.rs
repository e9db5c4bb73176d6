//! Sums over several processes, in memory that they share.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

/// Counts of validators. A child of fork goes on adding to its parent's.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Tally {
    /// Locks, by address: a lock that is destroyed and made again counts again.
    pub locks: AtomicU32,
    /// Classes of locks.
    pub classes: AtomicU32,
    /// Mistakes: see [`reports`](super::reports).
    pub reports: AtomicU32,
    /// Warnings: see [`warnings`](super::warnings).
    pub warnings: AtomicU32,
    /// Dependencies that close cycles, but only under a common lock.
    pub gated: AtomicU32,
}

static TALLY: AtomicPtr<Tally> = AtomicPtr::new(ptr::null_mut());

/// Adds what is met from now on to `tally`.
pub fn set_tally(tally: &'static Tally) {
    // Release: pairs with the load in `add`.
    TALLY.store(ptr::from_ref(tally).cast_mut(), Release);
}

pub(super) fn add(of: fn(&Tally) -> &AtomicU32) {
    // Acquire: pairs with the store in `set_tally`.
    let tally = TALLY.load(Acquire);
    // SAFETY: null, or a reference that lives for ever.
    if let Some(tally) = unsafe { tally.as_ref() } {
        of(tally).fetch_add(1, Relaxed);
    }
}
