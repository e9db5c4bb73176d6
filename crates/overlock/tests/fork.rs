//! A process with several threads forks while they contend for a lock. The child, with one thread,
//! continues to use it: unlocks what it held, and starts threads that contend for it again.

#[path = "common/caller.rs"]
mod caller;

use std::cell::{Cell, UnsafeCell};
use std::hint;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use caller::{Caller, until};
use overlock::Linux;
use overlock::rw::{OverlockRw, PerCpuRwSem, RwSem};
use overlock::sleep::{KernelMutex as Mutex, Overlock};
use overlock::spin::{Hybrid, HybridShort, PvQueued, RawLock};
use overlock_core::raw::{RawFork, RawForkRwLock};
use overlock_core::sleep::{Barrier, Condvar, Semaphore};

const ROUNDS: u64 = 500;
const THREADS: u64 = 4;

/// Forks; the child exits with the result of `work`.
fn in_child(work: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: the child runs this file's code, with a C library whose allocator supports fork, and
    // exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends a child that hangs.
        unsafe { libc::alarm(600) };
        // SAFETY: the child has one thread, and each lock below forgets its waiters before it is
        // used.
        unsafe { Linux::after_fork() };
        let failed = i32::from(!work());
        // SAFETY: ends the child at once, without destructors of other threads.
        unsafe { libc::_exit(failed) };
    }
    assert!(child > 0);
    child
}

fn ended_well(child: libc::pid_t) -> bool {
    let mut status = -1;
    // SAFETY: `status` is valid for the write.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status == 0
}

/// A number under a lock.
struct Counter<L> {
    lock: L,
    count: UnsafeCell<u64>,
}

// SAFETY: only the lock's holder touches the count.
unsafe impl<L: Sync> Sync for Counter<L> {}

impl<L> Counter<L> {
    /// The caller holds the lock.
    fn add(&self) {
        // SAFETY: the caller's promise.
        let count = unsafe { &mut *self.count.get() };
        let before = *count;
        (0..before % 100).for_each(|_| hint::spin_loop());
        *count = before + 1;
    }
}

/// `step` on several threads, `ROUNDS` times each.
fn fight(step: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..ROUNDS).for_each(|_| step()));
        }
    });
}

/// Threads run `step` again and again. Meanwhile this one acquires with `hold` and forks, several
/// times. Child and parent release with `release`; the child has to `forget` before that.
fn fork_while_they_fight(
    step: impl Fn() + Sync,
    hold: impl Fn(),
    forget: impl Fn() -> bool,
    release: impl Fn(),
) -> bool {
    let step = &step;
    let stop = &AtomicBool::new(false);
    let children: Vec<_> = thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    step();
                }
            });
        }
        let children = (0..20).map(|round| {
            thread::sleep(Duration::from_micros(200));
            hold();
            // Some sleep by then, or all.
            thread::sleep(Duration::from_micros(200 * round));
            let child = in_child(|| {
                let held = forget();
                release();
                fight(step);
                held
            });
            release();
            child
        });
        let children = children.collect();
        stop.store(true, SeqCst);
        children
    });
    children
        .into_iter()
        .filter(|&child| !ended_well(child))
        .count()
        == 0
}

fn goes_on<L: RawLock<Token = ()> + RawFork>() {
    let counter = &Counter {
        lock: L::create().unwrap(),
        count: UnsafeCell::new(0),
    };
    let lock = &counter.lock;
    // SAFETY: called by the thread that has locked it.
    let release = || unsafe { lock.unlock(()) };
    let well = fork_while_they_fight(
        || {
            lock.lock();
            counter.add();
            release();
        },
        || lock.lock(),
        || {
            // SAFETY: `after_fork` was called.
            unsafe { lock.forget_waiters() };
            lock.is_locked() && !lock.is_contended() && lock.try_lock().is_none()
        },
        release,
    );
    assert!(well, "{}", L::NAME);
    assert!(!lock.is_locked() && !lock.is_contended());
}

#[test]
fn overlock() {
    goes_on::<Overlock>();
}

#[test]
fn mutex() {
    goes_on::<Mutex>();
}

#[test]
fn hybrid() {
    goes_on::<Hybrid>();
    goes_on::<HybridShort>();
}

#[test]
fn pv_queued() {
    goes_on::<PvQueued>();
}

