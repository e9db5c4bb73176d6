//! The address of a lock, and the thread that its memory names as its owner, by glibc's layouts.
//!
//! Other libraries' mutexes and rwlocks, such as those of Rust and musl, name no owner in a word of
//! which that could be told for sure.

use super::kinds::Kind;
use super::records::Wait;

/// A lock, of which a wait has the address of a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub lock: u64,
    /// The id that the owner has in its own namespace.
    pub owner: Option<u32>,
}

/// FUTEX_LOCK_PI and FUTEX_LOCK_PI2.
const PI: [u32; 2] = [6, 13];
const WAIT_BITSET: u32 = 9;
const COMMAND: u32 = 127;
const TID: u32 = 0x3fff_ffff;

/// The lock that a wait of this kind is for.
pub fn place(wait: &Wait, kind: Kind, is_pthreads: bool) -> Place {
    let word = wait.word(0);
    let at = |distance: u64, owner: u32| Place {
        lock: wait.address.wrapping_sub(distance),
        owner: Some(owner).filter(|&owner| owner != 0),
    };
    if PI.contains(&(wait.operation & COMMAND)) {
        // The kernel knows the owner by it.
        return at(0, word & TID);
    }
    match (kind.name, is_pthreads, word) {
        // It has waiters; the owner is behind the depth.
        ("mutex", true, 2) => at(0, wait.word(2)),
        // One that is robust has its owner in the word.
        ("mutex", true, _) if word & TID != 0 && word & TID == wait.word(2) => at(0, word & TID),
        // The phase is the writers' (with the mark of waiters), and then a writer has it; or the
        // readers', for whom the first of the writers waits. Writers wait for each other at the
        // word behind.
        ("read", true, 3) | ("write", true, 2) => at(8, wait.word(4)),
        ("write", true, 3) => at(12, wait.word(3)),
        // Its two groups of waiters have a word each; it begins at a multiple of eight.
        ("cond" | "cond as lock", true, _) if wait.operation & COMMAND == WAIT_BITSET => {
            at(40 + (wait.address & 7), 0)
        }
        _ => at(0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::{WORDS, WORDS_BEFORE};
    use super::*;

    /// A wait at a word of a lock, which begins here.
    fn wait(lock: &[u32], futex: usize, operation: u32) -> Wait {
        let mut words = [0; WORDS];
        for (at, word) in words.iter_mut().enumerate() {
            let at = (at + futex).checked_sub(WORDS_BEFORE);
            *word = at.and_then(|at| lock.get(at)).copied().unwrap_or(7777);
        }
        Wait {
            address: 0x1000 + 4 * futex as u64,
            operation,
            words,
            ..Wait::default()
        }
    }

    fn of(lock: &[u32], futex: usize, operation: u32, name: &'static str) -> (u64, Option<u32>) {
        let kind = Kind {
            name,
            is_event: false,
        };
        let place = place(&wait(lock, futex, operation), kind, true);
        (place.lock, place.owner)
    }

    #[test]
    fn owners_stand_where_glibc_writes_them() {
        let mutex = [2, 1, 42];
        assert_eq!(of(&mutex, 0, 128, "mutex"), (0x1000, Some(42)));
        let robust = [0x8000_002a, 1, 42];
        assert_eq!(of(&robust, 0, 0, "mutex"), (0x1000, Some(42)));
        assert_eq!(of(&[0x8000_002a, 0, 0], 0, 6, "mutex"), (0x1000, Some(42)));
        assert_eq!(of(&[2, 0, 0], 0, 128, "mutex"), (0x1000, None));
        let written = [1, 2, 3, 3, 0, 0, 42, 0];
        assert_eq!(of(&written, 2, 137, "read"), (0x1000, Some(42)));
        assert_eq!(of(&written, 3, 137, "write"), (0x1000, Some(42)));
        let is_read = [9, 0, 2, 1, 0, 0, 0, 0];
        assert_eq!(of(&is_read, 2, 137, "write"), (0x1000, None));
        assert_eq!(of(&[0; 12], 10, 137 | 256, "cond"), (0x1000, None));
        assert_eq!(of(&[0; 12], 11, 137 | 256, "cond"), (0x1000, None));
    }

    #[test]
    fn words_of_other_libraries_name_nobody() {
        let kind = Kind {
            name: "mutex",
            is_event: false,
        };
        let rusts = wait(&[2, 1, 42], 0, 128);
        assert_eq!(place(&rusts, kind, false).owner, None);
    }
}
