//! The mutex with priority inheritance, on the kernel's PI futexes, of which Miri knows nothing.

use std::sync::Barrier;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Pair;
use overlock::Linux;
use overlock_core::Platform;
use overlock_core::raw::{RawLock, RawTimedLock};
use overlock_core::sleep::RtMutex;

type Lock = RtMutex<Linux>;

fn unlock<L: RawLock<Token = ()>>(lock: &L) {
    // SAFETY: each test unlocks what its thread has locked.
    unsafe { lock.unlock(()) }
}

fn after(wait: Duration) -> overlock_core::Instant {
    Linux::now().plus(wait)
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Acquire) {
        thread::sleep(Duration::from_micros(200));
    }
}

/// Puts the calling thread onto the first CPU that the process may use, with a real-time priority.
/// False if that is not permitted.
fn take_part(priority: i32) -> bool {
    let all = rustix::thread::sched_getaffinity(None).unwrap();
    let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu));
    let mut one = rustix::thread::CpuSet::new();
    one.set(first.unwrap());
    rustix::thread::sched_setaffinity(None, &one).unwrap();
    // A `struct sched_param` is one integer. By the system call: musl's function does nothing.
    let param = &raw const priority;
    // SAFETY: `param` is valid; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, param) == 0 }
}

const LONG: Duration = Duration::from_secs(120);

/// How long the thread in the middle runs, if nobody stops it.
const HOG: Duration = Duration::from_millis(500);

/// Keeps the CPU until the flag is set. Whether that takes too long, in time in which this thread
/// runs: the machine may stop.
fn hog_until(flag: &AtomicBool) -> bool {
    let (mut ran, mut last) = (Duration::ZERO, Instant::now());
    while !flag.load(Acquire) {
        if ran > HOG {
            return true;
        }
        let now = Instant::now();
        ran += (now - last).min(Duration::from_micros(100));
        last = now;
    }
    false
}

