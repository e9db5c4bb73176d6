//! The bound of the recommended mutex, checked in every execution: once a waiter is the heir, nobody acquires before it.
//!
//! (The present owner has acquired before.) Scenarios in which somebody may become an heir have one such lock.

use std::cell::Cell;

use overlock_core::diagram::Arrow;

thread_local! {
    static HEIR: Cell<Option<usize>> = const { Cell::new(None) };
}

/// An execution begins.
pub(super) fn rewind() {
    HEIR.set(None);
}

/// `thread` has just gone along this arrow.
///
/// # Panics
///
/// Where it has acquired the lock before the heir.
pub(super) fn took(arrow: Arrow, thread: usize) {
    if arrow.diagram.name != "overlock" {
        return;
    }
    let text = arrow.diagram.arrows[arrow.index];
    if text.ends_with("as the heir") {
        HEIR.set(Some(thread));
    } else if text.starts_with("free -> held") || text.starts_with("given -> held") {
        let heir = HEIR.take().unwrap_or(thread);
        assert_eq!(heir, thread, "the heir has been passed");
    } else if text.starts_with("counted -> gone") && HEIR.get() == Some(thread) {
        HEIR.set(None);
    }
}
