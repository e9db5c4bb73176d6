//! `prctl` and `syscall`, by which a program installs a seccomp filter.
//!
//! Filters are written for the C library's own system calls, and may kill a process that makes
//! others. So before the first filter the locks restrict themselves to `futex`:
//! [`Linux::use_futex_alone`]. All calls go on to the next definition of the function.
//!
//! Both are a few instructions that jump, so arguments stay where they are.

use core::ffi::{c_int, c_long, c_void};
use core::mem::transmute;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use overlock::Linux;
use overlock_linux::__private::system_call;

use crate::{cancel, real, stat, summary, waits};

/// The next definitions of these names; null until the library is loaded.
static PRCTL: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static SYSCALL: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Looks both functions up when the library is loaded.
pub(crate) fn start() {
    PRCTL.store(real::find(c"prctl"), Relaxed);
    SYSCALL.store(real::find(c"syscall"), Relaxed);
}

/// Called before a filter is installed. If it is that of a child of vfork() alone, which shares our
/// memory, this restricts the parent needlessly.
#[cold]
fn restricts() {
    stat::use_no_files();
    summary::is_filtered();
    cancel::reserve();
    Linux::use_futex_alone();
}

#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn prctl() {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        "cmp edi, {restrict}",
        "je {slow}",
        "mov r11, [rip + {next}]",
        "test r11, r11",
        "jz {slow}",
        "jmp r11",
        restrict = const libc::PR_SET_SECCOMP,
        next = sym PRCTL,
        slow = sym prctl_slowly,
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "cmp w0, {restrict}",
        "b.eq 1f",
        "adrp x16, {next}",
        "ldr x16, [x16, :lo12:{next}]",
        "cbz x16, 1f",
        "br x16",
        "1: b {slow}",
        restrict = const libc::PR_SET_SECCOMP,
        next = sym PRCTL,
        slow = sym prctl_slowly,
    );
}

#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        "cmp edi, {seccomp}",
        "je {slow}",
        "cmp edi, {prctl}",
        "je {slow}",
        "cmp edi, {futex}",
        "je {wait}",
        "mov r11, [rip + {next}]",
        "test r11, r11",
        "jz {slow}",
        "jmp r11",
        seccomp = const libc::SYS_seccomp,
        prctl = const libc::SYS_prctl,
        futex = const libc::SYS_futex,
        next = sym SYSCALL,
        slow = sym syscall_slowly,
        wait = sym waits::futex,
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "cmp w0, {seccomp}",
        "b.eq 1f",
        "cmp w0, {prctl}",
        "b.eq 1f",
        "cmp w0, {futex}",
        "b.eq 2f",
        "adrp x16, {next}",
        "ldr x16, [x16, :lo12:{next}]",
        "cbz x16, 1f",
        "br x16",
        "1: b {slow}",
        "2: b {wait}",
        seccomp = const libc::SYS_seccomp,
        prctl = const libc::SYS_prctl,
        futex = const libc::SYS_futex,
        next = sym SYSCALL,
        slow = sym syscall_slowly,
        wait = sym waits::futex,
    );
}

/// Converts the kernel's result to that of the C library's functions: -1 and errno for an error.
pub(crate) fn result(status: isize) -> c_long {
    if !(-4095..0).contains(&status) {
        return status as c_long;
    }
    // SAFETY: it has no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the thread's own.
    unsafe { *errno = -status as c_int };
    -1
}

unsafe extern "C" fn prctl_slowly(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    if option == libc::PR_SET_SECCOMP {
        restricts();
    }
    let next = PRCTL.load(Relaxed);
    if next.is_null() {
        // SAFETY: the caller's promise.
        return result(unsafe { system_call!(libc::SYS_prctl, option, a, b, c, d) }) as c_int;
    }
    type Prctl = unsafe extern "C" fn(c_int, ...) -> c_int;
    // SAFETY: glibc's function of this name has this type.
    let next: Prctl = unsafe { transmute(next) };
    // SAFETY: the caller's promise.
    unsafe { next(option, a, b, c, d) }
}

/// The arguments are where a function with any number of them would have them.
pub(crate) unsafe extern "C-unwind" fn syscall_slowly(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let sets = number == libc::SYS_prctl && a as c_int == libc::PR_SET_SECCOMP;
    if sets || number == libc::SYS_seccomp {
        restricts();
    }
    let next = SYSCALL.load(Relaxed);
    if next.is_null() {
        // SAFETY: the caller's promise.
        return result(unsafe { system_call!(number, a, b, c, d, e, f) });
    }
    type Syscall = unsafe extern "C-unwind" fn(c_long, ...) -> c_long;
    // SAFETY: glibc's function of this name has this type.
    let next: Syscall = unsafe { transmute(next) };
    // SAFETY: the caller's promise.
    unsafe { next(number, a, b, c, d, e, f) }
}
