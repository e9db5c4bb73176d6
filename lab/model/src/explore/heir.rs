//! The bound of the recommended mutex, checked in every execution: once a waiter is the heir,
//! nobody acquires before it. The changes of the mutex's word tell all.
//!
//! The present owner has acquired before. Others may come first where a thread that has set `slow`
//! is still restarting releases when the heir asks: one that was under way may store over the
//! flags. Then each that comes first does so by a release that has not seen the request. Scenarios
//! in which somebody may become an heir have one such lock.

use std::cell::Cell;

use overlock_core::sleep::overlock::{HANDOFF, LOCKED, PICKUP, SLOW};

thread_local! {
    static HEIR: Cell<Option<usize>> = const { Cell::new(None) };
    /// The threads that have set `slow` and whose restart is not through, as bits.
    static RESTART: Cell<u32> = const { Cell::new(0) };
    /// Whether there was one when the heir asked.
    static MAY_BE_BYPASSED: Cell<bool> = const { Cell::new(false) };
    /// How many releases have not seen the heir's request.
    static UNSEEN: Cell<usize> = const { Cell::new(0) };
    /// How many have acquired the lock before the heir.
    static BYPASSES: Cell<usize> = const { Cell::new(0) };
}

/// An execution begins.
pub(super) fn rewind() {
    set(None);
    RESTART.set(0);
}

fn set(heir: Option<usize>) {
    HEIR.set(heir);
    UNSEEN.set(0);
    BYPASSES.set(0);
}

/// `thread` has restarted all releases.
pub(super) fn restarted(thread: usize) {
    RESTART.set(RESTART.get() & !(1 << thread));
}

/// The source that changes its word.
pub(super) const SOURCE: &str = "overlock-core/src/sleep/overlock.rs";

/// `thread` has changed the mutex's word from `old` to `new`.
///
/// # Panics
///
/// If it has acquired the lock before the heir, and no release that was under way let it.
pub(super) fn changed(old: u32, new: u32, thread: usize) {
    let (set_now, cleared) = (new & !old, old & !new);
    let acquires = set_now & LOCKED != 0 || cleared & PICKUP != 0;
    if set_now & SLOW != 0 && !acquires {
        RESTART.set(RESTART.get() | 1 << thread);
    }
    if set_now & HANDOFF != 0 {
        MAY_BE_BYPASSED.set(RESTART.get() != 0);
        return set(Some(thread));
    }
    let Some(heir) = HEIR.get() else {
        return;
    };
    if acquires && heir != thread {
        BYPASSES.set(BYPASSES.get() + 1);
        assert!(BYPASSES.get() <= UNSEEN.get(), "the heir has been bypassed");
    } else if heir == thread && (acquires || cleared & HANDOFF != 0) {
        // It owns the lock, or gives up.
        set(None);
    } else if cleared & LOCKED != 0 {
        // One that takes byte 0 for just locked, or a slow one after such a release has erased the
        // flags.
        let is_slow = cleared == LOCKED && new & 0xff != 0;
        let is_unseen = new & 0xff == 0 || is_slow && MAY_BE_BYPASSED.get();
        if is_unseen {
            UNSEEN.set(UNSEEN.get() + 1);
            assert!(MAY_BE_BYPASSED.get(), "a release has not seen the heir");
        }
    }
}

#[cfg(test)]
mod tests {
    use overlock_core::sleep::overlock::WAKE;

    use super::*;
    use crate::sources::SOURCES;

    #[test]
    fn its_source_is_one_whose_sites_are_counted() {
        assert!(SOURCES.iter().any(|source| source.path == SOURCE));
    }

    const ASKED: u32 = LOCKED | WAKE | SLOW | HANDOFF;

    /// Thread 1 asks while thread 0 owns the mutex.
    fn asks(before: u32) {
        rewind();
        changed(before, ASKED, 1);
    }

    #[test]
    fn the_heir_is_the_next() {
        asks(LOCKED | WAKE | SLOW);
        changed(ASKED, ASKED | PICKUP, 0);
        changed(ASKED | PICKUP, LOCKED | WAKE | SLOW, 1);
        changed(LOCKED | WAKE | SLOW, SLOW, 1);
        changed(SLOW, SLOW | LOCKED, 2);
    }

    #[test]
    fn a_release_that_was_under_way_lets_one_in() {
        asks(LOCKED);
        changed(ASKED, HANDOFF, 0);
        changed(HANDOFF, HANDOFF | LOCKED, 2);
    }

    #[test]
    #[should_panic(expected = "the heir has been bypassed")]
    fn it_does_not_let_two_in() {
        a_release_that_was_under_way_lets_one_in();
        changed(ASKED, SLOW | HANDOFF, 2);
        changed(SLOW | HANDOFF, LOCKED | SLOW | HANDOFF, 3);
    }

    #[test]
    #[should_panic(expected = "the heir has been bypassed")]
    fn no_other_may_pick_up_what_is_handed_off() {
        asks(LOCKED | WAKE | SLOW);
        changed(ASKED, ASKED & !HANDOFF | PICKUP, 0);
        changed(ASKED & !HANDOFF | PICKUP, LOCKED | WAKE | SLOW, 2);
    }

    #[test]
    #[should_panic(expected = "a release has not seen the heir")]
    fn none_is_under_way_once_all_are_restarted() {
        rewind();
        changed(LOCKED, LOCKED | WAKE | SLOW, 1);
        restarted(1);
        changed(LOCKED | WAKE | SLOW, ASKED, 1);
        changed(ASKED, HANDOFF, 0);
    }
}
