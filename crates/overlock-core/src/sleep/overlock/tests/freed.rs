//! I5: after the store or exchange by which an unlock releases or gives, nothing touches the lock.

use std::vec;
use std::vec::Vec;

use super::*;
use crate::toy::watch::{Access, Watch, after, freed, touches, watch};

/// On a thread of its own: what is freed stays so.
fn is_the_last_access(word: u32, fair: bool) {
    let unlock = std::thread::spawn(move || unlock_watched(word, fair));
    assert_eq!(unlock.join().unwrap(), vec![], "{word:#x}");
}

fn unlock_watched(word: u32, fair: bool) -> Vec<Access> {
    let lock = Overlock::<Watch>::new();
    lock.word.store(word, Relaxed);
    watch(&lock);
    after(Access::Exchange, freed);
    if fair {
        // SAFETY: the word says that it is held; nobody else knows of it.
        unsafe { lock.unlock_fair(()) };
    } else {
        // SAFETY: as above.
        unsafe { lock.unlock(()) };
    }
    assert_eq!(crate::toy::watch::left(), 0);
    let mut touches = touches();
    // Miri has weak exchanges fail for no reason: then there are several.
    touches.retain(|access| !cfg!(miri) || *access != Access::Exchange);
    touches
}

#[test]
fn release() {
    is_the_last_access(LOCKED, false);
    is_the_last_access(LOCKED, true);
}

#[test]
fn slow_release() {
    is_the_last_access(LOCKED | SLOW, false);
    is_the_last_access(LOCKED | SLOW | SLEEPER, false);
}

#[test]
fn waking_release() {
    is_the_last_access(LOCKED | SLOW | WAKE | SLEEPER, false);
}

#[test]
fn handoffs() {
    is_the_last_access(LOCKED | SLOW | WAKE | ASKED | SLEEPER, false);
    is_the_last_access(LOCKED | SLOW | WAKE | ASKED | SLEEPER, true);
    is_the_last_access(LOCKED | SLOW | WAKE | SLEEPER, true);
}
