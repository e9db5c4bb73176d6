//! Priority inheritance: the kernel's PI futexes, and the thread id that their words hold.
//!
//! `FUTEX_LOCK_PI` counts its deadline on `CLOCK_REALTIME`, which can be set; `FUTEX_LOCK_PI2`
//! (Linux 5.14) can count on `CLOCK_MONOTONIC`. With the first alone, a wait whose deadline came
//! too early because the clock was set forward is repeated. If the clock was set back, the wait
//! ends late.
//!
//! # The thread's id
//!
//! Each thread asks the kernel once for its id, and once more in a child of fork: there the thread
//! is a copy, with another id. A page that the kernel empties in every child, for any kind of fork,
//! distinguishes the copy (`MADV_WIPEONFORK`, Linux 4.14). The page holds a number that differs
//! from that of every ancestor, and each thread notes it with its id. If the kernel cannot do this,
//! or an emulator only pretends to, each call asks for the id.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

use overlock_core::sleep::rt_mutex::{PiError, PiPlatform};
use overlock_core::{Deadline, Instant, Platform};

use super::futex::{self, Time};
use super::{Linux, calls};

impl PiPlatform for Linux {
    #[inline]
    fn thread_id() -> u32 {
        let (number, id) = MINE.get();
        if id != 0 && number == page().load(Relaxed) {
            id
        } else {
            ask()
        }
    }

    fn lock_pi(word: &AtomicU32, until: Option<Deadline>) -> Result<(), PiError> {
        match until {
            None => call(word, libc::FUTEX_LOCK_PI, None),
            Some(Deadline::Monotonic(end)) => lock_until(word, end),
            Some(Deadline::Wall(end)) => lock_until_wall(word, end),
            Some(own @ Deadline::Own { .. }) => lock_until_own(word, own),
        }
        // Acquire, pairs with the release in `unlock_pi`, and with a lock's own. The kernel's
        // accesses are full barriers; this says it in the language's terms, and to
        // sanitizers, which do not see them.
        .map(|()| _ = word.load(Acquire))
        .map_err(|error| match error {
            libc::ETIMEDOUT => PiError::Deadline,
            libc::EDEADLK => PiError::Deadlock,
            // No such thread; a kernel thread; a thread that the kernel's waiters do not wait for.
            libc::ESRCH | libc::EPERM | libc::EINVAL => PiError::OwnerDied,
            // Out of memory, or no such futexes on this machine, or a filter.
            _ => PiError::Unavailable,
        })
    }

    fn unlock_pi(word: &AtomicU32) {
        // Release, pairs with the acquire in `lock_pi`: see there. It writes what is there.
        word.fetch_or(0, Release);
        if let Err(error) = call(word, libc::FUTEX_UNLOCK_PI, None) {
            // The word names the caller and says that there are waiters, so the kernel granted this
            // before. They would wait for ever.
            eprintln!(
                "overlock: the kernel does not release a priority-inheritance futex (errno {error})"
            );
            std::process::abort();
        }
    }

    /// The forking thread continues in the child as its first thread, whose id is the process's.
    fn was_before_fork(_: u32) -> bool {
        let process = process();
        ask() == process && FIRST.load(Relaxed) != process
    }
}

/// Set once the kernel has said that it has no `FUTEX_LOCK_PI2`.
static ONLY_REALTIME: AtomicBool = AtomicBool::new(false);

/// Makes the call, with a moment or none; an errno on failure.
fn call(word: &AtomicU32, operation: libc::c_int, end: Option<u64>) -> Result<(), libc::c_int> {
    let end = end.map(Time::new);
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    match futex::until(word, operation, 0, end.as_ref()) {
        0.. => Ok(()),
        error => Err(-error as libc::c_int),
    }
}

/// Since Linux 5.14.
const LOCK_PI2: libc::c_int = 13;

fn lock_until(word: &AtomicU32, end: Instant) -> Result<(), libc::c_int> {
    // Relaxed: a hint, read anew as often as necessary.
    if !ONLY_REALTIME.load(Relaxed) {
        let result = call(word, LOCK_PI2, Some(end.as_nanos()));
        if result != Err(libc::ENOSYS) {
            return result;
        }
        ONLY_REALTIME.store(true, Relaxed);
    }
    lock_until_realtime(word, end)
}

