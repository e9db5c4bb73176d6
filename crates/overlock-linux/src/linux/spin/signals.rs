//! Signals that come while a thread spins.
//!
//! The kernel would have ended the thread's sleep for a signal with a handler. A thread that does
//! not sleep yet would miss it. So a process that handles signals blocks them while it spins, and
//! looks afterwards whether one has come. Nor can a handler leave the spin by a jump.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::super::clock::ticks;

/// Signals that the thread holds back until this is dropped.
#[derive(Debug)]
pub struct Held {
    /// The signals that it blocked before.
    before: u64,
    /// They belong to its thread.
    _unsend: PhantomData<*const ()>,
}

/// Of the instruction that the thread is at: they cannot wait. Rust's std handles two of them in
/// all programs.
const OWN: [i32; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];
/// The C library's own, which end no wait.
const RESERVED: [i32; 2] = [32, 33];

/// Signal 1 is the lowest bit of a set.
const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

fn set(signals: &[i32]) -> u64 {
    signals.iter().fold(0, |set, &signal| set | bit(signal))
}

/// Sets the thread's mask; returns the former one. None if that is refused.
fn mask(signals: u64) -> Option<u64> {
    let mut before = 0u64;
    let (how, new, old) = (libc::SIG_SETMASK, &raw const signals, &raw mut before);
    // SAFETY: the one is valid for the read, the other for the write.
    let answer = unsafe { crate::system_call!(libc::SYS_rt_sigprocmask, how, new, old, 8usize) };
    (answer == 0).then_some(before)
}

impl Held {
    /// Makes system calls. None if they are refused.
    pub fn begin() -> Option<Held> {
        Some(Held {
            before: mask(!set(&OWN))?,
            _unsend: PhantomData,
        })
    }

    /// Whether a signal has come since then that ends a wait: one with a handler, and without
    /// SA_RESTART unless a wait ends `by_any`. The handler runs when this is dropped.
    pub fn has_ended(&self, by_any: bool) -> bool {
        let mut pending = 0u64;
        // SAFETY: valid for the write.
        unsafe { crate::system_call!(libc::SYS_rt_sigpending, &raw mut pending, 8usize) };
        is_handled(pending & !self.before, by_any)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        mask(self.before);
    }
}

/// Whether the process handles one of these signals; with SA_RESTART only if that `counts`.
fn is_handled(signals: u64, restarting_counts: bool) -> bool {
    /// The kernel's `struct sigaction`, as far as it is of interest, and room for the rest.
    #[repr(C)]
    struct Action {
        handler: usize,
        flags: usize,
        rest: [usize; 2],
    }
    let signals = signals & !set(&OWN) & !set(&RESERVED);
    (1..=64).any(|signal| {
        if signals & bit(signal) == 0 {
            return false;
        }
        let mut action = Action {
            handler: 0,
            flags: 0,
            rest: [0; 2],
        };
        let (none, old): (*const Action, _) = (std::ptr::null(), &raw mut action);
        // SAFETY: valid for the write; nothing is changed.
        let answer =
            unsafe { crate::system_call!(libc::SYS_rt_sigaction, signal, none, old, 8usize) };
        answer == 0
            && action.handler > libc::SIG_IGN
            && (restarting_counts || action.flags & libc::SA_RESTART as usize == 0)
    })
}

/// Whether the process handles any signals, at the last look, and the time of the next one.
static HANDLES: AtomicBool = AtomicBool::new(false);
static NEXT: AtomicU64 = AtomicU64::new(0);
const LOOK_NS: u64 = 20_000_000;

/// Whether the process handles signals. It may have begun to in the last 20 ms. Makes system calls.
pub fn are_handled() -> bool {
    let now = ticks();
    let next = NEXT.load(Relaxed);
    let due = || NEXT.compare_exchange(next, now.saturating_add(LOOK_NS), Relaxed, Relaxed);
    if next <= now && due().is_ok() {
        HANDLES.store(is_handled(!0, true), Relaxed);
    }
    HANDLES.load(Relaxed)
}
