//! The lock of the validator's own tables.
//!
//! It needs no queue node, no allocation and no thread-local memory, and is taken only for
//! something new. Its word names the thread that holds it.
//!
//! - G1: a holder does not stop: signals are blocked while it holds the gate. A collector parks
//!   threads by signals, and takes locks while they are parked. Signals of a thread's own faults
//!   stay open: blocked ones would end the program.
//!   Under a seccomp filter they cannot be blocked. Then nobody waits for the gate for long: what
//!   would have been looked up is not.
//! - G2: in a child of fork the holder may not exist, and the tables are as it left them: half
//!   written. Such a child is *blind*: it validates nothing, for nothing there can be trusted.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

use overlock_core::platform::backoff_sleep;
use overlock_core::{Platform, Spin};
use overlock_linux::__private::calls::thread_id;
use overlock_linux::__private::{extras, system_call};
use overlock_linux::Linux;

use super::signal::SYNCHRONOUS;

/// A thread that may not ask for its number.
const UNKNOWN: u32 = u32::MAX;

/// Polls before a waiter sleeps.
const POLLS: u32 = 200;

/// Length of that sleep: nobody wakes the waiter, so that leaving is one store.
const BACKOFF_SLEEP_NS: u64 = 1_000_000;

/// A wait so long is a reason to ask whether the holder exists.
const LONG: Duration = Duration::from_secs(1);

/// The longest wait where signals cannot be blocked: one may have parked the holder.
const SHORT: Duration = Duration::from_millis(20);

pub(super) struct Gate(AtomicU32);

/// Proof that the caller has exclusive access to the protected tables.
pub(super) struct Inside<'a>(&'a Gate);

thread_local! {
    /// Whether the thread is inside of a gate, or about to be. Without [`Quiet`] its handlers may
    /// come then, and must not wait for it.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The tables of this process are half-written copies (G2).
static BLIND: AtomicBool = AtomicBool::new(false);

pub(super) fn is_blind() -> bool {
    // Relaxed: a child is blind from its first instruction on, or finds out by itself.
    BLIND.load(Relaxed)
}

/// Signals are blocked until it is dropped (G1), if such calls are granted.
pub(super) struct Quiet {
    before: u64,
    /// Dropped after the mask is as before: no filter comes in between.
    granted: Option<extras::Inside<'static>>,
}

impl Quiet {
    pub(super) fn begin() -> Quiet {
        let granted = if cfg!(miri) { None } else { extras::enter() };
        let before = match granted {
            Some(_) => mask(libc::SIG_BLOCK, Some(!SYNCHRONOUS)),
            None => 0,
        };
        Quiet { before, granted }
    }

    fn blocks(&self) -> bool {
        self.granted.is_some() || cfg!(miri)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if self.granted.is_some() {
            mask(libc::SIG_SETMASK, Some(self.before));
        }
    }
}

/// Changes the thread's mask of signals. Returns the one before. By a system call: the program may
/// have replaced the C library's function, which takes a set of another size besides.
pub(super) fn mask(how: i32, signals: Option<u64>) -> u64 {
    let mut before = 0u64;
    let new = signals.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: reads and writes the 8 bytes that the size says, or none.
    unsafe {
        system_call!(
            libc::SYS_rt_sigprocmask,
            how,
            new,
            &raw mut before,
            size_of::<u64>(),
        )
    };
    before
}

impl Gate {
    pub(super) const fn new() -> Gate {
        Gate(AtomicU32::new(0))
    }

    /// `None` in a blind process, and in a handler that has interrupted a thread inside. Also
    /// if the gate stays taken, and signals cannot be blocked.
    pub(super) fn enter<'a>(&'a self, quiet: &Quiet) -> Option<Inside<'a>> {
        while !is_blind() && !INSIDE.get() {
            let limit = if quiet.blocks() { LONG } else { SHORT };
            if let Some(inside) = self.enter_within(limit, quiet) {
                return Some(inside);
            }
            if !quiet.blocks() {
                return None;
            }
            // A child of a fork that nobody has told: a holder in another process is none.
            if !is_thread_of_this(self.0.load(Relaxed)) {
                BLIND.store(true, Relaxed);
            }
        }
        None
    }

    /// As [`enter`](Self::enter), but gives up if the gate stays taken for `limit`.
    pub(super) fn enter_within(&self, limit: Duration, _: &Quiet) -> Option<Inside<'_>> {
        if INSIDE.replace(true) {
            return None;
        }
        let entered = self.wait(limit);
        if entered.is_none() {
            INSIDE.set(false);
        }
        entered
    }

    fn wait(&self, limit: Duration) -> Option<Inside<'_>> {
        let me = extras::ask(thread_id).unwrap_or(UNKNOWN);
        let mut end = None;
        loop {
            let spin = Spin::Polls(POLLS);
            let seen = Linux::wait_until(&self.0, Relaxed, spin, |seen: u32| seen == 0);
            if seen.is_ok() {
                // 0 -> me. Acquire: pairs with the release of the previous holder.
                if self.0.compare_exchange(0, me, Acquire, Relaxed).is_ok() {
                    return Some(Inside(self));
                }
                continue; // another thread was faster
            }
            let now = Linux::now();
            if now >= *end.get_or_insert_with(|| now.plus(limit)) {
                return None;
            }
            backoff_sleep::<Linux>(BACKOFF_SLEEP_NS);
        }
    }

    /// For the child of a fork, in which no thread can be inside. Returns whether one was.
    pub(super) fn reset(&self) -> bool {
        self.0.swap(0, Relaxed) != 0
    }

    /// As [`reset`](Self::reset); a process in which one was is blind.
    pub(super) fn inherit(&self) {
        if self.reset() {
            BLIND.store(true, Relaxed);
        }
    }
}

