//! First uses in a process with threads, and a filter that kills for any system call of ours but
//! `futex`. Alone in its binary: both concern the whole process.
#![cfg(not(miri))]

use std::mem::MaybeUninit;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use overlock::{CancelToken, Condvar, Linux, Mutex, PerCpuRwLock, RwLock, Semaphore};
use overlock_core::Platform;

/// Number of times that this thread has gone to sleep.
fn sleeps() -> libc::c_long {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: valid for the write.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    assert_eq!(result, 0);
    // SAFETY: written.
    unsafe { usage.assume_init() }.ru_nvcsw
}

/// Installs a filter that kills for these calls.
fn forbid(calls: &[libc::c_long]) {
    let step = |code: u32, yes, no, k| libc::sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k,
    };
    // The number of the call is the first word of a filter's input.
    let mut steps = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for &call in calls {
        steps.extend([
            step(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                0,
                1,
                call as u32,
            ),
            step(
                libc::BPF_RET | libc::BPF_K,
                0,
                0,
                libc::SECCOMP_RET_KILL_PROCESS,
            ),
        ]);
    }
    steps.push(step(
        libc::BPF_RET | libc::BPF_K,
        0,
        0,
        libc::SECCOMP_RET_ALLOW,
    ));
    let filter = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: sets a flag of the process.
    let result = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(result, 0);
    let (filters, all) = (
        libc::SECCOMP_SET_MODE_FILTER,
        libc::SECCOMP_FILTER_FLAG_TSYNC,
    );
    // SAFETY: a filter and its steps, which the kernel copies.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, filters, all, &raw const filter) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Fails (SIGSYS) where a thread is on its way to another call when the filter is installed, or
/// makes one later; and where a first use registers something, which takes milliseconds.
#[test]
fn locks_work_under_a_filter_that_kills() {
    let mutex = Mutex::new(0);
    let rwlock = RwLock::new(0);
    let often_read = PerCpuRwLock::new(0);
    let semaphore = Semaphore::new(2);
    let (turn, turned) = (Mutex::new(0u32), Condvar::new());
    let cancel = CancelToken::new();
    let held = Mutex::new(());
    let over = AtomicBool::new(false);
    // Else glibc's allocator counts the CPUs, in a file, where a thread wants a ninth arena.
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number of the allocator's.
    let is_set = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    #[cfg(target_env = "gnu")]
    assert_eq!(is_set, 1);
    let contend = || {
        while !over.load(Relaxed) {
            *mutex.lock() += 1;
            *rwlock.write() += 1;
            assert!(*rwlock.read() > 0);
            *often_read.write() += 1;
            assert!(*often_read.read() > 0);
            drop(semaphore.acquire());
            let mut turn = turn.lock();
            *turn += 1;
            if *turn % 2 == 0 {
                turned.notify_all();
            } else {
                turned.wait_for(&mut turn, Duration::from_millis(1));
            }
        }
    };
    let begun = Barrier::new(3);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                begun.wait();
                thread::sleep(Duration::from_millis(500));
            });
        }
        begun.wait();
        let before = sleeps();
        *mutex.lock() += 1;
        *rwlock.write() += 1;
        assert_eq!(sleeps(), before);

        let guard = held.lock();
        scope.spawn(|| assert!(held.lock_cancellable(&cancel).is_err()));
        for _ in 0..6 {
            scope.spawn(contend);
        }
        thread::sleep(Duration::from_millis(200));
        Linux::use_futex_alone();
        forbid(&[
            libc::SYS_membarrier,
            libc::SYS_sched_yield,
            libc::SYS_futex_waitv,
            // The standard library reads the affinity of each new thread, but opens no files.
            libc::SYS_openat,
        ]);
        Linux::refresh_parallelism();
        assert!(Linux::parallelism() > 0);
        for _ in 0..6 {
            scope.spawn(contend);
        }
        thread::sleep(Duration::from_millis(500));
        let waits = Instant::now();
        while *mutex.lock() <= 100 && waits.elapsed() < Duration::from_secs(120) {
            thread::sleep(Duration::from_millis(1));
        }
        let count = *mutex.lock();
        over.store(true, Relaxed);
        cancel.cancel();
        turned.notify_all();
        thread::sleep(Duration::from_millis(20));
        drop(guard);
        // Not before the others end: the scope waits for them.
        assert!(count > 100, "{count}");
    });
}
