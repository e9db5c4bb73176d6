//! The locks of overlock for C and C++: the implementation of `include/overlock.h`, which documents
//! every function.
//!
//! | C | Rust |
//! |---|---|
//! | `ovl_mutex_t`, `ovl_spinlock_t` | [`Overlock`](overlock_core::sleep::Overlock), fast path in the header |
//! | `ovl_rwlock_t` | [`OverlockRw`](overlock_core::rw::OverlockRw) |
//! | `ovl_cond_t` | [`Condvar`](overlock_core::sleep::Condvar) |
//!
//! Every function is `extern "C"`: a panic aborts the process with a message, and never crosses
//! into C.
#![cfg(target_os = "linux")]

pub mod cond;
pub mod deadline;
mod fork;
mod layout;
pub mod mutex;
mod named;
pub mod rwlock;
pub mod stat;

use core::ffi::{CStr, c_char, c_int};

use libc::{EBUSY, ETIMEDOUT};
use overlock::Linux;

/// `ovl_version`.
#[unsafe(no_mangle)]
pub extern "C" fn ovl_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!(),
        };
    VERSION.as_ptr()
}

/// `ovl_use_futex_alone`.
#[unsafe(no_mangle)]
pub extern "C" fn ovl_use_futex_alone() -> c_int {
    Linux::use_futex_alone();
    0
}

/// Returns 0, or `EBUSY` if an attempt failed.
fn or_busy(acquired: bool) -> c_int {
    if acquired { 0 } else { EBUSY }
}

/// Returns 0, or `ETIMEDOUT` if a wait ended without success.
fn or_late(acquired: bool) -> c_int {
    if acquired { 0 } else { ETIMEDOUT }
}
