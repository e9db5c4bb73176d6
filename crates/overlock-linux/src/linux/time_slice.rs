//! When a spinning thread yields its CPU
//! ([`Platform::yield_slice`](overlock_core::Platform::yield_slice)).
//!
//! [`slices`](overlock_core::platform::slices) has the rule. The yield is sched_yield, which costs
//! 1 us. Next to other programs it is expensive: in recent kernels a thread that yields forfeits
//! the rest of its slice.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU64, AtomicUsize};

use overlock_core::Cpu;
use overlock_core::platform::slices::{SLICE, next_length};

use super::{clock, extras, rseq};

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

/// Ends all yields.
pub(super) fn give_up() {
    for slice in &SLICES {
        slice.longer.store(NEVER, Relaxed);
    }
}
