//! Another machine, simulated: many vCPUs, caches, a host's scheduler.

#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use overlock_sim::account::{Account, Counts, State};
use overlock_sim::cache::Traffic;
use overlock_sim::engine::{self, Measured, Setup, Stuck, Windows};
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use overlock_sim::trace::Mark;
use overlock_sim::word::U64;
use overlock_sim::{Sim, Time};

use overlock_core::platform::Atomic;
use overlock_core::raw::{RawLock, RawRwLock};
use overlock_core::stat::Event;

use super::{Outcome, Part, Word, Work, Worker, Workers, World};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::lock::{BenchLock, BenchRwLock, CreateError};
use crate::ours::{self, Ours};

/// The simulated time that vCPUs may take to end after the stop.
const END_TIMEOUT: Time = Time::ms(30_000);

/// The windows of a round. More of them would be shorter, and disagree by chance.
const WINDOWS: usize = 5;

/// A simulated machine.
#[derive(Debug)]
pub struct Simulated {
    machine: Machine,
    host: Host,
    seed: u64,
    guests: usize,
    others: usize,
    trace: bool,
    warm_up: Option<Duration>,
    interrupt: Arc<Interrupt>,
    round: AtomicU64,
    last: Mutex<Option<Report>>,
}

/// The figures of a round that only a simulation has.
#[derive(Clone, Debug)]
pub struct Report {
    /// How long it took, in simulated time.
    pub elapsed: Duration,
    /// The vCPUs' time, by state.
    pub accounts: Vec<Account>,
    /// Events of the vCPUs.
    pub counts: Counts,
    /// Traffic of the cache lines.
    pub traffic: Traffic,
    /// Acquisitions on the slow path of a queued lock: in the queue, and past it.
    pub modes: (u64, u64),
    /// The trace, if it is on.
    pub trace: Vec<Mark>,
    /// Events of the simulation.
    pub events: u64,
    /// The time before the measured time.
    pub warm_up: Duration,
    /// Whether a longer round would bring about the same: each vCPU has had its turns before, and
    /// the windows agree. `None` for a round that has an end of its own, or is traced.
    pub settled: Option<bool>,
}

impl Simulated {
    /// A machine with its host. The same `seed` brings the same results.
    pub fn new(machine: Machine, host: Host, seed: u64, interrupt: Arc<Interrupt>) -> Self {
        Self {
            machine,
            host,
            seed,
            guests: 1,
            others: 0,
            trace: false,
            warm_up: None,
            interrupt,
            round: AtomicU64::new(0),
            last: Mutex::new(None),
        }
    }

    /// The same, leaving a trace of every round, which begins at the start.
    #[must_use]
    pub fn traced(self) -> Self {
        Self {
            trace: true,
            ..self
        }
    }

    /// The same with a warm-up of at least this length. By default it is as long as the scheduler
    /// needs to give each vCPU a CPU twice.
    #[must_use]
    pub fn warmed_up(self, warm_up: Duration) -> Self {
        Self {
            warm_up: Some(warm_up),
            ..self
        }
    }

    /// The least warm-up of a round; `None` if it has no windows.
    fn warm_up(&self, workers: &Workers) -> Option<Time> {
        let turns = || self.turns(workers.threads);
        match workers.measured {
            _ if self.trace => None,
            Part::Warm => Some(self.warm_up.map_or_else(turns, Time::from)),
            Part::AtOnce => Some(Time::ZERO),
            Part::Whole => None,
        }
    }

    /// How long it takes until each of so many vCPUs has had a CPU twice.
    fn turns(&self, vcpus: usize) -> Time {
        let on_each = (vcpus + self.others).div_ceil(self.machine.cpus());
        self.host.scheduler.period(on_each).times(2)
    }

    /// The same with so many vCPUs of other guests, which always want a CPU.
    #[must_use]
    pub fn beside(self, others: usize) -> Self {
        Self { others, ..self }
    }

    /// The same with the vCPUs of a round in so many guests of equal size, each of which runs the
    /// workload by itself. Only the workload `build` runs in more than one.
    #[must_use]
    pub fn in_guests(self, guests: usize) -> Self {
        Self { guests, ..self }
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The host of its vCPUs.
    pub fn host(&self) -> &Host {
        &self.host
    }

    fn keep<T>(&self, outcome: &mut engine::Outcome<T>) {
        let measured = outcome.measured.as_ref();
        let report = Report {
            elapsed: outcome.elapsed.duration(),
            accounts: std::mem::take(&mut outcome.accounts),
            counts: outcome.counts,
            traffic: outcome.traffic,
            modes: (
                outcome.lock_events[Event::LockSlowpath as usize],
                outcome.lock_events[Event::PvLockStealing as usize],
            ),
            trace: std::mem::take(&mut outcome.trace),
            events: outcome.events,
            warm_up: measured.map_or(Duration::ZERO, |measured| measured.warm_up.duration()),
            settled: measured.map(Measured::is_settled),
        };
        if let Ok(mut last) = self.last.lock() {
            *last = Some(report);
        }
    }
}

/// A vCPU of a round.
#[derive(Debug)]
pub struct SimulatedWorker {
    index: usize,
}

impl Worker for SimulatedWorker {
    fn index(&self) -> usize {
        self.index
    }

    fn stopped(&self) -> bool {
        engine::stopped()
    }

    fn counts(&self) -> bool {
        engine::counts()
    }

    fn has_performed(&self, operations: u64) {
        engine::has_performed(operations);
    }

    fn work(&self, work: Work) {
        engine::work(Time::ps(work.0));
    }

