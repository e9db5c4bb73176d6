//! Lock order: reports acquisitions and releases of mutexes and reader-writer locks to
//! [`overlock::lockdep`], with `OVERLOCK_LOCKDEP`.
//!
//! The validator does not see locks that stay glibc's. A timed wait ends by itself, so it
//! counts as a trylock.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::AtomicU32;

use libc::EBUSY;
pub(crate) use overlock::lockdep::How;
use overlock::lockdep::{self, ClassId, Evidence, Site as CodeSite, Tally};
use overlock_linux::__private::{ExitKey, system_call, variable};
use overlock_stat::table::FIND_OBJECT;
use overlock_stat::unwind;

use crate::site::Site;
use crate::{config, elf, real};

/// Notifies at a thread's exit.
static KEY: ExitKey = ExitKey::new(thread_exits);

/// Starts the validator when the library is loaded.
pub(crate) fn start() {
    // Early, to be one of the first keys. Without a key, exits of threads are not seen.
    let _ = KEY.get(|| ());
    lockdep::on_thread(watch_thread);
}

/// Sets the validator up when the settings are read: constructors of other objects may take locks
/// before this library is started.
pub(crate) fn set_up() {
    lockdep::hide_own_frames();
    use_own_unwinder();
    if variable(c"OVERLOCK_LOCKDEP_ALL") != Some(c"1") {
        lockdep::set_evidence(Evidence::Threads);
    }
    if let Some(path) = variable(c"OVERLOCK_LOCKDEP_READER") {
        lockdep::set_reader(path);
    }
    if let Some(tally) = variable(c"OVERLOCK_LOCKDEP_TALLY").and_then(tally) {
        lockdep::set_tally(tally);
    }
}

/// Has the validator use an unwinder that takes no lock and no memory. The mutexes of another one
/// are ours: the validator would wait for one that its thread holds. On an older C library it uses
/// the compiler's, and not one that the program has in front of that, as libunwind.
fn use_own_unwinder() {
    unwind::start(real::find(FIND_OBJECT));
    if unwind::is_able() {
        let (backtrace, get_ip) = (backtrace as *mut c_void, get_ip as *mut c_void);
        // SAFETY: they do what those of these names do.
        return unsafe { lockdep::__private::set_unwinder(backtrace, get_ip) };
    }
    let [backtrace, get_ip] = [c"_Unwind_Backtrace", c"_Unwind_GetIP"]
        .map(|name| elf::of_library(c"libgcc_s.so.1", name));
    if let (Some(backtrace), Some(get_ip)) = (backtrace, get_ip) {
        // SAFETY: this library's own, by their names.
        unsafe { lockdep::__private::set_unwinder(backtrace, get_ip) };
    }
}

/// A caller: its return address.
type Caller = usize;

/// As `_Unwind_Backtrace`, of callers outside of this library.
unsafe extern "C" fn backtrace(
    each: extern "C" fn(*mut Caller, *mut c_void) -> c_int,
    data: *mut c_void,
) -> c_int {
    const GO_ON: c_int = 0;
    const END: c_int = 5; // _URC_END_OF_STACK
    let call = |mut caller: Caller| each(&raw mut caller, data) == GO_ON;
    // The function that asks comes first.
    if call(0) {
        unwind::callers(unwind::From::Outside, &mut |frame| {
            frame.is_own || call(frame.address)
        });
    }
    END
}

/// As `_Unwind_GetIP`.
unsafe extern "C" fn get_ip(caller: *const Caller) -> usize {
    // SAFETY: what `backtrace` passes.
    unsafe { *caller }
}

/// Maps the file into memory, which `overlock check` reads. `None` if that is impossible, for
/// another user or in another root.
fn tally(path: &CStr) -> Option<&'static Tally> {
    let flags = libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero.
    let file = unsafe { system_call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    if file < 0 {
        return None;
    }
    let file = file as c_int;
    // SAFETY: a file of ours.
    let length = unsafe { system_call!(libc::SYS_lseek, file, 0_i64, libc::SEEK_END) };
    let mapped = (length >= size_of::<Tally>() as isize).then(|| {
        // SAFETY: a new mapping wherever there is room.
        unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                size_of::<Tally>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file,
                0,
            )
        }
    });
    // SAFETY: as above; not used after this.
    unsafe { system_call!(libc::SYS_close, file) };
    let mapped = mapped.filter(|&mapped| mapped != libc::MAP_FAILED)?;
    // SAFETY: just mapped, of that size, and never unmapped; made of atomics only, which other
    // processes may change.
    Some(unsafe { &*mapped.cast() })
}

/// Runs when a thread exits, and again if a later destructor has used a lock.
unsafe extern "C" fn thread_exits(_: *mut c_void) {
    lockdep::thread_exits();
}

/// Arms the notification for the calling thread's exit.
fn watch_thread() {
    // Without memory for it, the thread's exit is not seen.
    KEY.set(1, || ());
}

/// A lock of the program's.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a> {
    pub(crate) address: usize,
    /// Bytes of the lock that are 0 in a new one. The validator writes them
    /// ([`lockdep::class_of_marked`]), or else the statistics: a later lock in the same memory is
    /// then known to be another.
    pub(crate) mark: &'a AtomicU32,
}

/// Reports that the lock has been initialised.
pub(crate) fn initialised(lock: Object<'_>, site: Site) {
    if config::get().lockdep {
        lockdep::lock_init_marked(lock.address, lock.mark, CodeSite::code(site));
    }
}

