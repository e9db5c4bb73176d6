//! The results.

pub mod json;
pub mod table;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde::Serialize;

use crate::job::Job;
use crate::violation::Violation;
use crate::worker_state::{self, Tally, WorkerState};

#[derive(Clone, Debug, Serialize)]
pub struct LockReport {
    pub lock: &'static str,
    /// Whether nothing was found.
    pub passed: bool,
    pub threads: usize,
    /// How long it took.
    pub seconds: f64,
    /// Acquisitions by threads.
    pub operations: u64,
    /// Those of them to be alone.
    pub writes: u64,
    pub reads: u64,
    /// Acquisitions by signal handlers.
    pub in_handlers: u64,
    /// Attempts without waiting that were in vain, and aborts of contexts.
    pub refused: u64,
    /// Waits that ended at their deadline.
    pub timed_out: u64,
    /// Waits that another thread ended.
    pub cancelled: u64,
    /// Acquisitions of the thread that had the fewest, with those that it followed.
    pub min_thread: u64,
    /// The same of the one that had the most.
    pub max_thread: u64,
    /// The longest wait for an acquisition, in milliseconds.
    pub longest_wait_ms: f64,
    /// The operation of the longest wait.
    pub longest_wait: &'static str,
    /// How often others got the lock during one wait, at most.
    pub passed_by: u64,
    /// The same after the waiter's bound, while it ran.
    pub overtaken_by: u64,
    /// How late a wait with a deadline came back, at most, in milliseconds.
    pub late_ms: f64,
    /// Threads that took the place of one that had exited.
    pub successors: u64,
    /// How often all stopped, and their data were checked; the last time too.
    pub rests: u64,
    /// How often they were given other CPUs.
    pub shuffles: u64,
    /// Signals that were handled.
    pub signals: u64,
    /// Steps with a real-time priority.
    pub real_time: u64,
    /// Steps with a better nice value.
    pub nicer: u64,
    /// Steps that were to have one of the two, and may not.
    pub unboosted: u64,
    /// The violation, if there was one.
    pub violation: Option<Violation>,
}

/// The part of a report that the run knows and the threads do not.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How long it took.
    pub elapsed: Duration,
    /// How often all stopped.
    pub rests: u64,
    /// How often they were given other CPUs.
    pub shuffles: u64,
    /// How often a waiter was bypassed after its bound, while it ran, at most.
    pub overtaken: u64,
}

/// Acquisitions so far.
pub fn operations(job: &Job) -> u64 {
    job.workers.iter().map(of_place).sum()
}

fn of_place(state: &WorkerState) -> u64 {
    state.tallies.writes.get() + state.tallies.reads.get()
}

impl LockReport {
    pub fn new(job: &Job, pace: Pace) -> Self {
        let sum = |tally: fn(&WorkerState) -> &Tally| -> u64 {
            job.workers.iter().map(|state| tally(state).get()).sum()
        };
        let most = |tally: fn(&WorkerState) -> &Tally| -> u64 {
            let all = job.workers.iter().map(|state| tally(state).get());
            all.max().unwrap_or_default()
        };
        let (longest, op) = worker_state::longest(&job.workers);
        let violation = job.verdict().clone();
        let born = |state: &WorkerState| state.generation.load(Relaxed);
        Self {
            lock: job.entry.name,
            passed: violation.is_none(),
            threads: job.workers.len(),
            seconds: pace.elapsed.as_secs_f64(),
            operations: operations(job),
            writes: sum(|state| &state.tallies.writes),
            reads: sum(|state| &state.tallies.reads),
            in_handlers: sum(|state| &state.handled.taken),
            refused: sum(|state| &state.tallies.refused),
            timed_out: sum(|state| &state.tallies.timed_out),
            cancelled: sum(|state| &state.tallies.cancelled),
            min_thread: job.workers.iter().map(of_place).min().unwrap_or_default(),
            max_thread: job.workers.iter().map(of_place).max().unwrap_or_default(),
            longest_wait_ms: milliseconds(longest),
            longest_wait: op.describe(),
            passed_by: most(|state| &state.tallies.bypassed),
            overtaken_by: pace.overtaken,
            late_ms: milliseconds(most(|state| &state.tallies.late)),
            successors: job.workers.iter().map(born).sum(),
            rests: pace.rests,
            shuffles: pace.shuffles,
            signals: sum(|state| &state.handled.signals),
            real_time: sum(|state| &state.tallies.real_time),
            nicer: sum(|state| &state.tallies.nicer),
            unboosted: sum(|state| &state.tallies.unboosted),
            violation,
        }
    }
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
