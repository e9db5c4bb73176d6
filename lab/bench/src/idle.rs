//! `overlock-lab bench idle`: what threads cost that are blocked for long.
//!
//! So many threads wait for something that its owner does not give for some seconds, while the
//! owner works. They had better cost nothing: no CPU time, no context switch, and none of the
//! owner's time.

pub mod object;
pub mod report;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::lock::CreateError;
use crate::world::calibrate::compute;
use crate::world::native::{Stuck, cpu_time, end_timeout, spawn_error, switches};
use crate::world::{Part, Workers};
use object::{Blocking, Object};

/// Enough to wait, and little enough for thousands of threads.
const STACK: usize = 128 * 1024;
/// The owner's work between two reads of the clock: some 100 us.
const CHUNK: u64 = 50_000;
/// How long the owner works alone, before and after, to know what it can do.
const ALONE: Duration = Duration::from_millis(300);

/// The objects to measure, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The objects.
    pub objects: Vec<&'static Object>,
    /// Threads that wait.
    pub threads: usize,
    /// For how long they are watched.
    pub watched: Duration,
    /// For how long before that they may come to rest.
    pub settle: Duration,
}

impl Plan {
    /// About how long one object takes.
    pub fn each(&self) -> Duration {
        self.watched + self.settle + 2 * ALONE + Duration::from_millis(100)
    }
}

/// The cost of an object's waiting threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The kind of object that they waited for.
    pub what: &'static str,
    /// Of which lock.
    pub lock: &'static str,
    /// Whether it is one of this project's.
    pub ours: bool,
    /// CPU time of all of them, in percent of one CPU.
    pub cpu_percent: f64,
    /// Their context switches a second.
    pub switches_per_sec: f64,
    /// From the owner's release until the last was through.
    pub drain_ms: f64,
    /// How many times longer the owner's work took while they waited.
    pub owner_slowdown: f64,
}

/// An owner's observations.
struct Watch {
    cpu: Duration,
    switches: u64,
    elapsed: Duration,
    chunks: u64,
}

/// Measures one object. Reports a thread that hangs to `stuck`.
///
/// # Errors
///
/// [`Error::Create`], [`Error::Spawn`] and [`Error::Interrupted`]; no thread is left then.
pub fn measure(
    object: &Object,
    plan: &Plan,
    interrupt: &Arc<Interrupt>,
    stuck: Stuck,
) -> Result<Row, Error> {
    let blocking = (object.create)(plan.threads).map_err(|CreateError(why)| {
        Error::Create(CreateError(format!(
            "{} {}: {why}",
            object.what, object.lock
        )))
    })?;
    let before = alone(interrupt);
    let (watch, drain) = crowd(object, &*blocking, plan, interrupt, stuck)?;
    if interrupt.is_raised() {
        return Err(Error::Interrupted);
    }
    let alone = f64::midpoint(before, alone(interrupt));
    let seconds = watch.elapsed.as_secs_f64();
    let meanwhile = watch.chunks as f64 / seconds;
    Ok(Row {
        what: object.what,
        lock: object.lock,
        ours: object.ours,
        cpu_percent: 100.0 * watch.cpu.as_secs_f64() / seconds,
        switches_per_sec: watch.switches as f64 / seconds,
        drain_ms: drain.as_secs_f64() * 1e3,
        owner_slowdown: alone / meanwhile,
    })
}

/// Chunks a second of an owner without waiters.
fn alone(interrupt: &Interrupt) -> f64 {
    let start = Instant::now();
    let chunks = work(ALONE, interrupt);
    chunks as f64 / start.elapsed().as_secs_f64()
}

/// Works for so long, and says how much.
fn work(time: Duration, interrupt: &Interrupt) -> u64 {
    let start = Instant::now();
    let mut chunks = 0;
    while start.elapsed() < time && !interrupt.is_raised() {
        compute(CHUNK);
        chunks += 1;
    }
    // An interrupted run is not reported; this only keeps its ratios finite.
    chunks.max(1)
}

