//! `WaitOnAddress` and its like, of Windows 8.

use std::ffi::c_void;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

#[cfg_attr(
    target_arch = "x86",
    link(
        name = "api-ms-win-core-synch-l1-2-0",
        kind = "raw-dylib",
        import_name_type = "undecorated"
    )
)]
#[cfg_attr(
    not(target_arch = "x86"),
    link(name = "api-ms-win-core-synch-l1-2-0", kind = "raw-dylib")
)]
unsafe extern "system" {
    fn WaitOnAddress(
        address: *const c_void,
        compare: *const c_void,
        size: usize,
        milliseconds: u32,
    ) -> i32;
    // By their documents both take an address, and nothing has to lie there.
    safe fn WakeByAddressSingle(address: *const c_void);
    safe fn WakeByAddressAll(address: *const c_void);
}

const INFINITE: u32 = u32::MAX;

pub(crate) fn wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) -> bool {
    // Not too early; one that is too long for the call ends spuriously.
    let millis = limit.map_or(INFINITE, |limit| {
        let millis = limit.as_nanos().div_ceil(1_000_000);
        u32::try_from(millis).unwrap_or(INFINITE).min(INFINITE - 1)
    });
    let compare = &raw const expected;
    // SAFETY: two words of 4 bytes that outlive the call.
    unsafe {
        WaitOnAddress(
            word.as_ptr().cast(),
            compare.cast(),
            size_of::<u32>(),
            millis,
        )
    };
    // Whether a sleep whose time is over can have taken a wake-up is not documented. In wine it
    // can.
    true
}

pub(crate) fn wake_one(word: *const AtomicU32) {
    WakeByAddressSingle(word.cast());
}

pub(crate) fn wake_all(word: *const AtomicU32) {
    WakeByAddressAll(word.cast());
}
