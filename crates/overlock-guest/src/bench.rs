//! The documents' microbenchmark: each vCPU takes and releases one lock in a loop.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use overlock_core::Platform;
use overlock_core::raw::RawLock;
use overlock_guest::options::{MOST_ROUNDS, Options};
use overlock_guest::vcpu::Counts;
use overlock_guest::{Guest, backend};

use crate::console::say;
use crate::coordinator;
use crate::registry::{self, Entry};
use crate::shared::{self, Phase, STOP, TASK, bump};

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

/// The figures of a round.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    total: u64,
    min: u64,
    max: u64,
    nanos: u64,
    counts: Counts,
    preempted: u64,
}

/// Measures the lock, and prints the round of the median total.
pub fn run(options: &Options<'_>, entry: &Entry, workers: usize) {
    INSIDE.store(iterations(options.cs), Relaxed);
    OUTSIDE.store(iterations(options.ncs), Relaxed);
    let mut figures = [Figures::default(); MOST_ROUNDS];
    let figures = &mut figures[..options.rounds];
    for place in figures.iter_mut() {
        *place = measure(options, entry, workers);
    }
    figures.sort_unstable_by_key(|figures| figures.total);
    let (least, most) = (figures[0].total, figures[options.rounds - 1].total);
    let Figures {
        total,
        min,
        max,
        nanos,
        counts,
        preempted,
    } = figures[(options.rounds - 1) / 2];
    say!(
        "{{\"hypervisor\":\"{}\",\"cpus\":{},\"lock\":\"{}\",\"vcpus\":{workers},\"ns\":{nanos},\
         \"min\":{min},\"avg\":{},\"max\":{max},\"total\":{total},\"halts\":{},\"kicks\":{},\
         \"unkicked\":{},\"preempted\":{preempted},\"rounds\":{},\"least\":{least},\"most\":{most}}}",
        backend::hypervisor(),
        Guest::parallelism(),
        entry.name,
        total / workers as u64,
        counts.halts,
        counts.kicks,
        counts.unkicked,
        options.rounds
    );
}

fn measure(options: &Options<'_>, entry: &Entry, workers: usize) -> Figures {
    let round = coordinator::round(options, entry, workers);
    let operations = || {
        let states = shared::workers(workers).iter();
        states.map(|state| state.measured.load(Relaxed))
    };
    Figures {
        total: operations().sum(),
        min: operations().min().unwrap_or(0),
        max: operations().max().unwrap_or(0),
        nanos: round.nanos,
        counts: round.counts,
        preempted: round.preempted,
    }
}