/// Reports that the lock at address `lock` has been destroyed.
pub(crate) fn destroyed(lock: usize) {
    if config::get().lockdep {
        lockdep::lock_destroy(lock);
    }
}

/// Returns `how`, as a trylock if the wait has a time limit.
pub(crate) fn limited(how: How, is_limited: bool) -> How {
    if is_limited { how.trying() } else { how }
}

/// Acquires the lock. With validator or statistics, `wait` is called if `attempt`
/// returns `EBUSY`, and else alone. Both return 0 or an errno, and so does this function.
pub(crate) fn acquire(
    object: Object<'_>,
    how: How,
    site: Site,
    attempt: impl FnOnce() -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let config = config::get();
    if !config.lockdep {
        return match config.stat {
            true => or_wait(attempt(), wait),
            false => wait(),
        };
    }
    checked(object, how, site, attempt, wait)
}

/// Returns the class of a lock that the calling thread may wait for without anything to find out:
/// it has taken that lock last, and holds none.
#[inline(always)]
pub(crate) fn class_if_last(lock: Object<'_>) -> Option<ClassId> {
    lockdep::__private::class_if_last(lock.address, lock.mark)
}

/// Reports that the calling thread has acquired the lock of this class, with the validator.
#[inline(always)]
pub(crate) fn has(lock: Object<'_>, class: ClassId, how: How, site: Site) {
    lockdep::acquired(lock.address, class, how, CodeSite::code(site));
}

/// Reports that the calling thread is about to release the lock, with the validator. Returns false
/// if it was not seen to acquire it.
#[inline(always)]
pub(crate) fn releases(lock: usize) -> bool {
    lockdep::__private::releases(lock)
}

/// As [`acquire`], with the validator. Not inlined, so that other waits take less stack.
#[inline(never)]
fn checked(
    object: Object<'_>,
    how: How,
    site: Site,
    attempt: impl FnOnce() -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let (lock, site) = (object.address, CodeSite::code(site));
    let class = match class_if_last(object) {
        Some(class) => class,
        None => {
            let class = lockdep::class_of_marked(lock, object.mark);
            lockdep::acquire(lock, class, how, site);
            class
        }
    };
    let result = or_wait(attempt(), || {
        lockdep::begin_wait(lock, class, how, site);
        let result = wait();
        lockdep::end_wait(lock);
        result
    });
    if result == 0 {
        lockdep::acquired(lock, class, how, site);
    }
    result
}

fn or_wait(attempt: c_int, wait: impl FnOnce() -> c_int) -> c_int {
    if attempt == EBUSY { wait() } else { attempt }
}

/// Tries to acquire the lock. Returns 0 or an errno.
pub(crate) fn attempt(
    lock: Object<'_>,
    how: How,
    site: Site,
    attempt: impl FnOnce() -> c_int,
) -> c_int {
    let result = attempt();
    if result == 0 && config::get().lockdep {
        let class = lockdep::class_of_marked(lock.address, lock.mark);
        lockdep::acquired(lock.address, class, how.trying(), CodeSite::code(site));
    }
    result
}

/// Reports that the calling thread, the only one that may do so, is about to release the lock.
pub(crate) fn release(lock: usize) {
    if config::get().lockdep {
        lockdep::release_own(lock, CodeSite::NONE);
    }
}

/// Reports that the calling thread is about to release a lock that may have several holders.
pub(crate) fn release_shared(lock: usize) {
    if config::get().lockdep {
        lockdep::release(lock);
    }
}

/// Reports that the calling thread releases a lock that is free.
pub(crate) fn release_free(lock: usize) {
    if config::get().lockdep {
        let class = lockdep::known_class(lock).unwrap_or(ClassId::NONE);
        lockdep::release_free(lock, class, CodeSite::NONE);
    }
}

/// Reports that the calling thread is about to wait for a condition, which releases `mutex`.
pub(crate) fn sleeps_releasing(mutex: usize, site: Site) {
    if config::get().lockdep {
        lockdep::sleeps(mutex, CodeSite::code(site));
    }
}

/// Reports that the calling thread is about to wait for other threads.
pub(crate) fn sleeps() {
    if config::get().lockdep {
        lockdep::sleeps(0, CodeSite::NONE);
    }
}

/// Reports another sleep of the calling thread, if those are checked. Waits for a semaphore count
/// as such, since it may serve as a lock.
pub(crate) fn may_sleep() {
    if config::get().lockdep_sleep {
        sleeps();
    }
}

/// Resets the validator after fork() in the child.
pub(crate) fn after_fork() {
    if config::get().lockdep {
        lockdep::fork_child();
    }
}

/// Reports that further signal handlers are not seen.
#[cold]
pub(crate) fn signal_handlers_are_full() {
    if config::get().lockdep {
        lockdep::signal_handlers_are_full();
    }
}

/// Reports that a signal handler begins. The result is for [`exit_signal`].
pub(crate) fn enter_signal(signal: c_int) -> u64 {
    lockdep::enter_signal(signal)
}

/// Reports that the signal handler has returned; `before` is the result of [`enter_signal`].
pub(crate) fn exit_signal(before: u64) {
    lockdep::exit_signal(before);
}

/// Reports that the calling thread jumps out of all signal handlers that it runs.
pub(crate) fn leave_signals() {
    lockdep::leave_signals();
}