/// Has the threads wait, watches them, and lets them go. How long that took comes second.
fn crowd(
    object: &Object,
    blocking: &dyn Blocking,
    plan: &Plan,
    interrupt: &Arc<Interrupt>,
    stuck: Stuck,
) -> Result<(Watch, Duration), Error> {
    let threads = plan.threads;
    let (arrived, through) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let last = Mutex::new(Instant::now());
    // Whether all threads are there. They read it once its writer releases the lock.
    let gate = RwLock::new(false);
    let member = || {
        if !*gate.read().unwrap_or_else(PoisonError::into_inner) {
            return;
        }
        arrived.fetch_add(1, Ordering::Relaxed);
        blocking.wait();
        let now = Instant::now();
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = now.max(*last);
        drop(last);
        // Release: pairs with the acquire of the owner, which then reads `last`.
        if through.fetch_add(1, Ordering::Release) + 1 == threads {
            interrupt.wake();
        }
    };
    thread::scope(|scope| {
        let mut closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        for started in 0..threads {
            let builder = thread::Builder::new()
                .name(format!("{}-{}", object.what, object.lock))
                .stack_size(STACK);
            builder
                .spawn_scoped(scope, member)
                .map_err(|error| spawn_error(threads, started, &error))?;
        }
        *closed = true;
        let mut closed = Some(closed);
        let mut watched = None;
        blocking.own(&mut || {
            closed = None;
            while arrived.load(Ordering::Relaxed) < threads && !interrupt.is_raised() {
                thread::sleep(Duration::from_millis(1));
            }
            interrupt.wait(plan.settle, || interrupt.is_raised());
            watched = Some((watch(plan, interrupt), Instant::now()));
        });
        let all = || through.load(Ordering::Acquire) == threads;
        if !interrupt.wait(end_timeout(threads), all) {
            let workers = Workers {
                lock: object.lock,
                threads,
                pin: false,
                stop_after: plan.watched,
                measured: Part::Warm,
            };
            stuck(&workers, threads - through.load(Ordering::Relaxed));
        }
        let last = *last.lock().unwrap_or_else(PoisonError::into_inner);
        let (watch, released) = watched.expect("the owner has run");
        Ok((watch, last.saturating_duration_since(released)))
    })
}

/// Measures the threads' use of the machine while the owner, who calls this, works.
fn watch(plan: &Plan, interrupt: &Interrupt) -> Watch {
    let now = || {
        let others = process_time().saturating_sub(cpu_time());
        let mine = switches(libc::RUSAGE_THREAD);
        (others, switches(libc::RUSAGE_SELF).saturating_sub(mine))
    };
    let (start, before) = (Instant::now(), now());
    let chunks = work(plan.watched, interrupt);
    let (elapsed, after) = (start.elapsed(), now());
    Watch {
        cpu: after.0.saturating_sub(before.0),
        switches: after.1.saturating_sub(before.1),
        elapsed,
        chunks,
    }
}

/// CPU time of the whole process.
fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::object::{KINDS, OBJECTS};
    use super::*;

    fn plan() -> Plan {
        Plan {
            objects: OBJECTS.iter().collect(),
            threads: 8,
            watched: Duration::from_millis(60),
            settle: Duration::from_millis(20),
        }
    }

    #[test]
    fn everybody_waits_and_gets_through() {
        let stuck: Stuck = |workers, left| panic!("{left} threads of {workers:?} hang");
        for object in plan().objects {
            let row = measure(object, &plan(), &Arc::default(), stuck).unwrap();
            assert!(row.owner_slowdown > 0.0, "{row:?}");
            // On two CPUs more would be more than there is, whatever they do.
            assert!(row.cpu_percent >= 0.0, "{row:?}");
            assert!(row.drain_ms >= 0.0 && row.drain_ms < 3.6e6, "{row:?}");
        }
    }

    #[test]
    fn an_interrupt_ends_the_wait() {
        let interrupt = Arc::new(Interrupt::default());
        interrupt.raise();
        let long = Plan {
            watched: Duration::from_secs(60),
            settle: Duration::from_secs(60),
            ..plan()
        };
        let result = measure(&OBJECTS[0], &long, &interrupt, |_, _| panic!("hangs"));
        assert!(matches!(result, Err(Error::Interrupted)));
    }

    #[test]
    fn every_kind_has_one_of_ours_and_a_peer() {
        for kind in KINDS {
            let of_it: Vec<bool> = OBJECTS
                .iter()
                .filter(|object| object.what == kind)
                .map(|object| object.ours)
                .collect();
            assert!(of_it.contains(&true) && of_it.contains(&false), "{kind}");
        }
        assert!(OBJECTS.iter().all(|object| KINDS.contains(&object.what)));
    }
}
