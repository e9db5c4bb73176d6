//! Signal handlers that use locks.
//!
//! - A thread waits for a lock; handlers interrupt it, nested three deep, and a fourth one without
//!   a queue node left. Each takes and releases a contended lock of the same kind.
//! - Handlers interrupt threads anywhere, also within a lock's queue operations, and try to take
//!   that same lock.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};
use std::{ptr, thread};

use overlock::spin::RawLock;

/// One handler at a time in the process: tests of different locks run one by one.
static SERIAL: Mutex<()> = Mutex::new(());
static LOCK: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static ENTER: AtomicUsize = AtomicUsize::new(0);
static DEPTH: AtomicU32 = AtomicU32::new(0);
static HANDLED: AtomicU32 = AtomicU32::new(0);

/// Contexts of a thread: its code and four nested handlers; the last has no node.
const NESTED: u32 = 4;

extern "C" fn handler(_: libc::c_int) {
    // SAFETY: the test stored a function of this type before it installed the handler.
    let enter: fn() = unsafe { std::mem::transmute(ENTER.load(Ordering::Acquire)) };
    enter();
}

/// Runs in the handler: nests further from inside, then takes the contended lock.
fn enter<L: RawLock>() {
    if DEPTH.fetch_add(1, Ordering::AcqRel) + 1 < NESTED {
        // SAFETY: raises a signal whose handler is this one; SA_NODEFER lets it nest.
        unsafe { libc::raise(libc::SIGUSR1) };
    }
    // SAFETY: the test keeps the lock alive until after the last signal.
    let lock = unsafe { &*LOCK.load(Ordering::Acquire).cast::<L>() };
    let token = lock.lock();
    HANDLED.fetch_add(1, Ordering::AcqRel);
    // SAFETY: the token is of this lock and this thread.
    unsafe { lock.unlock(token) };
}

/// Makes the handler run `enter` with `lock`.
fn install<L>(lock: &L, enter: fn()) {
    LOCK.store(ptr::from_ref(lock).cast_mut().cast(), Ordering::Release);
    ENTER.store(enter as usize, Ordering::Release);
    // SAFETY: an all-zero sigaction is valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_NODEFER | libc::SA_RESTART;
    // SAFETY: `action` is valid, and the handler does only what this file says.
    let installed = unsafe { libc::sigaction(libc::SIGUSR1, &action, ptr::null_mut()) };
    assert_eq!(installed, 0);
}

/// Runs in the handler of [`tries`]. The interrupted thread may hold the lock, so it must not wait.
fn try_once<L: RawLock>() {
    // SAFETY: the test keeps the lock alive until after the last signal.
    let lock = unsafe { &*LOCK.load(Ordering::Acquire).cast::<L>() };
    if let Some(token) = lock.try_lock() {
        HANDLED.fetch_add(1, Ordering::AcqRel);
        // SAFETY: the token is of this lock and this thread.
        unsafe { lock.unlock(token) };
    }
}

fn spend(micros: u64) {
    let end = Instant::now() + Duration::from_micros(micros);
    while Instant::now() < end {}
}

/// Sections are long enough for waiters to sleep, so that there are queues to interrupt.
fn tries<L: RawLock>() {
    const WORKERS: usize = 3;

    let _serial = SERIAL
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let lock = L::create().unwrap();
    install(&lock, try_once::<L>);
    HANDLED.store(0, Ordering::Release);
    let (done, ready, gone) = (
        AtomicBool::new(false),
        Barrier::new(WORKERS + 1),
        Barrier::new(WORKERS + 1),
    );
    let threads = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                // SAFETY: no preconditions.
                threads
                    .lock()
                    .unwrap()
                    .push(unsafe { libc::pthread_self() } as usize);
                ready.wait();
                for round in 0.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let token = lock.lock();
                    spend(30);
                    // SAFETY: the token is of this lock and this thread.
                    unsafe { lock.unlock(token) };
                    // Now and then the lock is free.
                    spend(round % 4 * 30);
                }
                gone.wait();
            });
        }
        ready.wait();
        let end = Instant::now() + Duration::from_millis(100);
        while Instant::now() < end || HANDLED.load(Ordering::Acquire) == 0 {
            for &worker in threads.lock().unwrap().iter() {
                let name = worker as libc::pthread_t;
                // SAFETY: the thread is alive: it waits for this one at the end.
                assert_eq!(unsafe { libc::pthread_kill(name, libc::SIGUSR1) }, 0);
            }
            thread::sleep(Duration::from_micros(20));
        }
        done.store(true, Ordering::Relaxed);
        gone.wait();
    });
    assert!(!lock.is_locked());
}

fn nests<L: RawLock>() {
    let _serial = SERIAL
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let [outer, inner] = [L::create().unwrap(), L::create().unwrap()];
    install(&inner, enter::<L>);
    for _ in 0..3 {
        DEPTH.store(0, Ordering::Release);
        HANDLED.store(0, Ordering::Release);
        let token = outer.lock();
        let held = inner.lock();
        thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let outer = &outer;
            scope.spawn(move || {
                // SAFETY: no preconditions.
                sender
                    .send(unsafe { libc::pthread_self() } as usize)
                    .unwrap();
                let token = outer.lock();
                // SAFETY: the token is of this lock and this thread.
                unsafe { outer.unlock(token) };
            });
            let waiter = receiver.recv().unwrap();
            thread::sleep(Duration::from_millis(5)); // it waits now, spinning or asleep
            let name = waiter as libc::pthread_t;
            // SAFETY: the thread is alive: it waits for `outer`, which is held.
            assert_eq!(unsafe { libc::pthread_kill(name, libc::SIGUSR1) }, 0);
            thread::sleep(Duration::from_millis(5)); // the handlers wait too
            // SAFETY: the token is of this lock and this thread.
            unsafe { inner.unlock(held) };
            while HANDLED.load(Ordering::Acquire) < NESTED {
                thread::sleep(Duration::from_millis(1));
            }
            // SAFETY: the token is of this lock and this thread.
            unsafe { outer.unlock(token) };
        });
    }
    assert!(!outer.is_locked() && !inner.is_locked());
}

macro_rules! tests {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$(
        #[test]
        fn $name() {
            nests::<overlock::spin::$lock>();
            tries::<overlock::spin::$lock>();
        }
    )*};
}

overlock_family::spin_locks!(tests);
