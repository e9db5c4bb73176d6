//! The CPU that a thread runs on, from its restartable-sequences area.
//!
//! glibc 2.35 and later register the area for every thread and publish its place. The kernel keeps
//! `cpu_id` in it up to date, so reading it is one load. Elsewhere the CPU is unknown: a system
//! call takes longer than the fast paths that want the answer.

use core::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use overlock_core::Cpu;

/// Offset of `cpu_id` from the thread pointer: the same in all threads. 0 if unknown.
static PLACE: AtomicIsize = AtomicIsize::new(0);

/// Returns the CPU number of the calling thread, stale as soon as it is read; unknown before
/// [load](super::load).
#[inline(always)]
pub(super) fn cpu() -> Cpu {
    // Relaxed: the value is the only data.
    match PLACE.load(Relaxed) {
        0 => Cpu::UNKNOWN,
        // SAFETY: stored by `find`.
        place => Cpu(unsafe { area::read(place) }),
    }
}

/// Returns the offset of `rseq_cs` from the thread pointer, if glibc has registered the areas.
#[cfg(all(
    target_arch = "x86_64",
    target_env = "gnu",
    not(miri),
    not(overlock_portable)
))]
pub(super) fn sequence_place() -> Option<isize> {
    /// From `cpu_id` to `rseq_cs`, part of the kernel's ABI.
    const SEQUENCE: isize = 4;
    area::place().map(|place| place + SEQUENCE)
}

/// Finds the areas.
pub(super) fn find() {
    if let Some(place) = area::place() {
        PLACE.store(place, Relaxed);
    }
}

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_env = "gnu",
    target_pointer_width = "64",
    not(miri)
))]
mod area {
    use core::arch::{asm, global_asm};

    // Weak: a glibc before 2.35 has neither symbol, and their addresses are then 0. They are in
    // data, so that no other reference makes them strong. The table is weak for programs that have
    // this code twice.
    global_asm!(
        ".weak __rseq_offset",
        ".weak __rseq_size",
        ".pushsection .data.rel.ro.overlock_rseq, \"aw\"",
        ".balign 8",
        ".weak overlock_rseq",
        ".hidden overlock_rseq",
        "overlock_rseq:",
        ".quad __rseq_size",
        ".quad __rseq_offset",
        ".popsection",
    );

    #[repr(C)]
    struct Places {
        size: *const u32,
        offset: *const isize,
    }

    unsafe extern "C" {
        #[link_name = "overlock_rseq"]
        static PLACES: Places;
    }

    /// Offset of `cpu_id` in `struct rseq`, part of the kernel's ABI.
    const CPU_ID: isize = 4;

    /// Returns `cpu_id` of the calling thread: `u32::MAX` if it has unregistered its area.
    ///
    /// # Safety
    ///
    /// `place` is what [`place`] returned.
    #[inline(always)]
    pub(super) unsafe fn read(place: isize) -> u32 {
        let cpu: u32;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the area lies there in every thread for as long as it runs, and `cpu_id` is a
        // 32-bit field that only the kernel writes.
        unsafe {
            asm!(
                "mov {cpu:e}, dword ptr fs:[{place}]",
                cpu = lateout(reg) cpu,
                place = in(reg) place,
                options(readonly, nostack, preserves_flags)
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        unsafe {
            asm!(
                "mrs {thread}, tpidr_el0",
                "ldr {cpu:w}, [{thread}, {place}]",
                thread = out(reg) _,
                cpu = lateout(reg) cpu,
                place = in(reg) place,
                options(readonly, nostack, preserves_flags)
            );
        }
        cpu
    }

    /// Returns the offset of `cpu_id`, if glibc has registered the area.
    pub(super) fn place() -> Option<isize> {
        // SAFETY: the table above, which the loader fills before any code runs.
        let Places { size, offset } = unsafe { (&raw const PLACES).read() };
        if size.is_null() || offset.is_null() {
            return None;
        }
        // SAFETY: glibc defines `__rseq_size` as a const unsigned int; it is set before any thread
        // runs.
        let is_registered = unsafe { size.read() } > 0;
        // SAFETY: as above, for the const ptrdiff_t `__rseq_offset`.
        is_registered.then(|| unsafe { offset.read() } + CPU_ID)
    }
}

#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_env = "gnu",
    target_pointer_width = "64",
    not(miri)
)))]
mod area {
    pub(super) unsafe fn read(_: isize) -> u32 {
        overlock_core::Cpu::UNKNOWN.0
    }

    pub(super) fn place() -> Option<isize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(miri))]
    fn the_cpu_is_one_that_this_thread_may_run_on() {
        if area::place().is_none() {
            assert_eq!(cpu(), Cpu::UNKNOWN);
            return;
        }
        // SAFETY: zero bytes are an empty set.
        let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        let size = size_of_val(&allowed);
        // SAFETY: the set is valid for the write.
        assert_eq!(unsafe { libc::sched_getaffinity(0, size, &mut allowed) }, 0);
        for _ in 0..1000 {
            let Cpu(cpu) = cpu();
            // SAFETY: a set.
            let is_allowed = unsafe { libc::CPU_ISSET(cpu as usize, &allowed) };
            assert!(is_allowed, "cpu {cpu}");
        }
    }
}
