//! `ovl_stat_t`.

use core::ffi::{c_char, c_int, c_void};
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::time::Duration;

use libc::EIO;
use overlock_stat::report::{Figures, Kind};
use overlock_stat::{mode, report};

/// `ovl_stat_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Stat {
    name: *const c_char,
    kind: *const c_char,
    acquisitions: u64,
    waits: u64,
    gave_up: u64,
    waited_ns: u64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    longest_wait_ns: u64,
    holds: u64,
    held_ns: u64,
    longest_hold_ns: u64,
}

/// `ovl_stat_visit_t`.
pub type Visit = Option<unsafe extern "C" fn(*const Stat, *mut c_void) -> c_int>;

impl Stat {
    fn of(figures: &Figures, name: *const c_char) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let kind = match figures.kind {
            Kind::Read => c"read",
            Kind::Write => c"write",
            _ => c"mutex",
        };
        Stat {
            name,
            kind: kind.as_ptr(),
            acquisitions: figures.acquisitions,
            waits: figures.waits,
            gave_up: figures.gave_up,
            waited_ns: ns(figures.waited),
            p50_ns: ns(figures.p50),
            p90_ns: ns(figures.p90),
            p99_ns: ns(figures.p99),
            p999_ns: ns(figures.p999),
            longest_wait_ns: ns(figures.longest_wait),
            holds: figures.holds,
            held_ns: ns(figures.held),
            longest_hold_ns: ns(figures.longest_hold),
        }
    }
}

/// `ovl_stat_enable`.
#[unsafe(no_mangle)]
pub extern "C" fn ovl_stat_enable(on: c_int) -> c_int {
    mode::enable(on != 0);
    0
}

/// `ovl_stat_each`.
///
/// # Safety
///
/// `visit` is null, or may be called with what it is given, and `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovl_stat_each(visit: Visit, data: *mut c_void) -> c_int {
    let Some(visit) = visit else {
        return 0;
    };
    for figures in report().locks {
        // It came as a string, and so has no zero in it.
        let name = CString::new(figures.name.as_str()).unwrap_or_default();
        let stat = Stat::of(&figures, name.as_ptr());
        // SAFETY: the caller's promise.
        let result = unsafe { visit(&raw const stat, data) };
        if result != 0 {
            return result;
        }
    }
    0
}

/// `ovl_stat_print`.
#[unsafe(no_mangle)]
pub extern "C" fn ovl_stat_print(fd: c_int) -> c_int {
    if fd < 0 {
        return libc::EBADF;
    }
    // SAFETY: the caller's file, which stays open.
    let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    let written = file.write_all(report().to_string().as_bytes());
    match written {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(EIO),
    }
}

/// Runs when the library is loaded.
// SAFETY: the section is an array of such functions, which the loader calls.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = mode::load;
