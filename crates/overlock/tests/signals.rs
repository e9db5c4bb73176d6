//! A thread waits for a lock; signal handlers interrupt it, three deep, and a fourth one beyond what there are
//! queue nodes for, and each takes and releases a contended lock of the same kind.

use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use std::{ptr, thread};

use overlock::spin::RawLock;

/// One handler at a time in the process: tests of different locks take turns.
static TURN: Mutex<()> = Mutex::new(());
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

/// What the handler does: goes on nesting from inside, then takes the lock that others fight for.
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

fn nests<L: RawLock>() {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let [outer, inner] = [L::create().unwrap(), L::create().unwrap()];
    LOCK.store(ptr::from_ref(&inner).cast_mut().cast(), Ordering::Release);
    ENTER.store(enter::<L> as fn() as usize, Ordering::Release);
    // SAFETY: an all-zero sigaction is valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_NODEFER | libc::SA_RESTART;
    // SAFETY: `action` is valid, and the handler does only what this file says.
    let installed = unsafe { libc::sigaction(libc::SIGUSR1, &action, ptr::null_mut()) };
    assert_eq!(installed, 0);
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
                sender.send(unsafe { libc::pthread_self() }).unwrap();
                let token = outer.lock();
                // SAFETY: the token is of this lock and this thread.
                unsafe { outer.unlock(token) };
            });
            let waiter = receiver.recv().unwrap();
            thread::sleep(Duration::from_millis(5)); // it waits now, spinning or asleep
            // SAFETY: the thread is alive: it waits for `outer`, which is held.
            assert_eq!(unsafe { libc::pthread_kill(waiter, libc::SIGUSR1) }, 0);
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
    ($($name:ident: $lock:ident, $kind:ident;)*) => {$(
        #[test]
        fn $name() {
            nests::<overlock::spin::$lock>();
        }
    )*};
}

overlock::core::spin_locks!(tests);
