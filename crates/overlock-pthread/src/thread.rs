//! What each thread counts: how many locks it reads, as far as it has released them itself; and its
//! calls, where a lock does not count what is counted. And its name, by which locks know their
//! owner.
//!
//! Thread-local variables of the initial-exec model, which are two instructions away.
//! `thread_local!` in a shared library calls `__tls_get_addr` each time: that took 4 of the 10 ns
//! in which a reader comes and goes. What the model asks for, that the library is there when the
//! program starts, is so for a preloaded one (and a library that comes later has it, too, as long
//! as glibc has spare room for 24 bytes).

use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".globl overlock_pthread_counts",
    ".hidden overlock_pthread_counts",
    ".type overlock_pthread_counts, @tls_object",
    ".size overlock_pthread_counts, 24",
    ".balign 8",
    "overlock_pthread_counts:",
    ".zero 24",
    ".popsection",
);

#[derive(Debug)]
#[repr(C)]
struct Counts {
    reads: Cell<u32>,
    /// Of another size than `reads`: of two equal ones the compiler makes a vector, which it loads
    /// and stores as a whole, and so waits for the stores of its parts.
    calls: Cell<u64>,
    /// 0 until it is needed. Atomic for handlers: all accesses are the thread's own.
    name: AtomicUsize,
}

#[inline(always)]
fn mine() -> *const Counts {
    let place: *const Counts;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the thread pointer, which the ABI keeps at its own beginning, and an entry of
    // the global offset table.
    unsafe {
        asm!(
            "mov {place}, qword ptr fs:[0]",
            "add {place}, qword ptr [rip + overlock_pthread_counts@GOTTPOFF]",
            place = out(reg) place,
            options(pure, readonly, nostack)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads the thread pointer and an entry of the global offset table.
    unsafe {
        asm!(
            "mrs {place}, tpidr_el0",
            "adrp {offset}, :gottprel:overlock_pthread_counts",
            "ldr {offset}, [{offset}, :gottprel_lo12:overlock_pthread_counts]",
            "add {place}, {place}, {offset}",
            place = out(reg) place,
            offset = out(reg) _,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    place
}

#[inline(always)]
fn counts<T>(of: impl FnOnce(&Counts) -> T) -> T {
    // SAFETY: the calling thread's own variable, which lives for as long as it.
    of(unsafe { &*mine() })
}

/// The thread's name, which no other thread ever has. (Its pointer and its id go to the next one.)
/// A child of fork has it from its parent.
#[inline(always)]
pub fn me() -> usize {
    counts(|counts| match counts.name.load(Relaxed) {
        0 => give_name(counts),
        name => name,
    })
}

#[cold]
fn give_name(counts: &Counts) -> usize {
    static NAMES: AtomicUsize = AtomicUsize::new(0);
    let new = NAMES.fetch_add(1, Relaxed) + 1;
    // A handler may have come before it.
    match counts.name.compare_exchange(0, new, Relaxed, Relaxed) {
        Ok(_) => new,
        Err(name) => name,
    }
}

/// How many locks the thread reads.
#[inline(always)]
pub fn reads() -> u32 {
    counts(|counts| counts.reads.get())
}

#[inline(always)]
pub fn change_reads(change: impl FnOnce(u32) -> u32) {
    counts(|counts| counts.reads.set(change(counts.reads.get())));
}

/// The number of the thread's next call.
#[inline(always)]
pub fn call() -> u32 {
    counts(|counts| counts.calls.get() as u32)
}

/// Begins a call that reads one lock more.
#[inline(always)]
pub fn begin_read() {
    counts(|counts| {
        counts.calls.set(counts.calls.get().wrapping_add(1));
        counts.reads.set(counts.reads.get().wrapping_add(1));
    });
}

/// Begins a call. Returns its number.
#[inline(always)]
pub fn begin_call() -> u32 {
    counts(|counts| {
        let calls = counts.calls.get();
        counts.calls.set(calls.wrapping_add(1));
        calls as u32
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_given_twice() {
        let mine = me();
        let mut names: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(me).join().unwrap())
            .collect();
        names.push(mine);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 9);
        assert!(names[0] > 0 && me() == mine);
    }

    #[test]
    fn each_thread_has_its_own() {
        let before = (reads(), begin_call());
        change_reads(|reads| reads + 3);
        std::thread::spawn(|| {
            assert_eq!((reads(), begin_call(), call()), (0, 0, 1));
            begin_read();
            assert_eq!((reads(), call()), (1, 2));
        })
        .join()
        .unwrap();
        assert_eq!((reads(), call()), (before.0 + 3, before.1 + 1));
        change_reads(|reads| reads - 3);
    }
}