/// For kernels before 5.14.
fn lock_until_realtime(word: &AtomicU32, end: Instant) -> Result<(), libc::c_int> {
    loop {
        let left = end.nanos_since(Linux::now());
        let result = lock_until_wall(word, Linux::wall_clock().saturating_add(left));
        if result != Err(libc::ETIMEDOUT) || Linux::now() >= end {
            return result;
        }
    }
}

fn lock_until_own(word: &AtomicU32, end: Deadline) -> Result<(), libc::c_int> {
    loop {
        let result = lock_until(word, end.instant::<Linux>());
        if result != Err(libc::ETIMEDOUT) || end.is_over::<Linux>() {
            return result;
        }
    }
}

fn lock_until_wall(word: &AtomicU32, end: u64) -> Result<(), libc::c_int> {
    call(word, libc::FUTEX_LOCK_PI, Some(end))
}

thread_local! {
    /// The number of the process in which this thread asked for its id, and the id; zeros before.
    static MINE: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// The word that the kernel sets to 0 in a child of fork. Null until the first thread needs it.
static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
/// Stands in for a missing page: always 0, which no thread notes.
static NO_PAGE: AtomicU32 = AtomicU32::new(0);
/// Count of the numbers given to processes in this line of descent. Copied by fork, like all memory
/// but the page.
static NUMBERS: AtomicU32 = AtomicU32::new(0);
/// The first process in that line in which a thread asked for its id: no lock was held before.
static FIRST: AtomicU32 = AtomicU32::new(0);

#[inline]
fn page() -> &'static AtomicU32 {
    // Acquire, pairs with the release in `map`: the page is there before its address is.
    let page = PAGE.load(Acquire);
    if page.is_null() {
        return map();
    }
    // SAFETY: not null, so one of the two that `map` stores, and both live for ever.
    unsafe { &*page }
}

#[cold]
fn map() -> &'static AtomicU32 {
    let new = new_page().unwrap_or(ptr::from_ref(&NO_PAGE).cast_mut());
    let first = match PAGE.compare_exchange(ptr::null_mut(), new, Release, Acquire) {
        Ok(_) => new,
        Err(first) => first, // Ours is left over: a page for each thread that was slower, once.
    };
    // SAFETY: as in `page`.
    unsafe { &*first }
}

/// Maps a page of zeros that is zeros again in each child.
fn new_page() -> Option<*mut AtomicU32> {
    if cfg!(miri) {
        return None;
    }
    let size = size_of::<AtomicU32>(); // The kernel rounds it up to a page in both calls.
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let page = unsafe { libc::mmap(ptr::null_mut(), size, access, kind, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the advice concerns the mapping just made, which nobody else knows.
    let advise = |advice| unsafe { libc::madvise(page, size, advice) } == 0;
    // Emulators (qemu-user up to 7.2) accept any advice and ignore it. One that accepts an advice
    // that does not exist is not trusted.
    if advise(-1) || !advise(libc::MADV_WIPEONFORK) {
        // SAFETY: as above.
        unsafe { libc::munmap(page, size) };
        return None;
    }
    Some(page.cast())
}

/// Asks the kernel for the thread's id, and notes it if a child of fork can tell that the id is
/// another thread's.
#[cold]
fn ask() -> u32 {
    let id = calls::thread_id();
    if FIRST.load(Relaxed) == 0 {
        // Fails if another thread of this process was faster.
        let _ = FIRST.compare_exchange(0, process(), Relaxed, Relaxed);
    }
    let page = page();
    if ptr::eq(page, &NO_PAGE) {
        return id;
    }
    let mut number = page.load(Relaxed);
    if number == 0 {
        // Relaxed: distinct numbers are the only requirement. Threads that meet here use up one
        // each.
        let next = NUMBERS.fetch_add(1, Relaxed) + 1;
        number = match page.compare_exchange(0, next, Relaxed, Relaxed) {
            Ok(_) => next,
            Err(first) => first,
        };
    }
    MINE.set((number, id));
    id
}

fn process() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::getpid() as u32 }
}

#[cfg(test)]
mod tests;
