//! A lock whose memory is unmapped as soon as nobody holds it or waits for it, though the unlock of
//! an earlier owner has not returned. POSIX allows that for a mutex, and the recommended one
//! supports it.
//!
//! The time between a release and the end of its unlock is some nanoseconds. So signals interrupt
//! the threads all the time, for long: owners lose their CPU, others sleep, and unlocks have
//! waiters to wake.

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use overlock::sleep::{Overlock as Lock, RawLock};
use overlock_core::raw::RawFairLock;

const THREADS: u32 = 3;
/// Acquisitions of a lock by each thread.
const USES: u32 = 3;
const PAGE: usize = 4096;
const PAGES: usize = 256;

/// Pages that fault if they are touched after they have been closed, one lock in each.
struct Pages(*mut u8);

// SAFETY: an address.
unsafe impl Sync for Pages {}

impl Pages {
    fn new() -> Self {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory.
        let memory = unsafe { libc::mmap(ptr::null_mut(), PAGES * PAGE, access, kind, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        Pages(memory.cast())
    }

    /// The lock on a page.
    fn lock(&self, page: usize) -> *mut Lock {
        assert!(page < PAGES);
        // SAFETY: within the pages.
        unsafe { self.0.add(page * PAGE) }.cast()
    }

    fn close(&self, page: usize) {
        let start = self.0.wrapping_add(page * PAGE).cast();
        // SAFETY: nobody reads or writes the page any more; that is what is tested.
        let closed = unsafe { libc::mprotect(start, PAGE, libc::PROT_NONE) };
        assert_eq!(closed, 0);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; all threads have ended.
        unsafe { libc::munmap(self.0.cast(), PAGES * PAGE) };
    }
}

fn spin_for(micros: u64) {
    let end = Instant::now() + Duration::from_micros(micros);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

extern "C" fn linger(_: libc::c_int) {
    spin_for(30);
}

fn install_handler() {
    // SAFETY: an all-zero sigaction is valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = linger as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler reads the clock and nothing else.
    let installed = unsafe { libc::sigaction(libc::SIGUSR1, &action, ptr::null_mut()) };
    assert_eq!(installed, 0);
}

/// Stays in a section: mostly for no time, sometimes until others sleep, begin to wait, or are
/// late.
fn stay(seed: u32) {
    let micros = match seed % 512 {
        0 => 700,
        1..=8 => 80,
        9..=64 => 8,
        65..=128 => 1,
        _ => return,
    };
    spin_for(micros);
}

/// One thread's uses of `lock`; the last user of all closes the page.
fn use_lock(pages: &Pages, page: usize, lock: *const Lock, uses: &AtomicU32, mut seed: u32) {
    for _ in 0..USES {
        // Scrambled, so that each kind of stay meets each other one.
        seed = seed.wrapping_mul(0x9e37_79b9).rotate_left(11);
        // SAFETY: the page is open until the last use ends, and this one has begun.
        let lock = unsafe { &*lock };
        lock.lock();
        stay(seed);
        let last = uses.fetch_add(1, SeqCst) + 1 == THREADS * USES;
        if seed & 0x700 == 0 {
            // SAFETY: locked above.
            unsafe { lock.unlock_fair(()) }
        } else {
            // SAFETY: locked above.
            unsafe { lock.unlock(()) }
        }
        if last {
            pages.close(page);
        }
    }
}

/// All uses of the locks on new pages.
fn batch(number: usize) {
    let pages = &Pages::new();
    for page in 0..PAGES {
        // SAFETY: the page is ours, and open.
        unsafe { pages.lock(page).write(Lock::new()) };
    }
    let here = &[const { [const { AtomicU32::new(0) }; 2] }; PAGES];
    let names = &[const { AtomicUsize::new(0) }; THREADS as usize];
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let name = &names[thread as usize];
                scope.spawn(move || {
                    // SAFETY: has no preconditions.
                    name.store(unsafe { libc::pthread_self() } as usize, SeqCst);
                    for (page, [arrived, uses]) in here.iter().enumerate() {
                        let lock = pages.lock(page);
                        arrived.fetch_add(1, SeqCst);
                        while arrived.load(SeqCst) < THREADS {
                            thread::yield_now();
                        }
                        let seed = (number * PAGES + page) as u32 * 8 + thread;
                        use_lock(pages, page, lock, uses, seed);
                    }
                })
            })
            .collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            for name in names.iter().map(|name| name.load(SeqCst)) {
                if name != 0 {
                    // SAFETY: it has not been joined; once it has ended this does nothing.
                    unsafe { libc::pthread_kill(name as libc::pthread_t, libc::SIGUSR1) };
                }
            }
            thread::sleep(Duration::from_micros(20));
        }
    });
    let missed = here
        .iter()
        .filter(|[_, uses]| uses.load(SeqCst) != THREADS * USES);
    assert_eq!(missed.count(), 0);
}

#[test]
fn nobody_touches_a_lock_that_another_thread_has_freed() {
    install_handler();
    (0..80).for_each(batch);
}
