//! Deadlines, lock_api, and a fork in a multi-threaded process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use overlock::sleep::Overlock;
use overlock::spin::{RawTimedLock, Unfair};
use overlock::{Linux, SpinLock};
use overlock_core::Platform;

fn gives_up_in_time<L: RawTimedLock>() {
    let lock = &L::create().unwrap();
    let token = lock.lock();
    thread::scope(|scope| {
        scope.spawn(move || {
            for wait in [0, 1, 20].map(Duration::from_millis) {
                let start = Instant::now();
                assert!(lock.lock_until(Linux::now().plus(wait)).is_none());
                assert!(start.elapsed() >= wait, "{} gave up early", L::NAME);
                assert!(start.elapsed() < wait + Duration::from_secs(60));
            }
        });
    });
    // SAFETY: the token is of this lock and this thread.
    unsafe { lock.unlock(token) };
    assert!(!lock.is_contended());
    let token = lock.lock_until(overlock_core::Instant::from_nanos(0));
    assert!(token.is_some(), "tries once, even after the deadline");
}

#[test]
fn deadlines() {
    gives_up_in_time::<Overlock>();
    gives_up_in_time::<Unfair>();
}

#[cfg(feature = "lock_api")]
mod with_lock_api {
    macro_rules! tests {
        ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$( tests!(@ $name, $lock, $kind); )*};
        (@ $name:ident, $lock:ident, fallible) => { tests!(@ $name, LazyFastQueue, plain); };
        (@ $name:ident, $lock:ident, $kind:ident) => {
            #[test]
            fn $name() {
                static COUNT: lock_api::Mutex<overlock::spin::$lock, u64> = lock_api::Mutex::new(0);
                std::thread::scope(|scope| {
                    for _ in 0..2 {
                        scope.spawn(|| {
                            for _ in 0..200 {
                                *COUNT.lock() += 1;
                            }
                        });
                    }
                });
                let guard = COUNT.lock();
                assert_eq!(*guard, 400);
                assert!(COUNT.is_locked() && COUNT.try_lock().is_none());
            }
        };
    }
    overlock_family::spin_locks!(tests);
}

/// While other threads contend for one lock, a child of fork takes and releases other locks: one
/// that was free, one that its own thread held, and a new one. No table of the process is left
/// locked.
#[test]
fn a_forked_child_has_no_use_for_its_parents_threads() {
    static BUSY: SpinLock<u64> = SpinLock::new(0);
    static QUIET: SpinLock<u64> = SpinLock::new(0);
    static STOP: AtomicBool = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !STOP.load(Ordering::Relaxed) {
                    *BUSY.lock() += 1;
                }
            });
        }
        thread::sleep(Duration::from_millis(20));
        for _ in 0..20 {
            let held = SpinLock::new(());
            let guard = held.lock();
            // SAFETY: the child only locks, unlocks and exits.
            let child = unsafe { libc::fork() };
            if child == 0 {
                drop(guard);
                *QUIET.lock() += 1;
                let own = SpinLock::new(0);
                *own.lock() += 1;
                // SAFETY: ends the child at once, as a child of a multi-threaded process must.
                unsafe { libc::_exit(0) };
            }
            drop(guard);
            assert!(child > 0);
            let mut status = -1;
            // SAFETY: `status` is valid for the write.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0);
        }
        STOP.store(true, Ordering::Relaxed);
    });
}