/// Three threads on one CPU. `low` holds the lock. `middle` takes the CPU and keeps it until `high`
/// is through. `high` requests the lock when `middle` has begun. Returns whether `middle` kept
/// `high` from the lock; `None` if real-time priorities are not permitted.
fn inversion<L: RawLock<Token = ()>>(lock: &L) -> Option<bool> {
    let [held, hogging, through, refused] = [const { AtomicBool::new(false) }; 4];
    let [held, hogging, through, refused] = [&held, &hogging, &through, &refused];
    let ready = &Barrier::new(3);
    let part = move |priority, cue: Option<&AtomicBool>| {
        if !take_part(priority) {
            refused.store(true, Release);
        }
        // A thread without its priority would not run beside `middle`, and would request the lock
        // after that has given up.
        ready.wait();
        // At its own priority from here on: a sleeper with a higher one runs as soon as its timer
        // expires.
        cue.is_none_or(|cue| {
            while !cue.load(Acquire) && !refused.load(Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
            !refused.load(Acquire)
        })
    };
    thread::scope(|scope| {
        scope.spawn(move || {
            if part(30, Some(hogging)) {
                lock.lock();
                through.store(true, Release);
                unlock(lock);
            }
        });
        let middle = scope.spawn(move || {
            part(20, Some(held)).then(|| {
                hogging.store(true, Release);
                hog_until(through)
            })
        });
        scope.spawn(move || {
            part(10, None);
            lock.lock();
            held.store(true, Release);
            // Loses the CPU in here, to `middle`. A sleep would not do: `high` might come first.
            let begin = Instant::now();
            while !hogging.load(Acquire) && !refused.load(Acquire) && begin.elapsed() < LONG {}
            unlock(lock);
        });
        middle.join().unwrap()
    })
}

/// `lock_pi` in the slow path. The run with a lock without inheritance shows that the scene inverts
/// priorities.
#[test]
fn an_owner_of_low_priority_is_not_held_up_while_one_of_high_priority_waits() {
    let Some(is_held_up) = inversion(&Lock::new()) else {
        println!("skipped: real-time priorities are not permitted here");
        return;
    };
    assert!(!is_held_up);
    assert_eq!(inversion(&overlock::sleep::Overlock::new()), Some(true));
}

/// How long threads meet at the lock.
const ENOUGH: Duration = Duration::from_millis(300);

/// A waiter whose deadline passes just when the lock is handed off to it has it or has it not: none
/// is lost, and none is given twice.
#[test]
fn deadlines_and_unlocks_that_meet() {
    const THREADS: u64 = 6;
    let pair = &Pair::<Lock>::new();
    let done: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let mut done = 0;
                    let start = Instant::now();
                    for i in (0..).take_while(|_| start.elapsed() < ENOUGH) {
                        // About the hold time: the time of unlocks.
                        let wait = Duration::from_nanos((i * 7919 + thread * 104_729) % 60_000);
                        let begin = Linux::now();
                        match pair.lock.lock_until(begin.plus(wait)) {
                            Some(()) => {
                                pair.section((), || {
                                    if i % 4 == 0 {
                                        thread::yield_now();
                                    }
                                });
                                done += 1;
                            }
                            None => assert!(Linux::now() >= begin.plus(wait), "gave up early"),
                        }
                    }
                    done
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert!(done > 0);
    assert_eq!(pair.count(), done);
    assert!(!pair.lock.is_locked() && !pair.lock.is_contended());
}

#[test]
fn waiters_are_served_one_after_another() {
    const THREADS: usize = 8;
    let pair = &Pair::<Lock>::new();
    let done: u64 = thread::scope(|scope| {
        [(); THREADS]
            .map(|()| {
                scope.spawn(|| {
                    let start = Instant::now();
                    let mut done = 0;
                    while start.elapsed() < ENOUGH {
                        pair.lock.lock();
                        pair.section((), || {});
                        done += 1;
                    }
                    done
                })
            })
            .map(|thread| thread.join().unwrap())
            .into_iter()
            .sum()
    });
    assert_eq!(pair.count(), done);
    assert!(!pair.lock.is_locked());
}

/// The kernel notices the cycle; the thread with the deadline breaks it, and the other one
/// continues.
#[test]
fn a_circle_with_a_deadline_in_it_is_broken() {
    let [a, b] = &[Lock::new(), Lock::new()];
    let gone_on = &AtomicBool::new(false);
    b.lock();
    thread::scope(|scope| {
        scope.spawn(move || {
            a.lock();
            assert!(b.lock_until(after(Duration::from_millis(40))).is_none());
            unlock(a);
            gone_on.store(true, Release);
        });
        while !b.is_contended() && !gone_on.load(Acquire) {
            thread::sleep(Duration::from_millis(1));
        }
        // Closes the cycle, and backs off until it is open.
        assert!(a.lock_until(after(LONG)).is_some());
        unlock(a);
        unlock(b);
    });
    assert!(!a.is_locked() && !b.is_locked());
}

#[test]
#[cfg_attr(not(debug_assertions), ignore)]
fn a_cycle_and_a_thread_that_locks_its_own_lock_are_reported() {
    fn complaint(lock: &'static Lock) -> String {
        let panic = thread::spawn(|| lock.lock()).join().unwrap_err();
        panic.downcast_ref::<&str>().unwrap().to_string()
    }
    let [a, b]: &'static [Lock; 2] = Box::leak(Box::new([Lock::new(), Lock::new()]));
    let twice = thread::spawn(|| {
        b.lock();
        b.lock();
    });
    let panic = twice.join().unwrap_err();
    assert!(
        panic
            .downcast_ref::<&str>()
            .unwrap()
            .contains("that it holds")
    );
    // Its thread has ended and `b` is locked for good.
    assert!(complaint(b).contains("has ended"));

    let c: &'static Lock = Box::leak(Box::new(Lock::new()));
    a.lock();
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        c.lock();
        sender.send(()).unwrap();
        a.lock();
        unlock(a);
        unlock(c);
    });
    receiver.recv().unwrap();
    while !a.is_contended() {
        thread::sleep(Duration::from_millis(1));
    }
    let cycle = std::panic::catch_unwind(|| c.lock()).unwrap_err();
    assert!(cycle.downcast_ref::<&str>().unwrap().contains("cycle"));
    unlock(a);
}

