//! Threads that end while they wait: by `pthread_exit` in a signal handler, or as the target of
//! `pthread_cancel` whose cancellation is asynchronous.
//!
//! The C library unwinds their stacks: a *forced* unwinding. Rust's personality function would drop
//! the values of our frames, and so free queue nodes that stand in lists. It would also abort at an
//! instruction that does not unwind by itself, such as a system call. So the linker puts ours in
//! front of it. It passes our frames by, as if they were C's. For other unwindings it is Rust's.
//!
//! A thread that ends so leaves its waits as it does by a jump. It owns the mutex of its wait for a
//! condition again, for the program's clean-up handlers, which run later.

use core::cell::Cell;

use crate::handlers;
use crate::mutex::{Mutex, raw::site};

thread_local! {
    /// The mutex that the thread has released for its wait for a condition; 0 for none.
    static RELEASED: Cell<usize> = const { Cell::new(0) };
}

/// The calling thread has released a mutex for its wait.
pub(crate) fn has_released(mutex: &Mutex) {
    RELEASED.set(core::ptr::from_ref(mutex).expose_provenance());
}

/// It has it again, or does not wait any more.
pub(crate) fn has_again() {
    RELEASED.set(0);
}

/// A forced unwinding comes to one of our frames. Those after the first find nothing to do.
#[cfg_attr(test, allow(dead_code))]
unsafe extern "C" fn passes() {
    let released = RELEASED.get();
    handlers::leave();
    if released != 0 {
        let mutex = core::ptr::with_exposed_provenance::<Mutex>(released);
        // SAFETY: the mutex of a wait that has not returned: it is there until that returns.
        unsafe { &*mutex }.acquire_any(site());
    }
}

// `_UA_FORCE_UNWIND` is 8 in the actions, the second argument. The result then is
// `_URC_CONTINUE_UNWIND`, 8, too.
#[cfg(all(not(test), target_env = "gnu", target_arch = "x86_64"))]
core::arch::global_asm!(
    ".weak __real_rust_eh_personality",
    ".globl __wrap_rust_eh_personality",
    ".hidden __wrap_rust_eh_personality",
    ".type __wrap_rust_eh_personality, @function",
    "__wrap_rust_eh_personality:",
    ".cfi_startproc",
    "test esi, 8",
    "jnz 2f",
    "jmp qword ptr [rip + __real_rust_eh_personality@GOTPCREL]",
    "2: sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call {passes}",
    "mov eax, 8",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size __wrap_rust_eh_personality, . - __wrap_rust_eh_personality",
    passes = sym passes,
);

#[cfg(all(not(test), target_env = "gnu", target_arch = "aarch64"))]
core::arch::global_asm!(
    ".weak __real_rust_eh_personality",
    ".globl __wrap_rust_eh_personality",
    ".hidden __wrap_rust_eh_personality",
    ".type __wrap_rust_eh_personality, @function",
    "__wrap_rust_eh_personality:",
    ".cfi_startproc",
    "tbnz w1, #3, 2f",
    "adrp x16, :got:__real_rust_eh_personality",
    "ldr x16, [x16, :got_lo12:__real_rust_eh_personality]",
    "br x16",
    "2: stp x29, x30, [sp, #-16]!",
    ".cfi_adjust_cfa_offset 16",
    ".cfi_offset x29, -16",
    ".cfi_offset x30, -8",
    "mov x29, sp",
    "bl {passes}",
    "mov w0, #8",
    "ldp x29, x30, [sp], #16",
    ".cfi_adjust_cfa_offset -16",
    ".cfi_restore x29",
    ".cfi_restore x30",
    "ret",
    ".cfi_endproc",
    ".size __wrap_rust_eh_personality, . - __wrap_rust_eh_personality",
    passes = sym passes,
);
