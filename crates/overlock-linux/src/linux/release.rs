//! The restartable release of the recommended mutex ([`FutexPlatform::release`]): a load and a
//! store that no other thread can come between.
//!
//! A restartable sequence (rseq(2), in Linux since 4.18) is a stretch of code that a thread leaves
//! for another address if it is interrupted within. The interruption is the loss of its CPU, a
//! signal, or `MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ` (since 5.10). Here it has three steps: it
//! checks whether sequences have been given up, compares byte 0 of the lock with 1, and stores 0
//! into it. A thread that leaves it early has not stored, and continues with the slow unlock. It
//! does not try again, so a debugger that steps through it makes progress.
//!
//! glibc registers the area in which a thread names its sequence for each of its threads (since
//! 2.35), and publishes its place. Elsewhere, and if the system refuses one of the two, a release
//! is a compare-exchange, and nobody restarts anything.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicIsize, AtomicU32, AtomicU64};

#[cfg(all(
    target_arch = "x86_64",
    target_env = "gnu",
    not(miri),
    not(overlock_portable)
))]
pub(super) use sequence::release;

use super::asymmetric::Asymmetric;
use super::{clock, extras, futex};

/// The data of a release; in one place, since finding it may be a load.
#[repr(C)]
struct Sequences {
    /// On while releases are sequences. Read within the sequence: a restart after it is off is the
    /// last that is needed. First field: the sequence reads its first byte.
    pair: Asymmetric,
    /// Offset of the sequence's address in a thread's area, from the thread pointer; 0: releases
    /// are compare-exchanges.
    place: AtomicIsize,
}

static SEQUENCES: Sequences = Sequences {
    pair: Asymmetric::new(),
    place: AtomicIsize::new(0),
};

/// Bounds the time for restarts: the pause after one is so many times its duration.
const SHARE: u64 = 100;

#[cfg(all(
    target_arch = "x86_64",
    target_env = "gnu",
    not(miri),
    not(overlock_portable)
))]
mod sequence {
    use core::arch::asm;
    use core::sync::atomic::AtomicU32;
    use core::sync::atomic::Ordering::{Relaxed, Release};

    use super::SEQUENCES;
    use overlock_core::platform::ByteLanes;

    /// See [`FutexPlatform::release`](overlock_core::FutexPlatform::release).
    #[inline(always)]
    pub(in super::super) fn release(word: &AtomicU32) -> bool {
        let place = SEQUENCES.place.load(Relaxed);
        if place == 0 {
            return exchange(word);
        }
        // SAFETY: `place` is the offset of `rseq_cs` in the area that the C library has registered
        // for every thread, 8 bytes that the thread itself may write. The descriptor is as
        // the kernel wants it: version and flags 0, the first address of the sequence, its length,
        // and where to go instead, which the signature that glibc registers stands before.
        // The sequence stores to byte 0 of `word`, as its last instruction, and only where
        // that was 1 within it. `rseq_cs` is 0 again on every way out, so that no thread
        // keeps naming a descriptor that a `dlclose` may take away. (The kernel clears it where it
        // makes the thread leave.) A store releases, on x86-64; and the compiler moves
        // nothing across the block, which clobbers memory.
        unsafe {
            asm!(
                ".pushsection __rseq_cs, \"aw\"",
                ".balign 32",
                "77:",
                ".long 0, 0",
                ".quad 73f, 74f - 73f, 75f",
                ".popsection",
                "lea {t}, [rip + 77b]",
                "mov qword ptr fs:[{place}], {t}",
                "73:",
                "cmp byte ptr [{symmetric}], 0",
                "jne 76f",
                "cmp byte ptr [{word}], 1",
                "jne 76f",
                "mov byte ptr [{word}], 0",
                "74:",
                "mov qword ptr fs:[{place}], 0",
                ".pushsection .text.overlock.restart, \"ax\"",
                ".byte 0x0f, 0xb9, 0x3d",
                ".long 0x53053053",
                "75:",
                "76:",
                "mov qword ptr fs:[{place}], 0",
                "jmp {slow}",
                ".popsection",
                place = in(reg) place,
                word = in(reg) word.as_ptr(),
                // Not by its name, which a library would have to keep local.
                symmetric = in(reg) &raw const SEQUENCES,
                t = out(reg) _,
                slow = label { return false },
                options(nostack)
            );
        }
        true
    }

    /// As above, without restarts.
    #[cold]
    #[inline(never)]
    fn exchange(word: &AtomicU32) -> bool {
        word.byte0_load(Relaxed) == 1 && word.byte0_compare_exchange(1, 0, Release).is_ok()
    }
}

/// Registers the process if it has the prerequisites; once, at load.
pub(super) fn register() {
    #[cfg(all(
        target_arch = "x86_64",
        target_env = "gnu",
        not(miri),
        not(overlock_portable)
    ))]
    if let Some(place) = super::rseq::sequence_place()
        && futex::membarrier(futex::REGISTER_RESTART)
    {
        // Relaxed: from here on releases are sequences, and the threads that restart them know. A
        // release that loads 0 does without.
        SEQUENCES.pair.begin();
        SEQUENCES.place.store(place, Relaxed);
    }
}

/// Turns releases into compare-exchanges. The system still grants membarrier.
pub(super) fn give_up() {
    SEQUENCES.pair.end(|| {
        if !restarted() {
            futex::doubt_wake_ups();
        }
    });
}

/// Restarts the sequences under way, if the system can; at the second attempt if a kernel did not
/// pass the registration on to a child of fork.
fn restarted() -> bool {
    RESTARTS.begun.fetch_add(1, Relaxed);
    let restarted = futex::membarrier(futex::RESTART)
        || futex::membarrier(futex::REGISTER_RESTART) && futex::membarrier(futex::RESTART);
    RESTARTS.done.fetch_add(1, Relaxed);
    restarted
}

/// The restarts of the process.
struct Restarts {
    begun: AtomicU32,
    done: AtomicU32,
}

static RESTARTS: Restarts = Restarts {
    begun: AtomicU32::new(0),
    done: AtomicU32::new(0),
};

/// How often this process has interrupted the sequences of its own threads, or None if it may be
/// about to. The call itself orders the numbers before and after the interruption.
pub(super) fn restarts() -> Option<u32> {
    let done = RESTARTS.done.load(Relaxed);
    let begun = RESTARTS.begun.load(Relaxed);
    (begun == done).then_some(begun)
}

/// See [`FutexPlatform::restart_releases`](overlock_core::FutexPlatform::restart_releases).
pub(super) fn restart() {
    if !SEQUENCES.pair.needs_barrier() {
        return;
    }
    let start = clock::ticks();
    // Without extras, the thread that gave them up has restarted all.
    if extras::ask(restarted) == Some(false) {
        // A filter was installed since. A thread may be within the sequence, and miss the caller's
        // store.
        SEQUENCES.pair.end(futex::doubt_wake_ups);
    }
    let end = clock::ticks();
    NEXT.store(end + SHARE * end.saturating_sub(start), Relaxed);
}

/// The time from which a restart is [affordable](affordable).
static NEXT: AtomicU64 = AtomicU64::new(0);

/// See
/// [`FutexPlatform::restart_is_affordable`](overlock_core::FutexPlatform::restart_is_affordable).
#[inline]
pub(super) fn affordable() -> bool {
    clock::ticks() > NEXT.load(Relaxed)
}
