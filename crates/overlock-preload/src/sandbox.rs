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

/// Whether `prctl(PR_SET_SECCOMP, mode, filter)` can restrict the process. Programs ask by a call
/// without a filter whether the kernel knows filters.
fn by_prctl(mode: usize, filter: usize) -> bool {
    mode as libc::c_uint != libc::SECCOMP_MODE_FILTER || filter != 0
}

/// The same of `seccomp(operation, flags, filter)`, which also answers questions.
fn by_seccomp(operation: usize, filter: usize) -> bool {
    match operation as libc::c_uint {
        libc::SECCOMP_SET_MODE_FILTER => filter != 0,
        operation => operation == libc::SECCOMP_SET_MODE_STRICT,
    }
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
    if option == libc::PR_SET_SECCOMP && by_prctl(a, b) {
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
    if match number {
        libc::SYS_prctl => a as c_int == libc::PR_SET_SECCOMP && by_prctl(b, c),
        libc::SYS_seccomp => by_seccomp(a, c),
        _ => false,
    } {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where a question whether filters exist counts as one of them.
    #[test]
    fn a_call_without_a_filter_restricts_nothing() {
        const STRICT: usize = libc::SECCOMP_SET_MODE_STRICT as usize;
        const FILTER: usize = libc::SECCOMP_SET_MODE_FILTER as usize;
        assert!(!by_seccomp(FILTER, 0) && by_seccomp(FILTER, 16) && by_seccomp(STRICT, 0));
        for asks in [
            libc::SECCOMP_GET_ACTION_AVAIL,
            libc::SECCOMP_GET_NOTIF_SIZES,
        ] {
            assert!(!by_seccomp(asks as usize, 16));
        }
        let mode = libc::SECCOMP_MODE_FILTER as usize;
        assert!(!by_prctl(mode, 0) && by_prctl(mode, 16));
        assert!(by_prctl(libc::SECCOMP_MODE_STRICT as usize, 0));
    }
}
