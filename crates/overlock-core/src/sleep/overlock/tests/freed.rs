//! I4: nothing touches the lock after the exchange by which an unlock releases or hands
//! off.

use std::vec;
use std::vec::Vec;

use super::*;
use crate::toy::watch::{Access, Watch, after, freed, touches, watch};

/// Runs on a thread of its own, since memory marked as freed stays so for the thread.
fn is_the_last_access(word: u32, fair: bool) {
    let unlock = std::thread::spawn(move || unlock_watched(word, fair));
    assert_eq!(unlock.join().unwrap(), vec![], "{word:#x}");
}

fn unlock_watched(word: u32, fair: bool) -> Vec<Access> {
    let lock = Overlock::<Watch>::new();
    lock.word.store(word, Relaxed);
    watch(&lock);
    if !fair && word & 0xff != LOCKED {
        // The fast path's, which fails.
        after(Access::Exchange, || ());
    }
    after(Access::Exchange, freed);
    if fair {
        // SAFETY: the word says that the lock is held, and no other thread knows of it.
        unsafe { lock.unlock_fair(()) };
    } else {
        // SAFETY: as above.
        unsafe { lock.unlock(()) };
    }
    assert_eq!(crate::toy::watch::left(), 0);
    let mut touches = touches();
    // Under Miri weak exchanges fail spuriously, and are tried again.
    let last = touches
        .iter()
        .rposition(|access| *access == Access::Exchange);
    touches.drain(..last.filter(|_| cfg!(miri)).map_or(0, |last| last + 1));
    touches
}

#[test]
fn release() {
    is_the_last_access(LOCKED, false);
    is_the_last_access(LOCKED, true);
}

#[test]
fn release_while_a_counted_thread_is_awake() {
    is_the_last_access(LOCKED | SLEEPER, false);
}

#[test]
fn waking_release() {
    is_the_last_access(LOCKED | WAKE | SLEEPER, false);
}

#[test]
fn handoffs() {
    is_the_last_access(LOCKED | WAKE | HANDOFF | SLEEPER, false);
    is_the_last_access(LOCKED | WAKE | HANDOFF | SLEEPER, true);
    is_the_last_access(LOCKED | WAKE | SLEEPER, true);
}
