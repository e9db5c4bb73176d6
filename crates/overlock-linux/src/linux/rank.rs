//! Threads with real-time priorities, which are served before others.
//!
//! A thread asks the kernel for its policy when it is about to wait. That costs a system call. So
//! one that had none of the real-time policies does not ask again for a millisecond, unless the
//! process has changed the priority of any thread since ([`changed`]). Another process may change
//! one too: that is seen a millisecond later.

use std::cell::Cell;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::{clock, extras};

/// How long a thread counts as an ordinary one, in [`clock::ticks`].
const KNOWN_NS: u64 = 1_000_000;
/// The rank of a thread with deadlines: above all priorities, as in the kernel.
const DEADLINE: u32 = 100;

/// How often the process has changed priorities.
static CHANGES: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Until when the thread is an ordinary one, and the changes that it knew of then.
    static ORDINARY: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
}

/// The process has changed the policy or the priority of a thread.
pub fn changed() {
    // Relaxed: a thread that learns of the change by any means learns of this too.
    CHANGES.fetch_add(1, Relaxed);
}

/// The calling thread's rank: 0, or its real-time priority.
#[inline]
pub fn rank() -> u32 {
    let (until, known) = ORDINARY.get();
    let now = clock::ticks();
    // The counter may have been set back, as when the machine slept.
    let is_known = until.wrapping_sub(now) <= KNOWN_NS && known == CHANGES.load(Relaxed);
    if is_known { 0 } else { ask(now) }
}

#[cold]
#[inline(never)]
fn ask(now: u64) -> u32 {
    let known = CHANGES.load(Relaxed);
    let rank = if cfg!(miri) { None } else { extras::ask(look) };
    let rank = rank.unwrap_or(0);
    if rank == 0 {
        ORDINARY.set((now.wrapping_add(KNOWN_NS), known));
    }
    rank
}

fn look() -> u32 {
    // SAFETY: it changes nothing.
    let policy = unsafe { crate::system_call!(libc::SYS_sched_getscheduler, 0) };
    match policy as libc::c_int & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO | libc::SCHED_RR => {
            let mut priority: libc::c_int = 0;
            // SAFETY: the structure that it writes is an int.
            unsafe { crate::system_call!(libc::SYS_sched_getparam, 0, &raw mut priority) };
            u32::try_from(priority).unwrap_or(0)
        }
        libc::SCHED_DEADLINE => DEADLINE,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs a right to real-time priorities; without it nothing is tested.
    #[test]
    fn changes_of_a_priority_are_seen() {
        // By the system call: musl's function does nothing.
        let set = |policy: libc::c_int, priority: libc::c_int| {
            let priority = &raw const priority;
            // SAFETY: the calling thread, and a `struct sched_param`, which is one integer.
            let result =
                unsafe { crate::system_call!(libc::SYS_sched_setscheduler, 0, policy, priority) };
            changed();
            result == 0
        };
        assert_eq!(rank(), 0);
        if set(libc::SCHED_FIFO, 7) {
            assert_eq!(rank(), 7);
            assert!(set(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 9));
            assert_eq!(rank(), 9);
            assert!(set(libc::SCHED_OTHER, 0));
        }
        assert_eq!(rank(), 0);
    }
}
