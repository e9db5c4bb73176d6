//! The bound of the recommended mutex, checked in every execution: once a waiter is the heir,
//! nobody acquires before it.
//!
//! The present owner has acquired before. Others may come first where a thread that has set `slow`
//! is still restarting releases when the heir asks: one that was under way may store over the
//! flags. Then each that comes first does so by a release that has not seen the request. Scenarios
//! in which somebody may become an heir have one such lock.

use std::cell::Cell;

use overlock_core::diagram::{HasDiagram, Transition};
use overlock_core::sleep::Overlock;

use super::Explorer;

/// Transitions of the lock, as its diagram writes them: see the test.
const RESTARTS: &str = "counted: slow is set, releases are restarted";
const ASKS: [&str; 2] = [
    "woken in vain -> asleep: as the handoff target",
    "woken, old -> handoff target, awake",
];
/// A release that began before the request does not see it.
const RELEASES: &str = "held -> free: byte 0 was just locked";
/// The same by a slow release, whose flags such a release has erased.
const RELEASES_SLOWLY: &str = "held -> free: slow, nobody to wake";
const LEAVES: &str = "counted, or spinner -> gone: at its limit";
/// The beginnings of the acquisitions.
const ACQUIRES: [&str; 2] = ["free -> held", "handed off -> held"];

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

/// `thread` has just gone along this transition.
///
/// # Panics
///
/// If it has acquired the lock before the heir, and no release that was under way let it.
pub(super) fn took(transition: Transition, thread: usize) {
    let [diagram] = Overlock::<Explorer>::DIAGRAMS else {
        unreachable!("its diagram is one");
    };
    if transition.diagram.name != diagram.name {
        return;
    }
    let text = transition.diagram.transitions[transition.index];
    let restarts = RESTART.get();
    let bit = 1 << thread;
    if text == RESTARTS {
        return RESTART.set(restarts | bit);
    }
    // The next transition of that thread.
    RESTART.set(restarts & !bit);
    if ASKS.contains(&text) {
        MAY_BE_BYPASSED.set(restarts != 0);
        return set(Some(thread));
    }
    let Some(heir) = HEIR.get() else {
        return;
    };
    let is_unseen = text == RELEASES || MAY_BE_BYPASSED.get() && text == RELEASES_SLOWLY;
    if is_unseen {
        UNSEEN.set(UNSEEN.get() + 1);
        assert!(MAY_BE_BYPASSED.get(), "a release has not seen the heir");
    } else if ACQUIRES.iter().any(|start| text.starts_with(start)) {
        if heir == thread {
            return set(None);
        }
        BYPASSES.set(BYPASSES.get() + 1);
        assert!(BYPASSES.get() <= UNSEEN.get(), "the heir has been bypassed");
    } else if text == LEAVES && heir == thread {
        set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_has_these_transitions() {
        let texts = Overlock::<Explorer>::DIAGRAMS[0].transitions;
        let named = [RESTARTS, RELEASES, RELEASES_SLOWLY, LEAVES];
        for text in named.iter().chain(&ASKS) {
            assert!(texts.contains(text), "{text}");
        }
        for start in ACQUIRES {
            assert!(texts.iter().any(|text| text.starts_with(start)), "{start}");
        }
    }
}
