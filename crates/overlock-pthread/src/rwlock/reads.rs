//! How many locks the calling thread reads, as far as it has released them itself.
//!
//! A thread-local variable of the initial-exec model, which is two instructions away. `thread_local!` in a shared library calls
//! `__tls_get_addr` each time: that took 4 of the 10 ns in which a reader comes and goes. What the model asks for, that the library is there when the program
//! starts, is so for a preloaded one (and a library that comes later has it, too, as long as glibc has spare room for four bytes).

use core::arch::{asm, global_asm};
use core::cell::Cell;

global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".globl overlock_pthread_reads",
    ".hidden overlock_pthread_reads",
    ".type overlock_pthread_reads, @tls_object",
    ".size overlock_pthread_reads, 4",
    ".balign 4",
    "overlock_pthread_reads:",
    ".zero 4",
    ".popsection",
);

#[inline(always)]
fn mine() -> *const Cell<u32> {
    let place: *const Cell<u32>;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the thread pointer, which the ABI keeps at its own beginning, and an entry of the global offset table.
    unsafe {
        asm!(
            "mov {place}, qword ptr fs:[0]",
            "add {place}, qword ptr [rip + overlock_pthread_reads@GOTTPOFF]",
            place = out(reg) place,
            options(pure, readonly, nostack)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads the thread pointer and an entry of the global offset table.
    unsafe {
        asm!(
            "mrs {place}, tpidr_el0",
            "adrp {offset}, :gottprel:overlock_pthread_reads",
            "ldr {offset}, [{offset}, :gottprel_lo12:overlock_pthread_reads]",
            "add {place}, {place}, {offset}",
            place = out(reg) place,
            offset = out(reg) _,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    place
}

#[inline(always)]
pub(super) fn get() -> u32 {
    // SAFETY: the calling thread's own variable, which lives for as long as it.
    unsafe { &*mine() }.get()
}

#[inline(always)]
pub(super) fn change(change: impl FnOnce(u32) -> u32) {
    // SAFETY: as above.
    let mine = unsafe { &*mine() };
    mine.set(change(mine.get()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own() {
        let before = get();
        change(|reads| reads + 3);
        std::thread::spawn(|| {
            assert_eq!(get(), 0);
            change(|reads| reads + 1);
        })
        .join()
        .unwrap();
        assert_eq!(get(), before + 3);
        change(|reads| reads - 3);
    }
}
