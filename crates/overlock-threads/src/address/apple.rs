//! `os_sync_wait_on_address` and its like, of macOS 14.4 and iOS 17.4. Before them the
//! [table](super::table).

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use super::{LONGEST, table};

type Wait = unsafe extern "C" fn(*mut c_void, u64, usize, u32) -> c_int;
type WaitFor = unsafe extern "C" fn(*mut c_void, u64, usize, u32, u32, u64) -> c_int;
type Wake = unsafe extern "C" fn(*mut c_void, usize, u32) -> c_int;

/// os/clock.h: the clock of `mach_absolute_time`.
const CLOCK: u32 = 32;
/// No flags: sleepers of this process.
const PRIVATE: u32 = 0;
const SIZE: usize = size_of::<u32>();

/// The system's functions.
struct System {
    wait: Wait,
    wait_for: WaitFor,
    wake_one: Wake,
    wake_all: Wake,
}

fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a string. The functions are the C library's, which stays loaded.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!function.is_null()).then_some(function)
}

/// `None` on an earlier system.
fn system() -> Option<&'static System> {
    static SYSTEM: OnceLock<Option<System>> = OnceLock::new();
    let find_all = || {
        let wait = find(c"os_sync_wait_on_address")?;
        let wait_for = find(c"os_sync_wait_on_address_with_timeout")?;
        let wake_one = find(c"os_sync_wake_by_address_any")?;
        let wake_all = find(c"os_sync_wake_by_address_all")?;
        // SAFETY: the functions of these names have these types, by os/os_sync_wait_on_address.h.
        unsafe {
            Some(System {
                wait: transmute::<*mut c_void, Wait>(wait),
                wait_for: transmute::<*mut c_void, WaitFor>(wait_for),
                wake_one: transmute::<*mut c_void, Wake>(wake_one),
                wake_all: transmute::<*mut c_void, Wake>(wake_all),
            })
        }
    };
    SYSTEM.get_or_init(find_all).as_ref()
}

pub(crate) fn wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) -> bool {
    let Some(system) = system() else {
        return table::wait(word, expected, limit);
    };
    let (word, expected) = (word.as_ptr().cast(), u64::from(expected));
    match limit {
        // SAFETY: a word of this size that outlives the call.
        None => unsafe { (system.wait)(word, expected, SIZE, PRIVATE) },
        Some(limit) => {
            // A limit of 0 is an error.
            let nanos = limit.min(LONGEST).as_nanos().max(1) as u64;
            // SAFETY: as above.
            unsafe { (system.wait_for)(word, expected, SIZE, PRIVATE, CLOCK, nanos) }
        }
    };
    // Whether a sleep whose time is over can have taken a wake-up is not documented.
    true
}

fn wake(word: *const AtomicU32, by: impl Fn(&System) -> Wake, by_table: fn(*const AtomicU32)) {
    match system() {
        // SAFETY: the kernel finds sleepers by the address, and does not touch the word.
        Some(system) => _ = unsafe { by(system)(word.cast_mut().cast(), SIZE, PRIVATE) },
        None => by_table(word),
    }
}

pub(crate) fn wake_one(word: *const AtomicU32) {
    wake(word, |system| system.wake_one, table::wake_one);
}

pub(crate) fn wake_all(word: *const AtomicU32) {
    wake(word, |system| system.wake_all, table::wake_all);
}
