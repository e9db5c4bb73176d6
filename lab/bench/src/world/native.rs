//! This machine: threads of the operating system, memory, its clocks.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use super::calibrate::{Calibration, compute, time};
use super::clock::Clock;
use super::{Outcome, Word, Work, Worker, Workers, World};
use crate::error::Error;
use crate::interrupt::Interrupt;

/// Whether the locks check for misuse, which costs time: a `cargo run` of the whole workspace
/// builds them so, as its other members need them.
pub const CHECKED: bool = overlock_core::raw::CHECKED;

/// Stack of a thread: enough for every workload here, and little enough for thousands of threads.
const STACK: usize = 256 * 1024;

/// This machine.
#[derive(Debug)]
pub struct Native {
    clock: Clock,
    calibration: Calibration,
    cpus: Vec<usize>,
    interrupt: Arc<Interrupt>,
    end_timeout: fn(usize) -> Duration,
    stuck: Stuck,
}

/// Called with the workers of a round of which so many do not end. They cannot be joined nor
/// killed, so it does not return.
pub type Stuck = fn(&Workers, usize) -> !;

/// The time that threads may take to end after the stop. With a strictly fair lock under overcommit
/// each of them needs a time slice: some milliseconds for each thread before it.
pub(crate) fn end_timeout(threads: usize) -> Duration {
    Duration::from_secs(30)
        + Duration::from_millis(200) * u32::try_from(threads).unwrap_or(u32::MAX)
}

impl Native {
    /// Calibrates the clock and the work; `cpus` are those of pinned threads. Takes some 50 ms.
    pub fn new(cpus: Vec<usize>, interrupt: Arc<Interrupt>, stuck: Stuck) -> Self {
        Self {
            clock: Clock::calibrate(),
            calibration: Calibration::measure(),
            cpus,
            interrupt,
            end_timeout,
            stuck,
        }
    }

    /// The clock that waits are timed with.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    fn pin(&self, index: usize) {
        let mut set = CpuSet::new();
        set.set(self.cpus[index % self.cpus.len()]);
        // A CPU that was taken away since the start of the run costs the pinning, not the result.
        let _ = sched_setaffinity(None, &set);
    }
}

/// A thread of a round.
#[derive(Debug)]
pub struct NativeWorker {
    index: usize,
    clock: Clock,
    stop: Arc<Stop>,
}

/// On cache lines of its own, since all threads read it in every iteration.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stop(AtomicBool);

impl Worker for NativeWorker {
    fn index(&self) -> usize {
        self.index
    }

    #[inline]
    fn stopped(&self) -> bool {
        self.stop.0.load(Ordering::Relaxed)
    }

    #[inline]
    fn work(&self, work: Work) {
        if work != Work::NONE {
            compute(work.0);
        }
    }

    fn rest(&self) {
        thread::yield_now();
    }

    #[inline]
    fn ticks(&self) -> u64 {
        self.clock.ticks()
    }
}

/// A word of memory. Relaxed loads and stores are plain moves.
impl Word for AtomicU64 {
    fn new(value: u64) -> Self {
        Self::new(value)
    }

    #[inline]
    fn get(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    #[inline]
    fn set(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }
}

/// The verdict that the threads find when the gate opens.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    Go,
    Cancelled,
}

/// The result of a thread.
struct Done<T> {
    result: T,
    cpu: Duration,
    switches: u64,
    end: Instant,
}

/// Counts a thread as finished even if it panics, so that no join waits for ever.
struct Finish<'a> {
    running: &'a AtomicUsize,
    interrupt: &'a Interrupt,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `run`, whose thread then only joins.
        if self.running.fetch_sub(1, Ordering::Release) == 1 {
            self.interrupt.wake();
        }
    }
}

impl World for Native {
    type Word = AtomicU64;
    type Worker = NativeWorker;

