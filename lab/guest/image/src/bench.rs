//! The documents' microbenchmark: each vCPU takes and releases one lock in a loop.

use core::fmt;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use overlock_core::Platform;
use overlock_guest::options::Options;
use overlock_guest::{Guest, backend};

use crate::console::say;
use crate::coordinator;
use crate::registry::{self, Entry};
use crate::shared::{self, Phase, STOP, TASK, Worker};
use crate::subject::Subject;

/// Iterations of [`busy`] in the critical section, and outside.
static INSIDE: AtomicU64 = AtomicU64::new(0);
static OUTSIDE: AtomicU64 = AtomicU64::new(0);
/// Of a hundred operations on a reader-writer lock, those that read.
static READS: AtomicU64 = AtomicU64::new(0);

/// Whether the operation of this number reads: so many of each hundred, spread over it.
pub fn is_read(number: u64) -> bool {
    const COPRIME: u64 = 37;
    number * COPRIME % 100 < READS.load(Relaxed)
}

/// Takes and releases the lock until the round stops: the part of one vCPU.
///
/// # Safety
///
/// The registry's locks are of this type.
pub unsafe fn work<L: Subject>() {
    // SAFETY: the caller's promise.
    let [lock, _] = unsafe { registry::pair::<L>() };
    let own = shared::own();
    let (inside, outside) = (INSIDE.load(Relaxed), OUTSIDE.load(Relaxed));
    while STOP.load(Relaxed) == 0 {
        own.set(Phase::Waiting);
        let reads = is_read(own.operations.load(Relaxed));
        let has_read = lock.visit(reads, &TASK, || {
            own.set(Phase::Holding);
            busy(inside);
        });
        own.set(Phase::Outside);
        own.count(has_read);
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

/// Calibrates the sections, before the first round, and sets the share of readers.
pub fn calibrate(options: &Options<'_>) {
    READS.store(options.reads, Relaxed);
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
