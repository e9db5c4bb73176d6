//! Set-up when the program or the library is loaded, and tear-down before the process restricts
//! itself: lock calls make no system calls but to sleep and to wake.

use core::ffi::{CStr, c_char};

use super::{Linux, barrier, extras, futex, quota, rseq, slot, spin, time_slice};

/// Runs before `main`, in the first thread.
#[used]
#[cfg_attr(not(miri), unsafe(link_section = ".init_array"))]
pub(super) static LOADED: extern "C" fn() = {
    extern "C" fn load() {
        stay_loaded();
        slot::register();
        rseq::find();
        if variable(c"OVERLOCK_FUTEX_ALONE").is_some_and(|value| value == c"1") {
            return Linux::use_futex_alone();
        }
        barrier::register();
        quota::scan();
        spin::start(variable(c"OVERLOCK_SPIN"));
    }
    load
};

/// Exiting threads call functions of the library that contains this code, so a `dlclose` must not
/// unmap it before. Takes the loader's lock, so it belongs to load time.
#[cfg(all(target_env = "gnu", not(miri)))]
fn stay_loaded() {
    use core::ffi::{c_int, c_void};
    use core::mem::MaybeUninit;
    use core::ptr;

    /// dlfcn.h.
    const RTLD_DL_LINKMAP: c_int = 2;

    /// link.h: as much of `struct link_map` as debuggers may rely on.
    #[repr(C)]
    struct LinkMap {
        address: usize,
        name: *const c_char,
    }

    let function = stay_loaded as *const c_void;
    let mut found = MaybeUninit::uninit();
    let mut library: *const LinkMap = ptr::null();
    let to = (&raw mut library).cast();
    // SAFETY: both are valid for the writes, the second for the address of a `link_map`.
    let known = unsafe { libc::dladdr1(function, found.as_mut_ptr(), to, RTLD_DL_LINKMAP) };
    if known == 0 {
        return;
    }
    // SAFETY: null, or that of the library that this is part of, as the function has found one.
    let Some(library) = (unsafe { library.as_ref() }) else {
        return;
    };
    // SAFETY: a name is a string; that of the program itself, which stays anyway, is empty.
    if library.name.is_null() || unsafe { library.name.read() } == 0 {
        return;
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: as above. It is there already, so nothing is loaded, and nothing of it runs.
    unsafe { libc::dlopen(library.name, flags) };
}

/// musl never unmaps a library.
#[cfg(not(all(target_env = "gnu", not(miri))))]
fn stay_loaded() {}

impl Linux {
    /// Restricts the locks of this process to the system call `futex`: no more `membarrier`,
    /// `sched_yield`, `futex_waitv` or `sched_getscheduler`, which are extras. Call it before the
    /// process installs a seccomp filter that refuses them or kills for them. No wake-up is missed
    /// by it. It reserves 6 MB of address space, so that 16,384 threads can wait without `mmap`.
    /// Later calls do nothing. A program that starts under such a filter sets the environment
    /// variable `OVERLOCK_FUTEX_ALONE=1`.
    ///
    /// Without this call, the locks notice a filter's refusal and do without from then on.
    /// Afterwards reading a `PerCpuRwLock` costs a fence.
    pub fn use_futex_alone() {
        slot::reserve();
        barrier::give_up();
        time_slice::give_up();
        futex::give_up();
        spin::give_up();
        extras::end();
    }

    /// Determines anew the number of CPUs for this process, after its affinity or quota has
    /// changed. With one CPU the reader-writer semaphore does not spin. It opens files, so no lock
    /// call does this. (A thread that is about to spin reads two others.) It does nothing after
    /// [`use_futex_alone`](Self::use_futex_alone).
    pub fn refresh_parallelism() {
        extras::ask(quota::scan);
    }
}

/// Returns the value of an environment variable. Does not call `getenv`, which a program may have
/// replaced, nor `std`, which copies.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library's own variable.
    let mut entry = unsafe { environ };
    if entry.is_null() {
        entry = initial_environment()?;
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

/// The environment as the kernel has put it on the first thread's stack. The C library's variable
/// is null before its own constructor has run, as in `.preinit_array`, and after `clearenv`. `None`
/// where what the kernel wrote is not there any more: the first code of a program for Arm's 32 bits
/// writes over it, and statically linked programs keep another address.
#[cfg(all(target_env = "gnu", not(miri)))]
fn initial_environment() -> Option<*const *const c_char> {
    /// More than the kernel takes, and less than any address of a stack.
    const ARGUMENTS: usize = 1 << 21;

    unsafe extern "C" {
        /// The loader's: where the kernel has put the number of arguments, with the arguments, a
        /// null pointer and the environment behind it.
        static __libc_stack_end: *const usize;
    }
    // SAFETY: the loader writes it before any other code runs.
    let start = unsafe { __libc_stack_end };
    // SAFETY: null, or the first thread's stack, which stays.
    let arguments = *unsafe { start.as_ref() }?;
    if arguments >= ARGUMENTS {
        return None;
    }
    let end = start.wrapping_add(1 + arguments);
    // SAFETY: the end of the arguments. The start of a program may leave another number: an
    // address, refused above, or zero. Then this is the next word of the same stack.
    let is_end = unsafe { end.read() } == 0;
    is_end.then(|| end.wrapping_add(1).cast())
}

/// musl sets its variable before any constructor.
#[cfg(not(all(target_env = "gnu", not(miri))))]
fn initial_environment() -> Option<*const *const c_char> {
    None
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[cfg(target_env = "gnu")]
    #[test]
    fn the_environment_is_there_before_the_c_library_knows_it() {
        if cfg!(any(target_arch = "arm", target_feature = "crt-static")) {
            return;
        }
        let first = initial_environment().unwrap();
        // SAFETY: a test has an environment.
        let entry = unsafe { *first };
        // SAFETY: each entry is a string.
        let text = unsafe { CStr::from_ptr(entry) }.to_str().unwrap();
        let (name, value) = text.split_once('=').unwrap();
        assert_eq!(std::env::var(name).as_deref(), Ok(value));
    }

    #[test]
    fn variables_are_found_by_their_whole_name() {
        let path = std::env::var("PATH").unwrap();
        assert_eq!(variable(c"PATH").unwrap().to_str(), Ok(path.as_str()));
        assert_eq!(variable(c"PAT"), None);
        assert_eq!(variable(c"OVERLOCK_NO_SUCH_VARIABLE"), None);
    }
}
