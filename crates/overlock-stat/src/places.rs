//! Places in which waits are shown while they last.
//!
//! A thread's places are a list, the innermost wait first: a signal handler may wait in the middle
//! of a wait. One that jumps out of a wait never leaves its place. So a place has the address of
//! the thread's stack where the wait began. Waits within others are at lower addresses, so a new
//! wait at this address or above tells that the old one is gone. A wait is shown no more if a
//! handler in it waits on a stack of its own, above the thread's.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_shared::{Live, Thread, Waits};

/// More waits within each other are a list that a handler has broken.
const MOST_NESTED: usize = 64;

/// The figures of a thread, which it begins anew if the place was another's.
pub fn figures(waits: &Waits, tid: u32) -> &Thread {
    let thread = &waits.threads[tid as usize % waits.threads.len()];
    if thread.tid.load(Relaxed) != tid {
        thread.cpu_ns.store(0, Relaxed);
        thread.held_ns.store(0, Relaxed);
        thread.innermost.store(0, Relaxed);
        thread.tid.store(tid, Relaxed);
    }
    thread
}

/// Takes a place for the thread `tid`, whose stack is at the address `here`; `write` writes the
/// wait there.
pub fn take(waits: &Waits, tid: u32, here: u64, write: impl FnOnce(&Live)) -> Option<u32> {
    // It is not known which one that is.
    if tid == 0 {
        return None;
    }
    leave_those(waits, tid, |at| at <= here);
    let place = free(&waits.in_use, tid)? as u32;
    let live = &waits.live[place as usize];
    write(live);
    live.stack.store(here, Relaxed);
    let innermost = &figures(waits, tid).innermost;
    live.outer.store(innermost.load(Relaxed), Relaxed);
    // Release: a reader that sees the thread sees its wait, or a later one.
    live.tid.store(tid, Release);
    innermost.store(place + 1, Relaxed);
    Some(place)
}

/// The thread leaves its place.
pub fn leave(waits: &Waits, tid: u32, place: u32) {
    let live = waits.live.get(place as usize);
    // A handler may have forked: the child's places are others.
    let Some(live) = live.filter(|live| live.tid.load(Relaxed) == tid) else {
        return;
    };
    let innermost = &figures(waits, tid).innermost;
    innermost.store(live.outer.load(Relaxed), Relaxed);
    live.tid.store(0, Relaxed);
    let word = &waits.in_use[place as usize / 64];
    // Release: pairs with the acquire in `free`.
    word.fetch_and(!(1 << (place % 64)), Release);
}

/// The thread ends.
pub fn leave_all(waits: &Waits, tid: u32) {
    leave_those(waits, tid, |_| true);
}

/// The thread leaves its innermost places, as far as their addresses are such.
fn leave_those(waits: &Waits, tid: u32, is_such: impl Fn(u64) -> bool) {
    for _ in 0..MOST_NESTED {
        let innermost = figures(waits, tid).innermost.load(Relaxed);
        let Some(place) = innermost.checked_sub(1) else {
            return;
        };
        let live = waits.live.get(place as usize);
        match live.filter(|live| live.tid.load(Relaxed) == tid) {
            Some(live) if is_such(live.stack.load(Relaxed)) => leave(waits, tid, place),
            Some(_) => return,
            // A handler has jumped out while it was left.
            None => figures(waits, tid).innermost.store(0, Relaxed),
        }
    }
}

/// A free place, near one that depends on the thread.
fn free(in_use: &[AtomicU64], tid: u32) -> Option<usize> {
    let start = tid as usize % in_use.len();
    (0..in_use.len()).find_map(|step| {
        let index = (start + step) % in_use.len();
        let word = &in_use[index];
        let mut seen = word.load(Relaxed);
        while seen != u64::MAX {
            let bit = seen.trailing_ones();
            // Acquire: pairs with the release in `leave`, after the last use of the place.
            match word.compare_exchange_weak(seen, seen | 1 << bit, Acquire, Relaxed) {
                Ok(_) => return Some(index * 64 + bit as usize),
                Err(other) => seen = other,
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use std::alloc::{Layout, alloc_zeroed};

    use overlock_shared::LIVE;

    use super::*;

    fn waits() -> Box<Waits> {
        // SAFETY: the type has a size.
        let zeros = unsafe { alloc_zeroed(Layout::new::<Waits>()) };
        assert!(!zeros.is_null());
        // SAFETY: allocated for it, and all zero bytes are a value of it.
        unsafe { Box::from_raw(zeros.cast()) }
    }

    fn taken(waits: &Waits) -> u32 {
        let words = waits.in_use.iter();
        words.map(|word| word.load(Relaxed).count_ones()).sum()
    }

    /// Fails where a wait that a handler has jumped out of keeps its place.
    #[test]
    fn the_place_of_a_wait_that_was_jumped_out_of_is_free_again() {
        let waits = waits();
        for _ in 0..LIVE + 10 {
            assert!(take(&waits, 7, 0x1000, |_| {}).is_some());
        }
        assert_eq!(taken(&waits), 1);
        // The thread returned further.
        take(&waits, 7, 0x2000, |_| {}).unwrap();
        assert_eq!(taken(&waits), 1);
        let another = take(&waits, 8, 0x3000, |_| {}).unwrap();
        assert_eq!(taken(&waits), 2);
        leave_all(&waits, 7);
        assert_eq!(taken(&waits), 1);
        leave(&waits, 8, another);
        assert_eq!(taken(&waits), 0);
    }

    #[test]
    fn waits_within_others_have_places_of_their_own() {
        let waits = waits();
        let outer = take(&waits, 7, 0x3000, |_| {}).unwrap();
        let inner = take(&waits, 7, 0x2000, |_| {}).unwrap();
        assert_ne!(outer, inner);
        leave(&waits, 7, inner);
        assert_eq!(waits.live[outer as usize].tid.load(Relaxed), 7);
        take(&waits, 7, 0x1000, |_| {}).unwrap();
        // Both are gone: the second wait's handler has jumped out of the first.
        take(&waits, 7, 0x3000, |_| {}).unwrap();
        assert_eq!(taken(&waits), 1);
        leave(&waits, 7, outer);
        leave(&waits, 7, outer);
        leave_all(&waits, 7);
        assert_eq!(taken(&waits), 0);
    }

    /// Fails where threads with the same place among the figures keep each other's.
    #[test]
    fn threads_of_one_place_among_the_figures_leave_their_own() {
        let waits = waits();
        let other = 7 + waits.threads.len() as u32;
        let one = take(&waits, 7, 0x1000, |_| {}).unwrap();
        let two = take(&waits, other, 0x1000, |_| {}).unwrap();
        leave(&waits, 7, one);
        leave(&waits, other, two);
        assert_eq!(taken(&waits), 0);
    }
}