/// Whether there is such a thread in this process, or nobody can tell.
fn is_thread_of_this(thread: u32) -> bool {
    let process = std::process::id();
    if thread == 0 || thread == UNKNOWN || cfg!(miri) {
        return true;
    }
    // SAFETY: sends nothing.
    let ask = || unsafe { system_call!(libc::SYS_tgkill, process, thread, 0i32) };
    extras::ask(ask) != Some(-(libc::ESRCH as isize))
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire of the next holder.
        self.0.0.store(0, Release);
        INSIDE.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_while_no_signal_can_park_the_holder() {
        let gate = Gate::new();
        let elsewhere = |limit| {
            let enters = || gate.enter_within(limit, &Quiet::begin()).is_some();
            std::thread::scope(|scope| scope.spawn(enters).join().unwrap())
        };
        let open = mask(libc::SIG_BLOCK, None);
        {
            let quiet = Quiet::begin();
            let inside = gate.enter(&quiet).unwrap();
            assert!(!elsewhere(Duration::from_millis(5)));
            // As a handler would, without waiting.
            assert!(gate.enter(&quiet).is_none());
            let blocked = mask(libc::SIG_BLOCK, None);
            assert_eq!(blocked & 1 << (libc::SIGUSR1 - 1), 1 << (libc::SIGUSR1 - 1));
            assert_eq!(blocked & SYNCHRONOUS, open & SYNCHRONOUS);
            drop(inside);
            assert!(elsewhere(Duration::from_secs(120)));
            assert!(gate.enter(&quiet).is_some());
        }
        assert_eq!(mask(libc::SIG_BLOCK, None), open);
    }

    #[test]
    fn where_signals_cannot_be_blocked_nobody_waits_for_a_holder_that_may_be_parked() {
        let gate = Gate::new();
        let quiet = Quiet::begin();
        let inside = gate.enter(&quiet).unwrap();
        let filtered = Quiet {
            before: 0,
            granted: None,
        };
        std::thread::scope(|scope| {
            let enters = || gate.enter(&filtered).is_some();
            assert!(cfg!(miri) || !scope.spawn(enters).join().unwrap());
        });
        drop(inside);
    }

    /// Fails where the child of a fork takes half-written tables over, and where it waits for a
    /// thread that it does not have.
    #[test]
    fn a_child_that_was_forked_while_a_thread_was_inside_is_blind_and_goes_on() {
        use crate::{GATE, How, Site, acquired, class_named, fork_child, set_output, thread};

        let quiet = Quiet::begin();
        let inside = GATE.enter(&quiet).unwrap();
        // SAFETY: the child calls functions of this crate only, which do not allocate, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            set_output(-1);
            fork_child();
            let class = class_named("gate::tests nothing");
            acquired(0x100, class, How::EXCLUSIVE, Site::NONE);
            let is_fine = is_blind() && class.to_bits() == 0 && thread::enter().is_none();
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!is_fine)) };
        }
        drop(inside);
        drop(quiet);
        let mut status = 0;
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0);
        assert!(!is_blind());
    }

    #[test]
    fn a_holder_that_exists_is_told_from_one_that_fork_has_left_behind() {
        assert!(is_thread_of_this(thread_id()));
        // The first process of all is no thread of this one.
        assert!(!is_thread_of_this(1));
        let gate = Gate(AtomicU32::new(1));
        assert!(gate.reset());
        assert!(!gate.reset());
    }
}
