//! The state of a round: the data that the locks protect, and each vCPU's own.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use overlock_guest::vcpu::{self, Counts, MAX_VCPUS};

/// Data that a lock protects. Each user checks that it is alone: the data are atomics only so that
/// a violation is no undefined behaviour.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Protected {
    holder: AtomicUsize,
    count: AtomicU64,
}

/// Whether the locks have kept each other out.
static VIOLATED: AtomicBool = AtomicBool::new(false);

impl Protected {
    const fn new() -> Self {
        Protected {
            holder: AtomicUsize::new(0),
            count: AtomicU64::new(0),
        }
    }

    /// Uses the data as the holder of their lock.
    pub fn visit(&self, section: impl FnOnce()) {
        let own = vcpu::index() + 1;
        let before = self.holder.load(Relaxed);
        self.holder.store(own, Relaxed);
        let count = self.count.load(Relaxed);
        section();
        self.count.store(count + 1, Relaxed);
        let after = self.holder.load(Relaxed);
        self.holder.store(0, Relaxed);
        if before != 0 || after != own {
            VIOLATED.store(true, Relaxed);
        }
    }

    /// Uses the data as one of the readers of their lock.
    pub fn observe(&self, section: impl FnOnce()) {
        let seen = || (self.holder.load(Relaxed), self.count.load(Relaxed));
        let before = seen();
        section();
        if before.0 != 0 || seen() != before {
            VIOLATED.store(true, Relaxed);
        }
    }

    /// How often it was changed. Two users at a time lose counts.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    fn reset(&self) {
        self.count.store(0, Relaxed);
        self.holder.store(0, Relaxed);
    }
}

/// The data of the tasks' lock.
pub static TASK: Protected = Protected::new();
/// The data of the interrupt handlers' lock.
pub static HANDLER: Protected = Protected::new();

/// Set at the end of a round, for its workers to stop.
pub static STOP: AtomicU32 = AtomicU32::new(0);

/// The part of its loop that a vCPU executes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Neither waits nor holds.
    #[default]
    Outside,
    Waiting,
    Holding,
}

/// A vCPU's state in a round.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Worker {
    phase: AtomicU8,
    /// Whether interrupt handlers of this vCPU take locks.
    pub handlers_lock: AtomicBool,
    /// Operations of the task, and those of them that read.
    pub operations: AtomicU64,
    pub reads: AtomicU64,
    /// Those of the measured part of the round.
    pub measured: AtomicU64,
    /// Operations of interrupt handlers, and those of them that read.
    pub handled: AtomicU64,
    pub handled_reads: AtomicU64,
    /// Of those, the ones that interrupted a wait for the lock, or a critical section.
    pub nested: AtomicU64,
    /// The place of the code that the watchdog has interrupted. 0 if it has not.
    pub interrupted_at: AtomicU64,
    halts: AtomicU64,
    kicks: AtomicU64,
    unkicked: AtomicU64,
}

static WORKERS: [Worker; MAX_VCPUS] = [const {
    Worker {
        phase: AtomicU8::new(0),
        handlers_lock: AtomicBool::new(false),
        operations: AtomicU64::new(0),
        reads: AtomicU64::new(0),
        measured: AtomicU64::new(0),
        handled: AtomicU64::new(0),
        handled_reads: AtomicU64::new(0),
        nested: AtomicU64::new(0),
        interrupted_at: AtomicU64::new(0),
        halts: AtomicU64::new(0),
        kicks: AtomicU64::new(0),
        unkicked: AtomicU64::new(0),
    }
}; MAX_VCPUS];

/// Adds one to a counter that only this vCPU writes.
pub fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

impl Worker {
    #[inline]
    pub fn set(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    pub fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Outside,
            1 => Phase::Waiting,
            _ => Phase::Holding,
        }
    }

    /// Counts an operation of the task.
    #[inline]
    pub fn count(&self, reads: bool) {
        bump(&self.operations);
        if reads {
            bump(&self.reads);
        }
    }

    /// Keeps what the vCPU has counted in this round.
    pub fn keep(&self, before: Counts, after: Counts) {
        self.halts.store(after.halts - before.halts, Relaxed);
        self.kicks.store(after.kicks - before.kicks, Relaxed);
        self.unkicked
            .store(after.unkicked - before.unkicked, Relaxed);
    }

    /// Returns what was [kept](Self::keep).
    pub fn kept(&self) -> Counts {
        Counts {
            halts: self.halts.load(Relaxed),
            kicks: self.kicks.load(Relaxed),
            unkicked: self.unkicked.load(Relaxed),
        }
    }
}

/// The state of the calling vCPU.
#[inline]
pub fn own() -> &'static Worker {
    &WORKERS[vcpu::index()]
}

/// The states of the first `count` workers. The first vCPU is not one.
pub fn workers(count: usize) -> &'static [Worker] {
    &WORKERS[1..=count]
}

/// Begins the measured part of a round.
pub fn begin_measuring() {
    for worker in &WORKERS {
        worker
            .measured
            .store(worker.operations.load(Relaxed), Relaxed);
    }
}

/// Ends the measured part of a round.
pub fn end_measuring() {
    for worker in &WORKERS {
        let before = worker.measured.load(Relaxed);
        worker
            .measured
            .store(worker.operations.load(Relaxed) - before, Relaxed);
    }
}

/// Makes everything new for a round. No worker runs.
pub fn reset() {
    for worker in &WORKERS {
        worker.set(Phase::Outside);
        let tasks = [&worker.operations, &worker.reads];
        let handlers = [&worker.handled, &worker.handled_reads, &worker.nested];
        let counters = tasks.into_iter().chain(handlers);
        for counter in counters {
            counter.store(0, Relaxed);
        }
    }
    TASK.reset();
    HANDLER.reset();
    VIOLATED.store(false, Relaxed);
}

/// Whether two have been in a critical section at a time.
pub fn is_violated() -> bool {
    VIOLATED.load(Relaxed)
}
