//! When a spinning thread yields its CPU
//! ([`Platform::yield_slice`](overlock_core::Platform::yield_slice)).
//!
//! Threads that contend for a lock on one CPU get time slices of 100 us by sched_yield; the
//! scheduler would let each run for milliseconds. Such a yield costs 1 us. It is in vain if nobody
//! else is ready on the CPU. It is expensive next to other programs: in recent kernels a thread
//! that yields forfeits the rest of its slice. So the cost of each yield is measured, and slices
//! grow while yields are of no use.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU64, AtomicUsize};

use overlock_core::Cpu;

use super::{clock, extras, rseq};

/// The length of a time slice, in nanoseconds of [`clock::ticks`].
const SLICE: u64 = 100_000;
/// The longest slice: if nobody else is ready, or if other programs are.
const LONGEST: u64 = 512 * SLICE;
/// A yield that took less time than this was in vain.
const IN_VAIN: u64 = 1_500;
/// A yield went to other programs if it took more than so many slices for each change of our own
/// threads on the CPU meanwhile.
const STRANGERS: u64 = 2;

/// The time slice on a CPU. On lines of their own, since waiters poll them. All accesses are
/// Relaxed: hints.
#[repr(align(64))]
struct TimeSlice {
    began: AtomicU64,
    /// Its length beyond SLICE; [`NEVER`] if the system refuses to yield.
    longer: AtomicU64,
    /// Address in the stack of the thread that was last seen spinning here.
    stack: AtomicUsize,
    /// Number of changes of that thread.
    changes: AtomicU64,
}

const CPUS: usize = 64;
const NEVER: u64 = u64::MAX / 2;

static SLICES: [TimeSlice; CPUS] = [const {
    TimeSlice {
        began: AtomicU64::new(0),
        longer: AtomicU64::new(0),
        stack: AtomicUsize::new(0),
        changes: AtomicU64::new(0),
    }
}; CPUS];

#[inline(always)]
fn here() -> &'static TimeSlice {
    let Cpu(cpu) = rseq::cpu();
    &SLICES[cpu as usize % CPUS]
}

/// Begins a slice: the calling thread has just got its CPU.
pub(super) fn begin() {
    here().began.store(clock::ticks(), Relaxed);
}

/// Whether the time slice of the thread that runs here is over.
#[inline(always)]
pub(super) fn is_over(now: u64) -> bool {
    let slice = here();
    let local = 0_u8;
    // Stacks distinguish threads, to 16 KiB: Linux' id of a thread would cost a system call, for
    // which a filter may kill. A thread that is called from another depth may count twice.
    let stack = ptr::from_ref(&local).addr() >> 14;
    if slice.stack.load(Relaxed) != stack {
        slice.stack.store(stack, Relaxed);
        slice
            .changes
            .store(slice.changes.load(Relaxed) + 1, Relaxed);
    }
    now.saturating_sub(slice.began.load(Relaxed)) >= SLICE + slice.longer.load(Relaxed)
}

/// Yields the CPU. Returns whether it has.
#[cold]
#[inline(never)]
pub(super) fn give(now: u64) -> bool {
    let slice = here();
    // The next thread's slice.
    slice.began.store(now, Relaxed);
    let changes = slice.changes.load(Relaxed);
    let longer = slice.longer.load(Relaxed);
    if longer == NEVER {
        return false;
    }
    match extras::ask(yield_cpu) {
        Some(0) => {}
        None => return false,
        Some(_) => {
            give_up();
            return false;
        }
    }
    let back = clock::ticks();
    let others = slice.changes.load(Relaxed).wrapping_sub(changes);
    let length = next_length(SLICE + longer, back.saturating_sub(now), others);
    // Unless yields have been given up meanwhile.
    let _ = slice
        .longer
        .compare_exchange(longer, length - SLICE, Relaxed, Relaxed);
    here().began.store(back, Relaxed);
    true
}

pub(super) fn yield_cpu() -> isize {
    if cfg!(miri) {
        // Miri knows the function, and not the number. SAFETY: has no preconditions.
        return unsafe { libc::sched_yield() } as isize;
    }
    // SAFETY: has no preconditions.
    unsafe { crate::system_call!(libc::SYS_sched_yield) }
}

/// Returns the length of the next slices, after a yield that took so long and saw so many changes
/// of the thread on the CPU.
fn next_length(length: u64, took: u64, others: u64) -> u64 {
    // In units of the present length: the others may have run for as long. In units of SLICE they
    // would look like strangers then, and slices would stay long for good.
    let was_of_use = took >= IN_VAIN && took <= others.saturating_mul(STRANGERS * length);
    match was_of_use {
        true => (length / 4).max(SLICE),
        false => (length * 2).min(LONGEST),
    }
}

/// Ends all yields.
pub(super) fn give_up() {
    for slice in &SLICES {
        slice.longer.store(NEVER, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_grow_if_nobody_is_ready_or_strangers_are() {
        assert_eq!(next_length(SLICE, 500, 0), 2 * SLICE);
        assert_eq!(next_length(SLICE, 3_000_000, 0), 2 * SLICE);
        assert_eq!(next_length(SLICE, 16 * SLICE + 3_000_000, 3), 2 * SLICE);
        assert_eq!(next_length(LONGEST, 500, 0), LONGEST);
    }

    #[test]
    fn slices_shrink_from_any_length_if_the_others_are_ours() {
        // The scheduler lets each of 16 run for 3 ms, with any length.
        let mut length = LONGEST;
        for _ in 0..5 {
            length = next_length(length, 16 * length.min(3_000_000), 16);
        }
        assert_eq!(length, SLICE);
        assert_eq!(next_length(SLICE, 15 * SLICE, 15), SLICE);
    }
}