    fn rest(&self) {
        engine::rest();
    }

    fn ticks(&self) -> u64 {
        engine::now().as_ps()
    }
}

impl Word for U64 {
    fn new(value: u64) -> Self {
        Atomic::new(value)
    }

    fn get(&self) -> u64 {
        self.load(Relaxed)
    }

    fn set(&self, value: u64) {
        self.store(value, Relaxed);
    }
}

impl World for Simulated {
    const TESTS_COUNT: bool = false;
    /// Of what is published, pv-ticket-dbench takes 23 times as long with four times the vCPUs.
    const BUILD_LIMIT: u32 = 40;
    const LIMIT_SHORTER: u32 = 10;

    type Word = U64;
    type Worker = SimulatedWorker;

    fn begin(&self, round: usize) {
        overlock_sim::forget();
        self.round.store(round as u64, Relaxed);
    }

    fn run<T: Send>(
        &self,
        workers: &Workers,
        body: &(dyn Fn(&SimulatedWorker) -> T + Sync),
    ) -> Result<Outcome<T>, Error> {
        // A simulation polls this only now and then, and a short one not at all.
        if self.interrupt.is_raised() {
            return Err(Error::Interrupted);
        }
        // All locks meet the same chances, and a round brings the same whatever else is in its
        // plan.
        let round = self.round.load(Relaxed);
        let warm_up = self.warm_up(workers);
        // In less time no owner may lose its CPU, by chance.
        let least = warm_up.unwrap_or_default();
        let setup = Setup {
            machine: &self.machine,
            host: &self.host,
            vcpus: workers.threads,
            guests: self.guests,
            others: self.others,
            seed: self
                .seed
                .wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            stop_after: least.max(workers.stop_after.into()),
            windows: warm_up.map(|warm_up| Windows {
                warm_up,
                count: WINDOWS,
            }),
            patience: END_TIMEOUT,
            trace: self.trace,
        };
        let member = |index| body(&SimulatedWorker { index });
        let go_on = || !self.interrupt.is_raised();
        let ended = catch_unwind(AssertUnwindSafe(|| engine::run(&setup, member, go_on)));
        let ended = ended.map_err(|panic| Error::panicked(&*panic))?;
        let mut outcome = ended.map_err(|stuck| match stuck {
            Stuck::Interrupted => Error::Interrupted,
            Stuck::Stacks { wanted, got } => Error::Spawn {
                wanted,
                got,
                why: "there is no memory for their stacks; fewer simulations at a time need less"
                    .to_owned(),
            },
            stuck => Error::Simulation(stuck.to_string()),
        })?;
        let cpu = outcome.account().on_cpu();
        self.keep(&mut outcome);
        Ok(Outcome {
            elapsed: outcome.elapsed.duration(),
            stopped: outcome.stopped,
            cpu: cpu.duration(),
            switches: 0,
            windows: outcome
                .measured
                .map_or_else(Vec::new, |measured| measured.rates()),
            results: outcome.results,
        })
    }

    fn guests(&self) -> usize {
        self.guests
    }

    fn report(&self) -> Option<Report> {
        self.last.lock().ok()?.take()
    }

    fn work(&self, nanoseconds: f64) -> Work {
        Work(Time::from_ns(nanoseconds).as_ps())
    }

    fn measure(&self, work: Work) -> f64 {
        Time::ps(work.0).as_ns_f64()
    }

    fn nanoseconds(&self, ticks: u64) -> f64 {
        Time::ps(ticks).as_ns_f64()
    }
}

impl Report {
    /// How long all vCPUs together were in a state.
    pub fn time(&self, state: State) -> Duration {
        let sum: Time = self.accounts.iter().map(|account| account[state]).sum();
        sum.duration()
    }
}

/// A lock of ours on the simulated platform that reports waiters and holders, at no cost. So the
/// simulator knows whether a vCPU that loses its CPU held a lock or waited for one.
#[derive(Debug)]
pub struct Marked<L>(L);

impl<L> Marked<L> {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// Reports the release of its lock, after it.
#[derive(Debug)]
pub struct MarkedGuard<G> {
    guard: Option<G>,
    lock: usize,
}

impl<G> Drop for MarkedGuard<G> {
    fn drop(&mut self) {
        self.guard = None;
        engine::releases(self.lock);
    }
}

fn marked<G>(lock: usize, acquire: impl FnOnce() -> G) -> MarkedGuard<G> {
    engine::waits(lock);
    let guard = Some(acquire());
    engine::holds(lock);
    MarkedGuard { guard, lock }
}

impl<L: RawLock> BenchLock for Marked<Ours<L>> {
    type Guard<'a> = MarkedGuard<ours::Guard<'a, L>>;

    fn create() -> Result<Self, CreateError> {
        Ours::create().map(Self)
    }

    fn lock(&self) -> Self::Guard<'_> {
        marked(self.address(), || self.0.lock())
    }
}

impl<L: RawRwLock> BenchRwLock for Marked<ours::rw::Ours<L>> {
    type Read<'a> = MarkedGuard<ours::rw::ReadGuard<'a, L>>;
    type Write<'a> = MarkedGuard<ours::rw::WriteGuard<'a, L>>;

    fn create() -> Result<Self, CreateError> {
        ours::rw::Ours::create().map(Self)
    }

    fn read(&self) -> Self::Read<'_> {
        marked(self.address(), || self.0.read())
    }

    fn write(&self) -> Self::Write<'_> {
        marked(self.address(), || self.0.write())
    }
}

/// The platform that simulated locks are for.
pub type Platform = Sim;
