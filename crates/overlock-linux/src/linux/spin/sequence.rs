//! The spin itself: a restartable sequence, which the kernel makes the thread leave when it handles
//! a signal or gives the CPU to another thread.
//!
//! The kernel would have ended the thread's sleep for the signal, and a thread that does not sleep
//! yet would miss it: so the spin ends too. And a thread that lost its CPU need not wait for it
//! only to spin on.

use std::marker::PhantomData;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::super::{extras, release};
use super::{Spun, ticks};

/// Tells a signal from other interruptions, after a spin that began later than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// None if signals are of no interest.
    switches: Option<libc::c_long>,
    restarts: Option<u32>,
}

impl Before {
    /// `tells` makes it exact, by a system call. None if the process makes no more of them than it
    /// must.
    pub fn now(tells: bool) -> Option<Before> {
        let switches = match tells {
            true => Some(extras::ask(switches)?),
            false => None,
        };
        Some(Before {
            switches,
            restarts: release::restarts(),
        })
    }

    /// Whether an interruption since then was by a signal: no thread has restarted the sequences of
    /// the process, and the thread has not lost its CPU. False unless that `tells`. Some ten times
    /// a second it is neither, but work that the kernel does for the thread.
    pub fn may_be_signal(self) -> bool {
        self.switches.is_some() && self.restarts.is_some() && Before::now(true) == Some(self)
    }
}

/// How often the calling thread has lost or given up its CPU.
fn switches() -> libc::c_long {
    // SAFETY: all zero bytes are a valid value.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: valid for the write.
    unsafe { crate::system_call!(libc::SYS_getrusage, libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_nivcsw + usage.ru_nvcsw
}

/// Whether [`until_changed`] notices signals.
pub fn is_interruptible() -> bool {
    watch::place().is_some()
}

/// Notices that the thread handles a signal or loses its CPU, without a system call.
///
/// The kernel clears `rseq_cs` whenever it delivers a signal to the thread, or takes its CPU,
/// outside of the sequence that `rseq_cs` names (linux/rseq.h). So it names one that nobody runs.
/// From Linux 6.19 on the kernel does so only where the thread was interrupted outside of system
/// calls, so there is no watch.
#[derive(Debug)]
pub struct Watch {
    /// The offset of `rseq_cs`.
    place: isize,
    /// The value that it is set to. A signal handler may set it to a sequence of its own.
    sequence: usize,
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
    /// None if the kernel does not tell.
    pub fn begin() -> Option<Watch> {
        let place = super::machine::tells_of_signals()
            .then(watch::place)
            .flatten()?;
        // SAFETY: it is that.
        let sequence = unsafe { watch::begin(place) };
        Some(Watch {
            place,
            sequence,
            _unsend: PhantomData,
        })
    }

    /// Whether there was a signal, or the CPU was lost, since the beginning.
    pub fn has_noticed(&self) -> bool {
        // SAFETY: as above.
        unsafe { watch::get(self.place) != self.sequence }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { watch::end(self.place) };
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
    // SAFETY: as in `release.rs`: `place` is the offset of `rseq_cs` in the area of each thread,
    // and the descriptor is as the kernel wants it. Nothing is stored within the sequence.
    // `rseq_cs` is 0 again on every way out. The word is valid, as a reference is.
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
