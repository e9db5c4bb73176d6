//! The result of a round.

use std::time::Duration;

use crate::probe::{Probe, Roles, Waits};
use crate::world::{Outcome, Worker};

/// The result of a round of any workload.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Operations of each thread.
    pub operations: Vec<u64>,
    /// How long the round took.
    pub elapsed: Duration,
    /// CPU time of all threads.
    pub cpu: Duration,
    /// Times that the threads left their CPUs.
    pub switches: u64,
    /// Operations of all threads a second in each window of the round, if it was divided into any.
    pub windows: Vec<f64>,
    /// The waits for the lock, if this was a latency pass.
    pub waits: Option<Waits>,
    /// The same by role, where the lock has readers and writers.
    pub roles: Option<Roles>,
    /// Figures that only this workload has.
    pub extra: Extra,
}

/// Figures that only one workload has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// Nothing.
    None,
    /// [`qdisc`](super::qdisc): packets that found the queue full.
    Dropped(u64),
    /// [`build`](super::build): whether all was built when the round ended.
    Built {
        /// All of it.
        all: bool,
    },
}

impl Sample {
    pub(super) fn new(outcome: Outcome<Tally>, extra: Extra) -> Self {
        let tallies = &outcome.results;
        Self {
            operations: tallies.iter().map(|tally| tally.operations).collect(),
            elapsed: outcome.elapsed,
            cpu: outcome.cpu,
            switches: outcome.switches,
            windows: outcome.windows,
            waits: sum(tallies.iter().map(|tally| tally.waits.as_ref()), Waits::add),
            roles: sum(tallies.iter().map(|tally| tally.roles.as_ref()), Roles::add),
            extra,
        }
    }

    /// Operations of all threads.
    pub fn total(&self) -> u64 {
        self.operations.iter().sum()
    }

    /// Operations of all threads a second: the mean of the windows, if there are any. A median
    /// would miss those in which a preempted owner lets all others wait.
    pub fn ops_per_sec(&self) -> f64 {
        if !self.windows.is_empty() {
            return self.windows.iter().sum::<f64>() / self.windows.len() as f64;
        }
        self.total() as f64 / self.elapsed.as_secs_f64()
    }

    /// Packets a second that found the queue full, where there are packets.
    pub fn dropped_per_sec(&self) -> Option<f64> {
        match self.extra {
            Extra::Dropped(dropped) => Some(dropped as f64 / self.elapsed.as_secs_f64()),
            _ => None,
        }
    }

    /// Seconds that a build took, if there was one and it was finished.
    pub fn build_s(&self) -> Option<f64> {
        match self.extra {
            Extra::Built { all: true } => Some(self.elapsed.as_secs_f64()),
            _ => None,
        }
    }
}

fn sum<'a, T: Default + 'a>(
    parts: impl Iterator<Item = Option<&'a T>>,
    add: fn(&mut T, &T),
) -> Option<T> {
    parts.flatten().fold(None, |sum, part| {
        let mut sum = sum.unwrap_or_default();
        add(&mut sum, part);
        Some(sum)
    })
}

/// A thread's operations that ended within the measured time. Later ones would flatter a lock that
/// lets two thousand threads wait: each of them has one operation to go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InTime {
    before: u64,
    performed: u64,
}

impl InTime {
    /// Whether there is time for more. If so, all that were `performed` so far ended in time, or
    /// before it.
    #[inline]
    pub fn goes_on(&mut self, worker: &impl Worker, performed: u64) -> bool {
        let goes_on = !worker.stopped();
        if goes_on {
            self.performed = performed;
            worker.has_performed(performed);
            if !worker.counts() {
                self.before = performed;
            }
        }
        goes_on
    }

    /// How many they are.
    pub fn count(self) -> u64 {
        self.performed - self.before
    }
}

/// The result of a thread of a workload.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    operations: u64,
    waits: Option<Waits>,
    roles: Option<Roles>,
}

impl Tally {
    pub fn new(operations: u64, probe: impl Probe) -> Self {
        Self {
            operations,
            waits: probe.waits(),
            roles: None,
        }
    }

    /// Of a thread that reads and writes.
    pub fn of_roles(operations: u64, readers: impl Probe, writers: impl Probe) -> Self {
        let roles = readers
            .waits()
            .zip(writers.waits())
            .map(|(readers, writers)| Roles { readers, writers });
        Self {
            operations,
            waits: roles.as_ref().map(Roles::all),
            roles,
        }
    }
}
