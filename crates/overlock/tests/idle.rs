//! Blocked threads cost nothing: many wait in each way for seconds, and none of them runs. Alone in
//! its binary, as it measures the whole process.
#![cfg(not(miri))]

use std::mem::MaybeUninit;
use std::process;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use overlock::{Barrier, CancelToken, Condvar, Mutex, PerCpuRwLock, RwLock, Semaphore};

/// Threads that wait in each way.
const EACH: usize = 200;

fn usage(who: i32) -> libc::rusage {
    let mut usage = MaybeUninit::uninit();
    // SAFETY: valid for the write.
    assert_eq!(unsafe { libc::getrusage(who, usage.as_mut_ptr()) }, 0);
    // SAFETY: written.
    unsafe { usage.assume_init() }
}

/// Usage of all threads but this one: switches, and microseconds.
fn used() -> (libc::c_long, libc::c_long) {
    let sum = |who| {
        let usage = usage(who);
        let time = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
        (
            usage.ru_nvcsw + usage.ru_nivcsw,
            time(usage.ru_utime) + time(usage.ru_stime),
        )
    };
    loop {
        let mine = sum(libc::RUSAGE_THREAD);
        let all = sum(libc::RUSAGE_SELF);
        let later = sum(libc::RUSAGE_THREAD);
        // If this thread or the machine stops between the two calls, that is nothing of the others.
        if later.0 == mine.0 && later.1 <= mine.1 + 1000 {
            return (all.0 - mine.0, all.1 - mine.1);
        }
    }
}

/// Ends the process: a panic would wait in `thread::scope` for threads that nobody wakes.
fn give_up(why: &str) -> ! {
    eprintln!("{why}");
    process::abort()
}

#[test]
fn blocked_threads_cost_nothing() {
    let mutex = Mutex::new(());
    let [read, written] = [(); 2].map(|()| RwLock::new(()));
    let [read_often, written_often] = [(); 2].map(|()| PerCpuRwLock::new(()));
    let semaphore = Semaphore::new(0);
    let (ready, condvar) = (Mutex::new(false), Condvar::new());
    let barrier = Barrier::new(EACH + 1);
    let cancel = CancelToken::new();
    let held = Mutex::new(());
    let ways: [&(dyn Fn() + Sync); 9] = [
        &|| drop(mutex.lock()),
        &|| drop(written.read()),
        &|| drop(read.write()),
        &|| drop(written_often.read()),
        &|| drop(read_often.write()),
        &|| drop(semaphore.acquire()),
        &|| condvar.wait_while(&mut ready.lock(), |ready| !*ready),
        &|| _ = barrier.wait(),
        &|| assert!(held.lock_cancellable(&cancel).is_err()),
    ];
    let through = ways.map(|_| AtomicUsize::new(0));
    let all_through = || through.each_ref().map(|way| way.load(Relaxed));
    thread::scope(|scope| {
        let mutex = mutex.lock();
        let held = held.lock();
        let (read, written) = (read.read(), written.write());
        let (read_often, written_often) = (read_often.read(), written_often.write());
        for (way, through) in ways.into_iter().zip(&through) {
            for _ in 0..EACH {
                let wait = move || {
                    way();
                    through.fetch_add(1, Relaxed);
                };
                let thread = thread::Builder::new().stack_size(1 << 16);
                if let Err(error) = thread.spawn_scoped(scope, wait) {
                    give_up(&format!("cannot start a thread: {error}"));
                }
            }
        }
        // On a busy machine they may need a while to begin.
        let cost = || {
            let before = used();
            thread::sleep(Duration::from_secs(3));
            let now = used();
            (now.0 - before.0, now.1 - before.1)
        };
        let is_nothing = |(switches, us)| switches == 0 && us <= 3000;
        let mut costs = (0..40).map(|_| cost());
        let is_quiet = costs.any(is_nothing);
        let early = all_through();
        drop((mutex, read, written, read_often, written_often));
        semaphore.add_permits(1);
        *ready.lock() = true;
        condvar.notify_all();
        barrier.wait();
        cancel.cancel();
        let released = Instant::now();
        while all_through() != [EACH; 9] {
            if released.elapsed() > Duration::from_secs(120) {
                give_up(&format!("through in each way: {:?}", all_through()));
            }
            thread::sleep(Duration::from_millis(1));
        }
        drop(held);
        assert_eq!(early, [0; 9]);
        assert!(is_quiet, "{:?}", cost());
    });
}
