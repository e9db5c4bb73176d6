//! The bound of the recommended mutex, checked in every execution: once a waiter is the heir,
//! nobody acquires before it.
//!
//! The present owner has acquired before. One other may come first, where that owner was between
//! the look and the store of a restartable release when the first sleeper set `slow`, and the
//! restart is not through yet: its store frees the lock unseen. Scenarios in which somebody may
//! become an heir have one such lock.

use std::cell::Cell;

use overlock_core::diagram::Arrow;

thread_local! {
    static HEIR: Cell<Option<usize>> = const { Cell::new(None) };
    /// How many releases have not seen the heir's request.
    static UNSEEN: Cell<usize> = const { Cell::new(0) };
    /// How many have acquired the lock before the heir.
    static PASSED: Cell<usize> = const { Cell::new(0) };
}

/// An execution begins.
pub(super) fn rewind() {
    set(None);
}

fn set(heir: Option<usize>) {
    HEIR.set(heir);
    UNSEEN.set(0);
    PASSED.set(0);
}

/// `thread` has just gone along this arrow.
///
/// # Panics
///
/// Where it has acquired the lock before the heir, and no release that was under way let it.
pub(super) fn took(arrow: Arrow, thread: usize) {
    if arrow.diagram.name != "overlock" {
        return;
    }
    let text = arrow.diagram.arrows[arrow.index];
    if text.ends_with("as the heir") {
        return set(Some(thread));
    }
    let Some(heir) = HEIR.get() else {
        return;
    };
    if text.ends_with("nothing is asked of the unlocker") {
        UNSEEN.set(UNSEEN.get() + 1);
        assert_eq!(UNSEEN.get(), 1, "two releases have not seen the heir");
    } else if text.starts_with("free -> held") || text.starts_with("given -> held") {
        if heir == thread {
            return set(None);
        }
        PASSED.set(PASSED.get() + 1);
        assert!(PASSED.get() <= UNSEEN.get(), "the heir has been passed");
    } else if text.starts_with("counted -> gone") && heir == thread {
        set(None);
    }
}