    fn run<T: Send>(
        &self,
        workers: &Workers,
        body: &(dyn Fn(&NativeWorker) -> T + Sync),
    ) -> Result<Outcome<T>, Error> {
        let stop = Arc::new(Stop::default());
        let arrived = AtomicUsize::new(0);
        let running = AtomicUsize::new(workers.threads);
        // Threads wait as readers; the writer lets all of them go at once.
        let gate = RwLock::new(Start::Cancelled);
        let starter = thread::current();

        let member = |index| {
            let worker = NativeWorker {
                index,
                clock: self.clock,
                stop: Arc::clone(&stop),
            };
            let _finish = Finish {
                running: &running,
                interrupt: &self.interrupt,
            };
            if workers.pin {
                self.pin(index);
            }
            if arrived.fetch_add(1, Ordering::Relaxed) + 1 == workers.threads {
                starter.unpark();
            }
            if *gate.read().expect("nobody panics with the gate") == Start::Cancelled {
                return None;
            }
            let (cpu, switched) = (cpu_time(), switches(libc::RUSAGE_THREAD));
            let result = body(&worker);
            Some(Done {
                result,
                cpu: cpu_time().saturating_sub(cpu),
                switches: switches(libc::RUSAGE_THREAD).saturating_sub(switched),
                end: Instant::now(),
            })
        };

        thread::scope(|scope| {
            let mut closed = gate.write().expect("nobody panics with the gate");
            let mut handles = Vec::with_capacity(workers.threads);
            for index in 0..workers.threads {
                let member = &member;
                let builder = thread::Builder::new()
                    .name(format!("{}-{index}", workers.lock))
                    .stack_size(STACK);
                match builder.spawn_scoped(scope, move || member(index)) {
                    Ok(handle) => handles.push(handle),
                    Err(source) => return Err(spawn_error(workers.threads, index, &source)),
                }
            }
            while arrived.load(Ordering::Relaxed) < workers.threads {
                thread::park();
            }
            *closed = Start::Go;
            let start = Instant::now();
            drop(closed);

            let finished = || running.load(Ordering::Acquire) == 0;
            self.interrupt.wait(workers.stop_after, || {
                self.interrupt.is_raised() || finished()
            });
            let stopped = !finished();
            stop.0.store(true, Ordering::Relaxed);
            let stop_at = Instant::now();
            if !self
                .interrupt
                .wait((self.end_timeout)(workers.threads), finished)
            {
                (self.stuck)(workers, running.load(Ordering::Relaxed));
            }

            let done = handles.into_iter().filter_map(|handle| {
                let joined = handle.join().map_err(|panic| Error::panicked(&*panic));
                joined.transpose()
            });
            let done = done.collect::<Result<Vec<Done<T>>, Error>>()?;
            if self.interrupt.is_raised() {
                return Err(Error::Interrupted);
            }
            let last = done.iter().map(|done| done.end).max();
            let end = if stopped {
                stop_at
            } else {
                last.unwrap_or(stop_at)
            };
            Ok(Outcome {
                elapsed: end - start,
                stopped,
                cpu: done.iter().map(|done| done.cpu).sum(),
                switches: done.iter().map(|done| done.switches).sum(),
                windows: Vec::new(),
                results: done.into_iter().map(|done| done.result).collect(),
            })
        })
    }

    fn work(&self, nanoseconds: f64) -> Work {
        self.calibration.work(nanoseconds)
    }

    fn measure(&self, work: Work) -> f64 {
        time(work)
    }

    fn nanoseconds(&self, ticks: u64) -> f64 {
        self.clock.nanoseconds(ticks)
    }
}

pub(crate) fn spawn_error(wanted: usize, got: usize, source: &io::Error) -> Error {
    Error::Spawn {
        wanted,
        got,
        why: source.to_string(),
    }
}

/// How often the calling thread (`RUSAGE_THREAD`), or all threads of the process there have been
/// (`RUSAGE_SELF`), left a CPU, of their own will or not.
pub(crate) fn switches(whose: libc::c_int) -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes to a place of that type, which is ours.
    unsafe { libc::getrusage(whose, usage.as_mut_ptr()) };
    // SAFETY: all zeros, which it was before, is a valid value too.
    let usage = unsafe { usage.assume_init() };
    u64::try_from(usage.ru_nvcsw + usage.ru_nivcsw).unwrap_or(0)
}

/// CPU time of the calling thread.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The platform of the locks that run here.
pub type Platform = overlock::Linux;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Part;

    fn native() -> Native {
        Native::new(vec![0], Arc::default(), |workers, left| {
            panic!("{left} threads of {workers:?} hang")
        })
    }

    fn workers(threads: usize, pin: bool, stop_after: Duration) -> Workers {
        Workers {
            lock: "test",
            threads,
            pin,
            stop_after,
            measured: Part::Warm,
        }
    }

    #[test]
    fn workers_run_until_they_are_stopped() {
        let outcome = native()
            .run(&workers(3, false, Duration::from_millis(20)), &|worker| {
                while !worker.stopped() {
                    worker.rest();
                }
                worker.index()
            })
            .unwrap();
        assert_eq!(outcome.results, [0, 1, 2]);
        assert!(outcome.stopped);
        assert!(
            outcome.elapsed >= Duration::from_millis(20),
            "{:?}",
            outcome.elapsed
        );
        assert!(outcome.cpu > Duration::ZERO);
    }

    #[test]
    fn workers_may_end_by_themselves() {
        let sleep = |_: &NativeWorker| thread::sleep(Duration::from_millis(5));
        let outcome = native()
            .run(&workers(2, true, Duration::from_secs(600)), &sleep)
            .unwrap();
        assert!(!outcome.stopped);
        assert!(outcome.elapsed >= Duration::from_millis(5));
    }

    #[test]
    fn a_panic_is_an_error_of_the_lock() {
        let panics = |worker: &NativeWorker| assert!(worker.index() != 1, "one too many");
        let ended = native().run(&workers(3, false, Duration::from_secs(60)), &panics);
        assert_eq!(ended.unwrap_err().to_string(), "panicked: one too many");
    }

    #[test]
    fn an_interrupt_ends_the_round() {
        let native = native();
        native.interrupt.raise();
        let result = native.run(&workers(2, false, Duration::from_secs(60)), &|worker| {
            while !worker.stopped() {}
        });
        assert!(matches!(result, Err(Error::Interrupted)));
    }

    #[test]
    fn threads_that_hang_are_told_of() {
        static FREE: AtomicBool = AtomicBool::new(false);
        let stuck: Stuck = |workers, left| {
            FREE.store(true, Ordering::Relaxed);
            panic!("{left} of {} hang", workers.threads)
        };
        let native = Native {
            end_timeout: |_| Duration::from_millis(10),
            stuck,
            ..native()
        };
        let hang = |_: &NativeWorker| {
            while !FREE.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        };
        let run = || native.run(&workers(2, false, Duration::ZERO), &hang);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>().unwrap(), "2 of 2 hang");
    }
}
