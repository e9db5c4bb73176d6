//! The documents' microbenchmark: each vCPU takes and releases one lock in a loop.

use core::fmt;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use overlock_core::Platform;
use overlock_core::raw::RawLock;
use overlock_guest::options::Options;
use overlock_guest::{Guest, backend};

use crate::console::say;
use crate::coordinator;
use crate::registry::{self, Entry};
use crate::shared::{self, Phase, STOP, TASK, Worker, bump};

/// Iterations of [`busy`] in the critical section, and outside.
static INSIDE: AtomicU64 = AtomicU64::new(0);
static OUTSIDE: AtomicU64 = AtomicU64::new(0);

/// Takes and releases the lock until the round stops: the part of one vCPU.
///
/// # Safety
///
/// The registry's locks are of this type.
pub unsafe fn work<L: RawLock>() {
    // SAFETY: the caller's promise.
    let [lock, _] = unsafe { registry::pair::<L>() };
    let own = shared::own();
    let (inside, outside) = (INSIDE.load(Relaxed), OUTSIDE.load(Relaxed));
    while STOP.load(Relaxed) == 0 {
        own.set(Phase::Waiting);
        let token = lock.lock();
        own.set(Phase::Holding);
        TASK.visit(|| busy(inside));
        // SAFETY: of the acquisition above.
        unsafe { lock.unlock(token) };
        own.set(Phase::Outside);
        bump(&own.operations);
        busy(outside);
    }
}

/// Executes a loop without any access of memory.
fn busy(iterations: u64) {
    for iteration in 0..iterations {
        black_box(iteration);
    }
}

/// Iterations of [`busy`] for so many nanoseconds: by the fastest of some trials, which nothing
/// has interrupted.
fn iterations(nanos: u64) -> u64 {
    const TRIAL: u64 = 100_000;
    if nanos == 0 {
        return 0;
    }
    let trial = || {
        let begin = Guest::now();
        busy(TRIAL);
        Guest::now().nanos_since(begin).max(1)
    };
    let fastest = (0..10).map(|_| trial()).min().unwrap_or(1);
    (nanos * TRIAL).div_ceil(fastest)
}

/// Calibrates the sections, before the first round.
pub fn calibrate(options: &Options<'_>) {
    INSIDE.store(iterations(options.cs), Relaxed);
    OUTSIDE.store(iterations(options.ncs), Relaxed);
}

/// Measures a round of the lock, and prints it.
pub fn run(options: &Options<'_>, entry: &Entry, workers: usize) {
    let round = coordinator::round(options, entry, workers);
    let operations = Operations(shared::workers(workers));
    let total = operations.iter().sum::<u64>();
    say!(
        "{{\"hypervisor\":\"{}\",\"cpus\":{},\"lock\":\"{}\",\"vcpus\":{workers},\"ns\":{},\
         \"min\":{},\"avg\":{},\"max\":{},\"total\":{total},\"halts\":{},\"kicks\":{},\
         \"unkicked\":{},\"preempted\":{},\"operations\":[{operations}]}}",
        backend::hypervisor(),
        Guest::parallelism(),
        entry.name,
        round.nanos,
        operations.iter().min().unwrap_or(0),
        total / workers as u64,
        operations.iter().max().unwrap_or(0),
        round.counts.halts,
        round.counts.kicks,
        round.counts.unkicked,
        round.preempted,
    );
}

/// The operations of each worker in the measured part of a round.
struct Operations(&'static [Worker]);

impl Operations {
    fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|worker| worker.measured.load(Relaxed))
    }
}

impl fmt::Display for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().enumerate().try_for_each(|(place, count)| {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{count}")
        })
    }
}
