//! Whether the locks of the program itself are counted: by the environment, or by a call.
//!
//! | | figures of the program's own | the table for readers |
//! |---|---|---|
//! | `OVERLOCK_STAT=1` | yes | yes |
//! | [`enable`]`(true)` | yes | no |

use core::ffi::{CStr, c_void};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU8};

use overlock_linux::__private::{spin, variable};

use crate::table::{self, FIND_OBJECT};

/// The environment was asked.
const KNOWN: u8 = 1;
/// The program counts for itself.
const FIGURES: u8 = 1 << 1;
/// Readers see the table.
const TABLE: u8 = 1 << 2;
/// With single waits.
const PROFILE: u8 = 1 << 3;

static MODE: AtomicU8 = AtomicU8::new(0);

/// Whether acquisitions have to be counted.
#[inline(always)]
pub fn is_on() -> bool {
    MODE.load(Relaxed) != KNOWN && modes() != KNOWN
}

/// Whether the table is used.
pub(crate) fn has_table() -> bool {
    cfg!(target_pointer_width = "64") && modes() & TABLE != 0
}

/// Whether single waits are shown.
#[inline]
pub(crate) fn is_profiled() -> bool {
    MODE.load(Relaxed) & PROFILE != 0
}

#[inline]
fn modes() -> u8 {
    // Acquire: pairs with the exchange in `ask`.
    match MODE.load(Acquire) {
        mode if mode & KNOWN != 0 => mode,
        _ => ask(),
    }
}

/// Asks the environment.
#[cold]
fn ask() -> u8 {
    let is_on = variable(c"OVERLOCK_STAT").is_some_and(|value| value == c"1");
    let is_profiled = is_on && variable(c"OVERLOCK_PROFILE").is_some();
    if is_on {
        table::set_up(found, is_profiled);
    }
    let flag = |is, flag| if is { flag } else { 0 };
    let mode = KNOWN | flag(is_on, FIGURES | TABLE) | flag(is_profiled, PROFILE);
    // Release: pairs with `modes`. Acquire: of another thread that has asked.
    MODE.fetch_or(mode, AcqRel) | mode
}

/// `_dl_find_object`; null before it is looked up, and where there is none.
static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The C library's function of this name, of which there is one that is asked for. Looked up when
/// the program is loaded: the loader takes its lock for that, and may allocate.
fn found(name: &CStr) -> *mut c_void {
    let found = FOUND.load(Relaxed);
    if !found.is_null() {
        return found;
    }
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    FOUND.store(found, Relaxed);
    found
}

/// Has the program count for itself, or not any more. With `OVERLOCK_STAT=1` it always does.
pub fn enable(on: bool) {
    let mode = modes();
    if mode & TABLE == 0 {
        // Release: as in `ask`.
        match on {
            true => MODE.fetch_or(FIGURES, Release),
            false => MODE.fetch_and(!FIGURES, Release),
        };
    }
}

/// Runs when the program is loaded, or the library that has the locks: of those that a child of
/// fork() has, the table is its parent's.
pub extern "C" fn load() {
    unsafe extern "C" fn child() {
        table::after_fork();
    }
    if has_table() {
        spin::note_wakes();
        found(FIND_OBJECT);
        // SAFETY: the handler has the type that is asked for, and the code stays. Without memory
        // for it, children count in their parent's table.
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
    }
}
