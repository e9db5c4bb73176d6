//! System calls beyond `futex`: made until the process [restricts
//! itself](super::Linux::use_futex_alone) to that one, and never after.
//!
//! A seccomp filter may kill a thread that makes such a call. So each caller counts itself first,
//! and the restriction waits for the callers: when the filter comes, none of them is between its
//! check of the word below and its call.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::Platform;
use overlock_core::links::backoff_sleep;

use super::Linux;

/// In a gate: closed. The bits below count the threads inside.
const ALONE: u32 = 1 << 31;

#[derive(Debug)]
struct Gate(AtomicU32);

static GATE: Gate = Gate(AtomicU32::new(0));

/// Timeout of the wait for the threads inside. Each of them is done as soon as it has a CPU. The
/// exception is a thread whose signal handler restricts the process: it is not done before the
/// handler returns.
const TIMEOUT_NS: u64 = 1_000_000_000;

/// Counts the calling thread as inside until it is dropped.
#[derive(Debug)]
pub struct Inside<'a>(&'a Gate);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Gate {
    fn enter(&self) -> Option<Inside<'_>> {
        if !self.is_open() {
            return None;
        }
        // Acquire: pairs with the release in `end`. A refused caller sees all that was given up
        // before.
        let granted = self.0.fetch_add(1, Acquire) & ALONE == 0;
        let inside = Inside(self);
        granted.then_some(inside)
    }

    fn leave(&self) {
        // A handler may have forked meanwhile, and forgotten the caller. Release: pairs with the
        // poll in `end`.
        let left = |word| (word & !ALONE != 0).then(|| word - 1);
        let _ = self.0.fetch_update(Release, Relaxed, left);
    }

    fn is_open(&self) -> bool {
        // Acquire: as in `enter`.
        self.0.load(Acquire) & ALONE == 0
    }

    fn end(&self) {
        // Release: pairs with `enter`.
        self.0.fetch_or(ALONE, Release);
        let until = Linux::now().plus_nanos(TIMEOUT_NS);
        // Acquire: pairs with the release of who leaves.
        while self.0.load(Acquire) != ALONE && Linux::now() < until {
            backoff_sleep::<Linux>();
        }
    }
}

/// Makes system calls, unless they have been given up.
pub fn ask<T>(call: impl FnOnce() -> T) -> Option<T> {
    enter().map(|_inside| call())
}

/// The same for several calls.
pub fn enter() -> Option<Inside<'static>> {
    GATE.enter()
}

/// The calling thread has left by a jump, and an [`Inside`] on its stack is not dropped.
pub fn jump_out() {
    GATE.leave();
}

/// Whether system calls beyond `futex` may be made. A snapshot.
pub fn are_granted() -> bool {
    GATE.is_open()
}

/// Closes the gate. When this returns, no thread is at such a call.
pub(super) fn end() {
    GATE.end();
}

/// After fork() in the child: forget the threads inside, which exist only in the parent.
pub(super) fn forget_others() {
    GATE.0.fetch_and(ALONE, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where `enter` does not count, and where it does not recheck after it has.
    #[test]
    fn who_asks_is_waited_for_and_who_comes_later_is_refused() {
        let gate = Gate(AtomicU32::new(0));
        let (inside, over) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _inside = gate.enter().expect("it is open");
                inside.store(1, Release);
                std::thread::sleep(std::time::Duration::from_millis(50));
                over.store(1, Relaxed);
            });
            while inside.load(Acquire) == 0 {
                std::thread::yield_now();
            }
            gate.end();
            assert_eq!(over.load(Relaxed), 1);
        });
        assert!(gate.enter().is_none());
    }
}
