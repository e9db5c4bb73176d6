//! The bound of the recommended mutex, checked in every execution: the next acquisition after a
//! request for a handoff is that of a counted thread, or takes the handoff back. The changes of the
//! mutex's word tell all.

use overlock_core::sleep::overlock::{HANDOFF, LOCKED, SLEEPER, WAKE};

/// The source that changes its word.
pub(super) const SOURCE: &str = "overlock-core/src/sleep/overlock.rs";

/// A thread has changed the mutex's word from `old` to `new`.
///
/// # Panics
///
/// If a newcomer has acquired what was handed off and left nothing for the counted threads, or a
/// request has gone without an acquisition.
pub(super) fn changed(old: u32, new: u32) {
    if old & HANDOFF == 0 {
        return;
    }
    let acquires = new & !old & LOCKED != 0;
    let leaves = old / SLEEPER == new / SLEEPER + 1;
    if acquires && leaves {
        assert!(new & HANDOFF == 0, "the handoff has no end");
    } else if acquires {
        assert!(
            new & HANDOFF != 0 && new & WAKE != 0,
            "a newcomer has bypassed the counted threads"
        );
    } else if new & HANDOFF == 0 {
        assert!(
            leaves && new < SLEEPER,
            "a release has not seen the request"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::SOURCES;

    #[test]
    fn its_source_is_one_whose_sites_are_counted() {
        assert!(SOURCES.iter().any(|source| source.path == SOURCE));
    }

    const REQUESTED: u32 = LOCKED | WAKE | HANDOFF | (2 * SLEEPER);
    const HANDED_OFF: u32 = HANDOFF | (2 * SLEEPER);

    #[test]
    fn a_counted_thread_is_the_next() {
        changed(REQUESTED, HANDED_OFF);
        changed(HANDED_OFF, LOCKED | WAKE | SLEEPER);
    }

    #[test]
    fn a_newcomer_may_take_it_back() {
        changed(HANDED_OFF, HANDED_OFF | LOCKED | WAKE);
    }

    #[test]
    #[should_panic(expected = "a newcomer has bypassed the counted threads")]
    fn a_newcomer_leaves_the_request() {
        changed(HANDED_OFF, HANDED_OFF & !HANDOFF | LOCKED | WAKE);
    }

    #[test]
    #[should_panic(expected = "a newcomer has bypassed the counted threads")]
    fn a_newcomer_has_another_sleeper_woken() {
        changed(HANDED_OFF, HANDED_OFF | LOCKED);
    }

    #[test]
    fn a_request_ends_with_the_last_counted_thread() {
        changed(LOCKED | WAKE | HANDOFF | SLEEPER, LOCKED);
    }

    #[test]
    #[should_panic(expected = "a release has not seen the request")]
    fn a_release_hands_off() {
        changed(REQUESTED, 2 * SLEEPER);
    }
}
