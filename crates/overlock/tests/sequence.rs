//! The unlock of the recommended mutex is a restartable sequence where Linux has them. One test
//! single-steps through it; in another, threads contend for the lock while the process gives the
//! sequences up. Each runs in a child process: a tracer stops a whole thread, and sequences are
//! given up for good.
#![cfg(all(target_os = "linux", not(miri)))]

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use overlock::Linux;
use overlock::sleep::Overlock;
use overlock_core::raw::RawLock;

/// A number under a lock.
struct Counter {
    lock: Overlock,
    count: UnsafeCell<u64>,
}

// SAFETY: only the lock's holder touches the count.
unsafe impl Sync for Counter {}

impl Counter {
    const fn new() -> Self {
        Counter {
            lock: Overlock::new(),
            count: UnsafeCell::new(0),
        }
    }

    fn add(&self) {
        self.lock.lock();
        // SAFETY: the lock is held.
        unsafe { *self.count.get() += 1 };
        // SAFETY: as above.
        unsafe { self.lock.unlock(()) };
    }

    fn count(&self) -> u64 {
        self.lock.lock();
        // SAFETY: the lock is held.
        let count = unsafe { *self.count.get() };
        // SAFETY: as above.
        unsafe { self.lock.unlock(()) };
        count
    }
}

/// Forks; the child exits with the result of `work`.
fn in_child(work: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: the child runs this file's code, with a C library whose allocator supports fork, and
    // exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends a child that hangs.
        unsafe { libc::alarm(60) };
        // SAFETY: the child has one thread, and has no lock yet.
        unsafe { Linux::after_fork() };
        let failed = i32::from(!work());
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(failed) };
    }
    assert!(child > 0);
    child
}

/// Waits until the child stops or ends, and returns its status.
fn wait_for(child: libc::pid_t) -> libc::c_int {
    let mut status = -1;
    // SAFETY: `status` is valid for the write.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

const STEPPED: u64 = 100;

/// The thread stops, for its tracer, before and after so many unlocks; another one may contend for
/// the lock.
fn be_stepped(contended: bool) -> bool {
    let (counter, ends, others) = (Counter::new(), AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        if contended {
            scope.spawn(|| {
                while !ends.load(Relaxed) {
                    counter.add();
                    others.fetch_add(1, Relaxed);
                }
            });
        }
        // SAFETY: no memory is involved. The parent traces this thread.
        unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
        // SAFETY: as above.
        unsafe { libc::raise(libc::SIGSTOP) };
        (0..STEPPED).for_each(|_| counter.add());
        // SAFETY: as above.
        unsafe { libc::raise(libc::SIGSTOP) };
        ends.store(true, Relaxed);
    });
    counter.count() == STEPPED + others.load(Relaxed)
}

/// An unlock that restarted after each step would never end.
fn is_stepped_to_its_end(contended: bool) {
    let child = in_child(|| be_stepped(contended));
    let status = wait_for(child);
    if !libc::WIFSTOPPED(status) {
        // A sandbox that allows no tracing.
        assert_eq!(status, 0);
        return;
    }
    let go = |how, signal: libc::c_int| {
        // SAFETY: the child is stopped, and ours; no memory is involved.
        let done = unsafe { libc::ptrace(how, child, ptr::null_mut::<u8>(), signal as usize) };
        assert_eq!(done, 0);
    };
    let mut steps = 0_u64;
    loop {
        go(libc::PTRACE_SINGLESTEP, 0);
        let status = wait_for(child);
        assert!(libc::WIFSTOPPED(status), "the child ends: {status:#x}");
        if libc::WSTOPSIG(status) == libc::SIGSTOP {
            break;
        }
        steps += 1;
        assert!(steps < 5_000_000, "it is stepped in circles");
    }
    assert!(steps > STEPPED);
    go(libc::PTRACE_DETACH, 0);
    assert_eq!(wait_for(child), 0);
}

#[test]
fn stepping_through_unlocks_gets_on() {
    is_stepped_to_its_end(false);
}

#[test]
fn stepping_through_unlocks_gets_on_beside_another_thread() {
    is_stepped_to_its_end(true);
}

const THREADS: u64 = 8;
const ROUNDS: u64 = 5_000;

#[test]
fn sequences_are_given_up_while_threads_fight() {
    for pause in [0, 1, 3, 10] {
        let child = in_child(|| {
            let counter = Counter::new();
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| (0..ROUNDS).for_each(|_| counter.add()));
                }
                thread::sleep(Duration::from_millis(pause));
                Linux::use_futex_alone();
            });
            counter.count() == THREADS * ROUNDS
        });
        assert_eq!(wait_for(child), 0, "after {pause} ms");
    }
}
