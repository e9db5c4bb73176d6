//! The spin itself: a restartable sequence, which the kernel makes the thread leave when it gives
//! the CPU to another thread, or handles a signal. A thread that lost its CPU need not wait for it
//! only to spin on.

use std::marker::PhantomData;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::{Spun, ticks};

/// Notices that the thread loses its CPU, without a system call.
///
/// The kernel clears `rseq_cs` whenever it takes the thread's CPU, or delivers a signal, outside of
/// the sequence that `rseq_cs` names (linux/rseq.h). So it names one that nobody runs. From Linux
/// 6.19 on the kernel does so only where the thread was interrupted outside of system calls.
/// Without restartable sequences nothing is noticed.
#[derive(Debug)]
pub struct Watch {
    /// The offset of `rseq_cs`, and the value that it is set to. A signal handler may set it to a
    /// sequence of its own.
    set: Option<(isize, usize)>,
    /// It belongs to its thread.
    _unsend: PhantomData<*const ()>,
}

#[cfg(all(
    target_arch = "x86_64",
    target_env = "gnu",
    not(miri),
    not(overlock_portable)
))]
mod watch {
    use core::arch::asm;

    pub(super) use crate::linux::rseq::sequence_place as place;

    /// # Safety
    ///
    /// `place` is the offset of `rseq_cs`.
    pub(super) unsafe fn begin(place: isize) -> usize {
        let sequence: usize;
        // SAFETY: the caller's promise. The descriptor is as the kernel wants it, and stays.
        unsafe {
            asm!(
                ".pushsection __rseq_cs, \"aw\"",
                ".balign 32",
                "77:",
                ".long 0, 0",
                ".quad 73f, 2, 75f",
                ".popsection",
                ".pushsection .text.overlock.restart, \"ax\"",
                "73: ud2",
                ".byte 0x0f, 0xb9, 0x3d",
                ".long 0x53053053",
                "75: ud2",
                ".popsection",
                "lea {sequence}, [rip + 77b]",
                "mov qword ptr fs:[{place}], {sequence}",
                place = in(reg) place,
                sequence = out(reg) sequence,
                options(nostack, preserves_flags)
            );
        }
        sequence
    }

    /// # Safety
    ///
    /// As above.
    pub(super) unsafe fn end(place: isize) {
        // SAFETY: as above.
        unsafe {
            asm!(
                "mov qword ptr fs:[{place}], 0",
                place = in(reg) place,
                options(nostack, preserves_flags)
            );
        }
    }

    /// # Safety
    ///
    /// As above.
    pub(super) unsafe fn get(place: isize) -> usize {
        let value: usize;
        // SAFETY: as above.
        unsafe {
            asm!(
                "mov {value}, qword ptr fs:[{place}]",
                place = in(reg) place,
                value = out(reg) value,
                options(nostack, preserves_flags)
            );
        }
        value
    }
}

/// Elsewhere nobody tells.
#[cfg(not(all(
    target_arch = "x86_64",
    target_env = "gnu",
    not(miri),
    not(overlock_portable)
)))]
mod watch {
    pub(super) fn place() -> Option<isize> {
        None
    }

    pub(super) unsafe fn begin(_: isize) -> usize {
        0
    }

    pub(super) unsafe fn end(_: isize) {}

    pub(super) unsafe fn get(_: isize) -> usize {
        0
    }
}

impl Watch {
    /// Begins to look.
    pub fn begin() -> Watch {
        // SAFETY: `place` is the offset of `rseq_cs`, here and below.
        let set = watch::place().map(|place| (place, unsafe { watch::begin(place) }));
        Watch {
            set,
            _unsend: PhantomData,
        }
    }

    /// Whether the CPU was lost since then.
    pub fn has_noticed(&self) -> bool {
        // SAFETY: as above.
        self.set
            .is_some_and(|(place, sequence)| unsafe { watch::get(place) != sequence })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some((place, _)) = self.set {
            // SAFETY: as above.
            unsafe { watch::end(place) };
        }
    }
}

/// Polls the word until it differs from `expected`, or until this time of
/// [`ticks`](super::super::clock::ticks). Orders nothing.
#[cfg(all(
    target_arch = "x86_64",
    target_env = "gnu",
    not(miri),
    not(overlock_portable)
))]
pub fn until_changed(word: &AtomicU32, expected: u32, until: u64) -> Spun {
    use core::arch::asm;

    let Some(place) = watch::place() else {
        return plainly(word, expected, until);
    };
    const READY: u32 = 0;
    const OVER: u32 = 1;
    const INTERRUPTED: u32 = 2;
    let spun: u32;
    // SAFETY: `place` is the offset of `rseq_cs` in the area that the C library has registered for
    // every thread, 8 bytes that the thread itself may write. The descriptor is as the kernel wants
    // it: version and flags 0, the first address of the sequence, its length, and where to go
    // instead, which the signature that glibc registers stands before. Nothing is stored within
    // the sequence. `rseq_cs` is 0 again on every way out. The word is valid, as a reference is.
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
            "cmp dword ptr [{word}], {expected:e}",
            "jne 72f",
            "pause",
            "rdtsc",
            "shl rdx, 32",
            "or rax, rdx",
            "shr rax",
            "cmp rax, {until}",
            "jb 73b",
            "mov {spun:e}, {over}",
            "jmp 74f",
            "72:",
            "mov {spun:e}, {ready}",
            "74:",
            "mov qword ptr fs:[{place}], 0",
            "76:",
            ".pushsection .text.overlock.restart, \"ax\"",
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "75:",
            "mov qword ptr fs:[{place}], 0",
            "mov {spun:e}, {interrupted}",
            "jmp 76b",
            ".popsection",
            place = in(reg) place,
            word = in(reg) word.as_ptr(),
            expected = in(reg) expected,
            until = in(reg) until,
            t = out(reg) _,
            spun = out(reg) spun,
            out("rax") _,
            out("rdx") _,
            ready = const READY,
            over = const OVER,
            interrupted = const INTERRUPTED,
            options(nostack)
        );
    }
    match spun {
        READY => Spun::Ready,
        OVER => Spun::Over,
        _ => Spun::Interrupted,
    }
}

/// As above, without restartable sequences.
#[cfg(not(all(
    target_arch = "x86_64",
    target_env = "gnu",
    not(miri),
    not(overlock_portable)
)))]
pub fn until_changed(word: &AtomicU32, expected: u32, until: u64) -> Spun {
    plainly(word, expected, until)
}

#[cold]
fn plainly(word: &AtomicU32, expected: u32, until: u64) -> Spun {
    while ticks() < until {
        if word.load(Relaxed) != expected {
            return Spun::Ready;
        }
        std::hint::spin_loop();
    }
    Spun::Over
}
