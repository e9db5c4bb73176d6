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
    /// Dependencies that close cycles, but only of one thread alone, or of threads that do not
    /// exist at one time: see [`Evidence`](super::Evidence).
    pub alone: AtomicU32,
}

static TALLY: AtomicPtr<Tally> = AtomicPtr::new(ptr::null_mut());

/// Adds what is met from now on to `tally`.
pub fn set_tally(tally: &'static Tally) {
    // Release: pairs with the load in `add`.
    TALLY.store(ptr::from_ref(tally).cast_mut(), Release);
}

pub(super) fn add(of: impl FnOnce(&Tally) -> &AtomicU32) {
    if let Some(tally) = tally() {
        of(tally).fetch_add(1, Relaxed);
    }
}

/// So many are to be counted as something else.
pub(super) fn take(of: impl FnOnce(&Tally) -> &AtomicU32, count: u32) {
    if let Some(tally) = tally() {
        of(tally).fetch_sub(count, Relaxed);
    }
}

fn tally() -> Option<&'static Tally> {
    // Acquire: pairs with the store in `set_tally`.
    let tally = TALLY.load(Acquire);
    // SAFETY: null, or a reference that lives for ever.
    unsafe { tally.as_ref() }
}
