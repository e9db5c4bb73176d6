//! Whether a thread that has called a lock waits in it, from the operating system's view of the
//! thread. A test that sleeps "long enough" instead fails on a busy machine.
#![allow(dead_code)] // each binary uses a part

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// An upper bound for the CPU time between a thread's decision to lock and its first attempt, page
/// faults included.
const BEYOND_FIRST_TRY: Duration = Duration::from_micros(200);
/// Backoff sleeps in a spin queue are shorter.
const LONGER_THAN_A_NAP: Duration = Duration::from_millis(10);
const GIVE_UP: Duration = Duration::from_secs(120);

/// A thread that is about to lock, as other threads see it.
#[derive(Clone, Copy)]
pub struct Caller {
    task: libc::pid_t,
    clock: libc::clockid_t,
    called: Duration,
}

fn cpu_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the write.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(result, 0, "the thread is alive");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Caller {
    /// The calling thread, which calls the lock next.
    pub fn here() -> Self {
        let mut clock = 0;
        // SAFETY: no preconditions.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: the thread is alive, and `clock` is valid for the write.
        let result = unsafe { libc::pthread_getcpuclockid(this, &mut clock) };
        assert_eq!(result, 0);
        Caller {
            // SAFETY: no preconditions.
            task: unsafe { libc::gettid() },
            clock,
            called: cpu_time(clock),
        }
    }

    fn sleeps(self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{}/stat", self.task));
        // The state follows the name, which ends with the last parenthesis.
        stat.unwrap().rsplit(") ").next().unwrap().starts_with('S')
    }

    /// Whether it is certainly past its first attempt at a lock that is held, and so in the slow
    /// path.
    pub fn is_waiting(self) -> bool {
        cpu_time(self.clock) > self.called + BEYOND_FIRST_TRY || self.sleeps()
    }

    /// Whether it sleeps in the lock until it is woken, or its deadline passes. Takes a while.
    pub fn is_asleep(self) -> bool {
        let before = cpu_time(self.clock);
        thread::sleep(LONGER_THAN_A_NAP);
        self.sleeps() && cpu_time(self.clock) == before
    }
}

/// Waits until the thread that sets `caller` before it locks is as `is` says. False after two
/// minutes: a test that panicked inside of a scope, with the lock held, would hang.
#[must_use]
pub fn until(caller: &OnceLock<Caller>, is: fn(Caller) -> bool) -> bool {
    let begin = Instant::now();
    while !caller.get().copied().is_some_and(is) {
        if begin.elapsed() > GIVE_UP {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}
