//! The lock of the validator's own tables.
//!
//! It needs no queue node, no allocation and no thread-local memory, and is taken only for
//! something new. Its word names the thread that holds it.
//!
//! - G1: a holder does not stop: signals are blocked while it holds the gate. A collector parks
//!   threads by signals, and takes locks while they are parked. Signals of a thread's own faults
//!   stay open: blocked ones would end the program.
//!   Under a seccomp filter they cannot be blocked. Then nobody waits for the gate for long: what
//!   would have been looked up is not. A thread that waits for the gate does not hold it:
//!   meanwhile signals come as they would without the validator. Nor does a thread hold it that
//!   calls what the program may have replaced, or that writes a report: a user can still
//!   [end](Quiet::endable) the program then.
//! - G2: in a child of fork the holder may not exist, and the tables are as it left them: half
//!   written. Such a child is *blind*: it validates nothing, for nothing there can be trusted.

mod quiet;

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

use overlock_core::platform::backoff_sleep;
use overlock_core::{Platform, Spin};
use overlock_linux::__private::calls::thread_id;
use overlock_linux::__private::{extras, system_call};
use overlock_linux::Linux;

pub(super) use quiet::{Quiet, mask};

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
                // A signal handler may have forked meanwhile: what is behind a child's free gate
                // may be half written.
                return Some(inside).filter(|_| !is_blind());
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
    pub(super) fn enter_within(&self, limit: Duration, quiet: &Quiet) -> Option<Inside<'_>> {
        let me = extras::ask(thread_id).unwrap_or(UNKNOWN);
        let mut end = None;
        loop {
            if INSIDE.replace(true) {
                return None;
            }
            if self.poll(me) {
                return Some(Inside(self));
            }
            INSIDE.set(false);
            let now = Linux::now();
            if now >= *end.get_or_insert_with(|| now.plus(limit)) {
                return None;
            }
            quiet.open_while(|| backoff_sleep::<Linux>(BACKOFF_SLEEP_NS));
        }
    }

    /// Whether the calling thread holds it now, after a while without a sleep.
    fn poll(&self, me: u32) -> bool {
        let spin = Spin::Polls(POLLS);
        while Linux::wait_until(&self.0, Relaxed, spin, |seen: u32| seen == 0).is_ok() {
            // 0 -> me. Acquire: pairs with the release of the previous holder.
            if self.0.compare_exchange(0, me, Acquire, Relaxed).is_ok() {
                return true;
            }
            // Another thread was faster.
        }
        false
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
    use super::super::signal::{SYNCHRONOUS, bit};
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

    /// Fails where a signal waits for whoever holds the gate.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no signals")]
    fn a_thread_that_waits_for_the_gate_handles_its_signals() {
        static HANDLED: AtomicBool = AtomicBool::new(false);

        extern "C" fn handle(_: i32) {
            HANDLED.store(true, Relaxed);
        }

        // SAFETY: the handler stores to a static.
        let before = unsafe { libc::signal(libc::SIGURG, handle as *const () as usize) };
        assert_ne!(before, libc::SIG_ERR);
        let gate = Gate::new();
        let quiet = Quiet::begin();
        let inside = gate.enter(&quiet).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // It has the mask of the thread that has started it.
                mask(libc::SIG_UNBLOCK, Some(bit(libc::SIGURG)));
                let quiet = Quiet::begin();
                // SAFETY: the signal has a handler.
                unsafe { libc::raise(libc::SIGURG) };
                assert!(!HANDLED.load(Relaxed));
                assert!(gate.enter(&quiet).is_some());
                assert_ne!(mask(libc::SIG_BLOCK, None) & bit(libc::SIGURG), 0);
            });
            let begin = std::time::Instant::now();
            while !HANDLED.load(Relaxed) && begin.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(HANDLED.load(Relaxed));
            drop(inside);
        });
    }

    #[test]
    fn where_signals_cannot_be_blocked_nobody_waits_for_a_holder_that_may_be_parked() {
        let gate = Gate::new();
        let quiet = Quiet::begin();
        let inside = gate.enter(&quiet).unwrap();
        std::thread::scope(|scope| {
            let enters = || gate.enter(&Quiet::without_calls()).is_some();
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
