//! When a thread that spins gives its CPU away
//! ([`Platform::yield_slice`](overlock_core::Platform::yield_slice)).
//!
//! Threads that contend for a lock on one CPU take turns of 100 us by sched_yield, where the
//! scheduler would let each run for milliseconds. Such a yield costs 1 us. It is in vain where
//! nobody else is to run on the CPU. And it is dear beside other programs: in recent kernels a
//! thread that yields forfeits the rest of its slice. So what a yield has cost is measured, and
//! turns are longer where they have not been of use.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU64, AtomicUsize};

use overlock_core::Cpu;

use super::{clock, extras, rseq};

/// The length of a turn, in nanoseconds of [`clock::ticks`].
const TURN: u64 = 100_000;
/// The longest turn: where nobody else is to run, or where other programs are.
const LONGEST: u64 = 512 * TURN;
/// A yield that took less time than this was in vain.
const IN_VAIN: u64 = 1_500;
/// A yield went to other programs if it took more than so many turns for each time that another
/// thread of ours was seen to have come onto the CPU meanwhile.
const STRANGERS: u64 = 2;

/// The turn on a CPU. On lines of their own, since waiters poll them. All accesses are Relaxed:
/// hints.
#[repr(align(64))]
struct Turn {
    began: AtomicU64,
    /// How much longer than TURN it is; [`NEVER`] where the system refuses to yield.
    longer: AtomicU64,
    /// Where the stack of the thread lies that was last seen spinning here.
    stack: AtomicUsize,
    /// How often it was another thread than the last time.
    changes: AtomicU64,
}

const CPUS: usize = 64;
const NEVER: u64 = u64::MAX / 2;

static TURN_ON: [Turn; CPUS] = [const {
    Turn {
        began: AtomicU64::new(0),
        longer: AtomicU64::new(0),
        stack: AtomicUsize::new(0),
        changes: AtomicU64::new(0),
    }
}; CPUS];

#[inline(always)]
fn here() -> &'static Turn {
    let Cpu(cpu) = rseq::cpu();
    &TURN_ON[cpu as usize % CPUS]
}

/// The calling thread has just got its CPU.
pub(super) fn begin() {
    here().began.store(clock::ticks(), Relaxed);
}

/// Whether the turn of the thread that runs here is over.
#[inline(always)]
pub(super) fn is_over(now: u64) -> bool {
    let turn = here();
    let local = 0_u8;
    // Threads are told apart by their stacks, to 16 KiB: Linux' id of a thread would cost a system
    // call, which a filter may kill for. One that is called from another depth may count twice.
    let stack = ptr::from_ref(&local).addr() >> 14;
    if turn.stack.load(Relaxed) != stack {
        turn.stack.store(stack, Relaxed);
        turn.changes.store(turn.changes.load(Relaxed) + 1, Relaxed);
    }
    now.saturating_sub(turn.began.load(Relaxed)) >= TURN + turn.longer.load(Relaxed)
}

/// Gives the CPU away; whether it has.
#[cold]
#[inline(never)]
pub(super) fn give(now: u64) -> bool {
    let turn = here();
    // The next one's turn.
    turn.began.store(now, Relaxed);
    let changes = turn.changes.load(Relaxed);
    let longer = turn.longer.load(Relaxed);
    if longer == NEVER {
        return false;
    }
    // SAFETY: has no preconditions.
    match extras::ask(|| unsafe { crate::system_call!(libc::SYS_sched_yield) }) {
        Some(0) => {}
        None => return false,
        Some(_) => {
            give_up();
            return false;
        }
    }
    let back = clock::ticks();
    let others = turn.changes.load(Relaxed).wrapping_sub(changes);
    let length = next_length(TURN + longer, back.saturating_sub(now), others);
    // Unless somebody has given up meanwhile.
    let _ = turn
        .longer
        .compare_exchange(longer, length - TURN, Relaxed, Relaxed);
    here().began.store(back, Relaxed);
    true
}

/// The length of the turns to come, after a yield that took so long, and meanwhile so many changes
/// of the thread that was seen on the CPU.
fn next_length(length: u64, took: u64, others: u64) -> u64 {
    // By the present length: the others may have run for as long. By TURN they would look like
    // strangers then, and turns would stay long for good.
    let was_of_use = took >= IN_VAIN && took <= others.saturating_mul(STRANGERS * length);
    match was_of_use {
        true => (length / 4).max(TURN),
        false => (length * 2).min(LONGEST),
    }
}

/// From now on nobody yields.
pub(super) fn give_up() {
    for turn in &TURN_ON {
        turn.longer.store(NEVER, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_grow_where_nobody_is_to_run_or_strangers_are() {
        assert_eq!(next_length(TURN, 500, 0), 2 * TURN);
        assert_eq!(next_length(TURN, 3_000_000, 0), 2 * TURN);
        assert_eq!(next_length(TURN, 16 * TURN + 3_000_000, 3), 2 * TURN);
        assert_eq!(next_length(LONGEST, 500, 0), LONGEST);
    }

    #[test]
    fn turns_shrink_from_any_length_where_the_others_are_ours() {
        // The scheduler lets each of 16 run for 3 ms, whatever the length.
        let mut length = LONGEST;
        for _ in 0..5 {
            length = next_length(length, 16 * length.min(3_000_000), 16);
        }
        assert_eq!(length, TURN);
        assert_eq!(next_length(TURN, 15 * TURN, 15), TURN);
    }
}