/// Readers and writers contend, and the forking thread is one of either.
fn goes_on_rw<L: RawForkRwLock>() {
    let counter = &Counter {
        lock: L::INIT,
        count: UnsafeCell::new(0),
    };
    let lock = &counter.lock;
    let write = || {
        let token = lock.write();
        counter.add();
        // SAFETY: just acquired.
        unsafe { lock.unlock_write(token) }
    };
    let iteration = AtomicU32::new(0);
    let either = || {
        if iteration.fetch_add(1, SeqCst) % 4 == 0 {
            return write();
        }
        let token = lock.read();
        hint::spin_loop();
        // SAFETY: just acquired.
        unsafe { lock.unlock_read(token) }
    };
    let written = Cell::new(None);
    let well = fork_while_they_fight(
        either,
        || written.set(Some(lock.write())),
        || {
            // SAFETY: `after_fork` was called, and the calling thread holds it.
            unsafe { lock.forget_waiters(true) };
            lock.is_write_locked() && !lock.is_contended() && lock.try_read().is_none()
        },
        // SAFETY: acquired above, in the child by its parent's thread.
        || unsafe { lock.unlock_write(written.take().unwrap()) },
    );
    assert!(well, "{}, writing", L::NAME);
    let read = Cell::new(None);
    // Other readers would read for ever in the child.
    let well = fork_while_they_fight(
        write,
        || read.set(Some(lock.read())),
        || {
            // SAFETY: `after_fork` was called.
            unsafe { lock.forget_waiters(false) };
            lock.is_locked() && !lock.is_write_locked() && lock.try_write().is_none()
        },
        // SAFETY: as above.
        || unsafe { lock.unlock_read(read.take().unwrap()) },
    );
    assert!(well, "{}, reading", L::NAME);
    assert!(!lock.is_locked() && !lock.is_contended());
}

#[test]
fn rwsem() {
    goes_on_rw::<RwSem>();
}

#[test]
fn overlock_rw() {
    goes_on_rw::<OverlockRw>();
}

#[test]
fn percpu_rwsem() {
    goes_on_rw::<PerCpuRwSem>();
}

/// Threads wait when the process forks; the child has no waiters.
#[test]
fn what_has_no_owner() {
    let lock = &Overlock::new();
    let condvar = &Condvar::<Linux>::new();
    let semaphore = &Semaphore::<Linux>::new(1);
    let barrier = &Barrier::<Linux>::new(2);
    let wait = || {
        lock.lock();
        // SAFETY: just locked.
        unsafe { condvar.wait(lock, ()) };
        // SAFETY: locked again.
        unsafe { lock.unlock(()) }
    };
    let meet = || {
        thread::scope(|scope| {
            scope.spawn(|| barrier.wait());
            let waiter = scope.spawn(wait);
            semaphore.acquire_many(3);
            while !condvar.notify_one() {
                thread::yield_now();
            }
            waiter.join().unwrap();
            barrier.wait();
        });
    };
    let callers = &[const { OnceLock::new() }; 3];
    let child = thread::scope(|scope| {
        let call = |number: usize| _ = callers[number].set(Caller::here());
        scope.spawn(move || {
            call(0);
            wait();
        });
        scope.spawn(move || {
            call(1);
            semaphore.acquire_many(2);
        });
        scope.spawn(move || {
            call(2);
            barrier.wait();
        });
        let asleep = |caller| until(caller, Caller::is_asleep);
        assert!(callers.iter().all(asleep));
        lock.lock();
        let child = in_child(|| {
            // SAFETY: `after_fork` was called.
            unsafe { lock.forget_waiters() };
            // SAFETY: as above.
            unsafe { condvar.forget_waiters() };
            // SAFETY: as above.
            unsafe { semaphore.forget_waiters() };
            // SAFETY: as above.
            unsafe { barrier.forget_waiters() };
            // SAFETY: the parent's thread locked it, before it forked.
            unsafe { lock.unlock(()) };
            let empty = !condvar.is_in_use() && semaphore.available() == 1;
            semaphore.release_many(2);
            meet();
            empty
        });
        // SAFETY: locked above.
        unsafe { lock.unlock(()) };
        assert!(condvar.notify_one());
        semaphore.release();
        barrier.wait();
        child
    });
    assert!(ended_well(child));
    semaphore.release_many(3);
    meet();
}
