//! Waits that a signal handler jumps out of.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicUsize, compiler_fence};

use overlock_core::node::{CONTEXTS, NodeId};
use overlock_core::rw::overlock_rw;
use overlock_core::sleep::condvar;

use super::{Linux, extras, slot};

/// Waits that nest: in ordinary code, and in handlers that interrupt it. Those beyond are not
/// noted, and keep what they own.
const NESTED: usize = 4;

thread_local! {
    /// The property of the thread in its waits, the innermost last: see
    /// [`begin_gate`](overlock_core::FutexPlatform::begin_gate). Only the thread and the handlers
    /// that interrupt it use them: so all accesses are Relaxed, with fences for the compiler. 0
    /// where a jump has abandoned it.
    static GATES: [AtomicUsize; NESTED] = const { [const { AtomicUsize::new(0) }; NESTED] };
    static DEPTH: AtomicUsize = const { AtomicUsize::new(0) };
}

/// The number of waits that nest now.
fn depth() -> usize {
    DEPTH.with(|depth| depth.load(Relaxed))
}

/// Changes the number, unless a handler has jumped meanwhile.
fn change_depth(from: usize, to: usize) -> bool {
    compiler_fence(SeqCst);
    let changed = DEPTH.with(|depth| depth.compare_exchange(from, to, Relaxed, Relaxed));
    compiler_fence(SeqCst);
    changed.is_ok()
}

#[inline(never)]
pub(super) fn begin_gate(gate: usize) {
    GATES.with(|gates| {
        loop {
            let depth = depth();
            let place = gates.get(depth);
            // The place is taken before it names the gate: a handler between the two uses the next.
            place.inspect(|place| place.store(0, Relaxed));
            if !change_depth(depth, depth + 1) {
                continue;
            }
            let Some(place) = place else { return };
            place.store(gate, Relaxed);
            compiler_fence(SeqCst);
            // Unless a jump before that store has freed the place, and not abandoned the gate.
            if self::depth() > depth || place.load(Relaxed) != gate {
                return;
            }
        }
    });
}

#[inline(never)]
pub(super) fn owns_gate(gate: usize) -> bool {
    match depth() {
        0 => false,
        depth => GATES.with(|gates| {
            let place = gates.get(depth - 1);
            place.is_none_or(|place| place.load(Relaxed) == gate)
        }),
    }
}

#[inline(never)]
pub(super) fn end_gate(gate: usize) -> bool {
    let depth = depth();
    owns_gate(gate) && change_depth(depth, depth - 1)
}

/// The calling thread is about to jump, from a signal handler perhaps: it passes on what it owns
/// only while it waits. Others would wait for that for ever.
pub fn jump_out() {
    if let Some(slot) = slot::mine() {
        for context in 0..CONTEXTS {
            condvar::jump_out::<Linux>(NodeId::new(slot, context));
        }
    }
    let depth = DEPTH.with(|depth| depth.swap(0, Relaxed));
    GATES.with(|gates| {
        for place in gates.iter().take(depth) {
            let gate = place.swap(0, Relaxed);
            if gate != 0 {
                // SAFETY: noted by a wait of this thread, which a handler has interrupted: until
                // the jump the lock is there, and the thread owns what is noted.
                unsafe { overlock_rw::abandon::<Linux>(gate) };
            }
        }
    });
}

/// After fork() in the child: the locks forget their waiters, and what the thread owns in waits
/// that a handler has interrupted.
pub(super) fn forget() {
    DEPTH.with(|depth| depth.store(0, Relaxed));
}

/// Runs `body` with signals blocked, unless such calls have been given up. Those of a thread's own
/// faults, and of a filter that traps system calls, stay open: blocked ones would end the program.
#[inline(never)]
pub(super) fn without_handlers(body: impl FnOnce()) {
    let granted = if cfg!(miri) { None } else { extras::enter() };
    let before = granted.as_ref().map(|_| mask(libc::SIG_BLOCK, !FAULTS));
    body();
    if let Some(before) = before {
        mask(libc::SIG_SETMASK, before);
    }
}

/// The signals of faults, a bit each.
const FAULTS: u64 = bit(libc::SIGSEGV)
    | bit(libc::SIGBUS)
    | bit(libc::SIGILL)
    | bit(libc::SIGFPE)
    | bit(libc::SIGTRAP)
    | bit(libc::SIGSYS);

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Changes the thread's mask of signals. Returns the one before.
fn mask(how: i32, signals: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: reads and writes the 8 bytes that the size says.
    unsafe {
        crate::system_call!(
            libc::SYS_rt_sigprocmask,
            how,
            &raw const signals,
            &raw mut before,
            size_of::<u64>(),
        )
    };
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where the end of a wait that a jump has abandoned counts the waits below 0.
    #[test]
    fn a_wait_that_a_jump_has_abandoned_owns_nothing() {
        begin_gate(0);
        assert!(owns_gate(0));
        forget();
        assert!(!owns_gate(0) && !end_gate(0));
        assert_eq!(depth(), 0);
    }

    /// Fails where a wait beyond the places counts as abandoned.
    #[test]
    fn waits_beyond_the_places_own_what_they_own() {
        let gates: Vec<usize> = (1..NESTED + 3).map(|number| number * 64).collect();
        gates.iter().for_each(|&gate| begin_gate(gate));
        assert!(gates.iter().rev().all(|&gate| end_gate(gate)));
        assert_eq!(depth(), 0);
    }

    /// Fails where the mask is not as before.
    #[test]
    fn handlers_run_again_afterwards() {
        let now = || mask(libc::SIG_BLOCK, 0);
        let before = now();
        let mut meanwhile = 0;
        without_handlers(|| meanwhile = now());
        if !cfg!(miri) {
            assert_eq!(meanwhile & bit(libc::SIGUSR1), bit(libc::SIGUSR1));
            assert_eq!(meanwhile & FAULTS, before & FAULTS);
            assert_eq!(now(), before);
        }
    }
}
