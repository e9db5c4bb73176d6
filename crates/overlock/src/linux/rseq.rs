//! The CPU that this thread runs on, from the thread's restartable-sequences area.
//!
//! glibc 2.35 and later register the area for every thread and say where it lies; the kernel keeps
//! `cpu_id` in it up to date, so reading it is one load. Elsewhere `sched_getcpu` answers.

use overlock_core::Cpu;

/// The CPU number of the calling thread, stale as soon as it is read.
#[inline]
pub(super) fn cpu() -> Cpu {
    #[cfg(all(target_arch = "x86_64", target_env = "gnu", not(miri)))]
    if let Some(cpu) = registered::cpu() {
        return Cpu(cpu);
    }
    slow()
}

#[cold]
fn slow() -> Cpu {
    if cfg!(miri) {
        return Cpu::UNKNOWN; // it does not know the call below
    }
    // SAFETY: no preconditions.
    match unsafe { libc::sched_getcpu() } {
        -1 => Cpu::UNKNOWN,
        cpu => Cpu(cpu as u32),
    }
}

#[cfg(all(target_arch = "x86_64", target_env = "gnu", not(miri)))]
mod registered {
    use core::arch::{asm, global_asm};

    // Weak: a glibc before 2.35 has neither symbol, and their addresses are then 0.
    global_asm!(".weak __rseq_offset", ".weak __rseq_size");

    /// Offset of `cpu_id` in `struct rseq`, part of the kernel's ABI.
    const CPU_ID: usize = 4;

    /// `cpu_id` of the calling thread; `None` where no area is registered.
    #[inline]
    pub(super) fn cpu() -> Option<u32> {
        let offset: *const isize;
        let size: *const u32;
        // SAFETY: reads two entries of the global offset table, which the linker fills.
        unsafe {
            asm!(
                "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
                "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
                offset = out(reg) offset,
                size = out(reg) size,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        if offset.is_null() || size.is_null() {
            return None;
        }
        // SAFETY: glibc defines `__rseq_size` as a const unsigned int; it is set before any thread runs.
        if unsafe { size.read() } == 0 {
            return None; // registration was refused or switched off
        }
        // SAFETY: as above, for the const ptrdiff_t `__rseq_offset`.
        let offset = unsafe { offset.read() };
        let cpu: u32;
        // SAFETY: the area lies at this offset from the thread pointer in every thread for as long as
        // it runs, and `cpu_id` is a 32-bit field that only the kernel writes.
        unsafe {
            asm!(
                "mov {cpu:e}, dword ptr fs:[{offset} + {field}]",
                cpu = out(reg) cpu,
                offset = in(reg) offset,
                field = const CPU_ID,
                options(readonly, nostack, preserves_flags)
            );
        }
        // -1 and -2 mean "not registered in this thread".
        (cpu < u32::MAX - 1).then_some(cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(miri))]
    fn the_cpu_is_one_that_this_thread_may_run_on() {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        for _ in 0..1000 {
            let Cpu(cpu) = cpu();
            assert!(allowed.is_set(cpu as usize), "cpu {cpu}");
            let Cpu(cpu) = slow();
            assert!(allowed.is_set(cpu as usize), "cpu {cpu}");
        }
    }
}
