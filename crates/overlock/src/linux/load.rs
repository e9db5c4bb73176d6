//! What is done once, when the program or the library is loaded, and once more where the process is
//! about to restrict itself: no lock call asks the system for anything but to sleep and to wake.

use core::ffi::{CStr, c_char};

use super::{Linux, barrier, exit_key, extras, futex, quota, release, rseq, slot, turn};

/// Runs before `main`, in the first thread.
#[used]
#[cfg_attr(not(miri), unsafe(link_section = ".init_array"))]
pub(super) static LOADED: extern "C" fn() = {
    extern "C" fn load() {
        exit_key::stay_loaded();
        slot::register();
        rseq::find();
        if variable(c"OVERLOCK_FUTEX_ALONE").is_some_and(|value| value == c"1") {
            return Linux::use_futex_alone();
        }
        release::register();
        barrier::register();
        quota::look();
    }
    load
};

impl Linux {
    /// From now on the locks of this process ask the system for `futex` alone: not for
    /// `membarrier`, `sched_yield` or `futex_waitv`, which are extras. To be called before the
    /// process puts a seccomp filter in force that refuses them, or ends who calls them. No wake-up
    /// is missed by it. Later calls do nothing. A program that begins under such a filter says
    /// so by the environment variable `OVERLOCK_FUTEX_ALONE=1`.
    ///
    /// Where a filter refuses one of them without this, the locks notice and do without from then
    /// on; but an unlock may have been under way at that moment, so that each sleep ends after
    /// a second from then on, and looks again.
    ///
    /// Uncontended unlocks cost a locked instruction after this. Reading a
    /// [`PerCpuRwLock`](crate::PerCpuRwLock) costs a fence.
    pub fn use_futex_alone() {
        release::give_up();
        barrier::give_up();
        turn::give_up();
        futex::give_up();
        extras::end();
    }

    /// Finds out anew for how many threads there are CPUs, after the affinity or the quota of the
    /// process has changed: the reader-writer semaphore does not spin where there is one. It
    /// opens files, so that no lock call does this. Nothing is done after
    /// [`use_futex_alone`](Self::use_futex_alone).
    pub fn refresh_parallelism() {
        extras::ask(quota::look);
    }
}

/// The value of an environment variable. Not by `getenv`, which a program may have replaced, nor by
/// `std`, which copies.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library's own variable.
    let mut entry = unsafe { environ };
    if entry.is_null() {
        return None;
    }
    loop {
        // SAFETY: the array ends with a null pointer, and we have not passed it.
        let text = unsafe { *entry };
        if text.is_null() {
            return None;
        }
        // SAFETY: each entry is a string that ends with a zero.
        let text = unsafe { CStr::from_ptr(text) };
        let value = text.to_bytes_with_nul().strip_prefix(name.to_bytes());
        if let Some([b'=', value @ ..]) = value {
            return CStr::from_bytes_with_nul(value).ok();
        }
        // SAFETY: as above.
        entry = unsafe { entry.add(1) };
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_by_their_whole_name() {
        let path = std::env::var("PATH").unwrap();
        assert_eq!(variable(c"PATH").unwrap().to_str(), Ok(path.as_str()));
        assert_eq!(variable(c"PAT"), None);
        assert_eq!(variable(c"OVERLOCK_NO_SUCH_VARIABLE"), None);
    }
}
