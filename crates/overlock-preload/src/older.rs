//! Functions that an older glibc lacks, for Rust's standard library in this one: before 2.33,
//! `stat` was an inline function. Nobody else sees these.

use core::ffi::{c_char, c_int, c_void};

use overlock_linux::__private::system_call;

use crate::sandbox::result;

/// # Safety
///
/// As the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn stat64(path: *const c_char, to: *mut c_void) -> c_int {
    let here = libc::AT_FDCWD;
    // SAFETY: the kernel checks the addresses, and its format is the C library's.
    result(unsafe { system_call!(libc::SYS_newfstatat, here, path, to, 0) }) as c_int
}

/// # Safety
///
/// As the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fstat64(file: c_int, to: *mut c_void) -> c_int {
    // SAFETY: the kernel checks the address, and its format is the C library's.
    result(unsafe { system_call!(libc::SYS_fstat, file, to) }) as c_int
}