/// I3: the check of OWNER_DIED after `lock_pi`. The kernel hands the lock of a thread that has
/// ended off to a waiter, which must not enter: the leaked guard's data stays in use for ever.
#[test]
fn a_leaked_lock_stays_locked_when_its_thread_ends() {
    let lock = &Lock::new();
    let (held, gone) = (&AtomicBool::new(false), &AtomicU32::new(0));
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    wait_for(held);
                    let locked = lock.lock_until(after(Duration::from_millis(400)));
                    gone.fetch_add(1, Relaxed);
                    locked
                })
            })
            .collect();
        scope.spawn(move || {
            lock.lock();
            held.store(true, Release);
            while !lock.is_contended() && gone.load(Relaxed) < 2 {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(5));
        });
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), None);
        }
    });
    assert!(lock.is_locked() && lock.try_lock().is_none());
    assert_eq!(lock.lock_until(after(Duration::from_millis(1))), None);
}

extern "C" fn nothing(_: libc::c_int) {}

/// The kernel restarts the wait by itself, deadline included.
#[test]
fn signals_do_not_end_a_wait() {
    // SAFETY: an all-zero sigaction is valid, without SA_RESTART; the handler does nothing.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
    // SAFETY: `action` is valid.
    let installed = unsafe { libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()) };
    assert_eq!(installed, 0);
    let lock = &Lock::new();
    lock.lock();
    thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        scope.spawn(move || {
            // SAFETY: no preconditions.
            sender
                .send(unsafe { libc::pthread_self() } as usize)
                .unwrap();
            let wait = Duration::from_millis(30);
            let begin = Instant::now();
            assert!(lock.lock_until(after(wait)).is_none());
            assert!(begin.elapsed() >= wait);
            lock.lock();
            unlock(lock);
        });
        let waiter = receiver.recv().unwrap();
        for _ in 0..60 {
            let name = waiter as libc::pthread_t;
            // SAFETY: the thread is alive: it waits for `lock`, which is held.
            assert_eq!(unsafe { libc::pthread_kill(name, libc::SIGUSR2) }, 0);
            thread::sleep(Duration::from_millis(1));
        }
        unlock(lock);
    });
    assert!(!lock.is_locked());
}

/// The word holds ids, and a child's thread has another id than the thread that it is a copy of. If
/// the id from before the fork were used, the kernel would refuse the child's unlock, and its
/// second thread would wait for ever.
#[test]
fn a_forked_child_locks_under_its_own_id() {
    static FREE: Lock = Lock::new();
    static HELD: Lock = Lock::new();
    static DONE: AtomicU32 = AtomicU32::new(0);
    FREE.lock();
    unlock(&FREE);
    HELD.lock();
    // SAFETY: the child locks, unlocks, starts a thread and exits; glibc supports starting a thread
    // there.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // Ends it if it is stuck.
        // SAFETY: no preconditions.
        unsafe { libc::alarm(120) };
        unlock(&HELD);
        FREE.lock();
        let waiter = thread::spawn(|| {
            HELD.lock();
            FREE.lock();
            DONE.store(1, Relaxed);
            unlock(&FREE);
            unlock(&HELD);
        });
        while !FREE.is_contended() {
            thread::sleep(Duration::from_millis(1));
        }
        unlock(&FREE);
        let joined = waiter.join().is_ok() && DONE.load(Relaxed) == 1;
        let clean = !FREE.is_locked() && !HELD.is_locked();
        // SAFETY: ends the child at once, as a child of a multi-threaded process must.
        unsafe { libc::_exit(i32::from(!(joined && clean))) };
    }
    assert!(child > 0);
    let mut status = -1;
    // SAFETY: `status` is valid for the write.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    unlock(&HELD);
    assert!(!HELD.is_locked());
}
