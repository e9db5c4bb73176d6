//! One simulation, and what it brings.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::grid::{Key, Point};
use overlock_bench::error::Error;
use overlock_bench::interrupt::Interrupt;
use overlock_bench::probe::{Pass, Times};
use overlock_bench::report::simulation::Summary;
use overlock_bench::stats::jain;
use overlock_bench::workload::{Workload, qdisc};
use overlock_bench::world::sim::Simulated;
use overlock_bench::world::{Workers, World};

/// A line of a file of results. Nothing in it depends on the machine that simulates, or on how long
/// that takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which simulation it is.
    #[serde(flatten)]
    pub key: Key,
    /// The result.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Outcome {
    /// The lock failed.
    Failed {
        /// How.
        error: String,
    },
    /// It brought this.
    Measured(Box<Measured>),
}

/// The figures of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Simulated seconds.
    pub elapsed_s: f64,
    /// Operations of all vCPUs a second.
    pub ops_per_sec: f64,
    /// Operations of all vCPUs.
    pub total: u64,
    /// Operations of the vCPU that had the fewest.
    pub min: u64,
    /// Operations of a vCPU, on average.
    pub avg: f64,
    /// Operations of the vCPU that had the most.
    pub max: u64,
    /// Jain's index of fairness over the vCPUs.
    pub jain: f64,
    /// CPU time in seconds for a million operations, if there were any.
    pub cpu_s_per_mop: Option<f64>,
    /// The waits for the lock.
    pub waits: Option<Times>,
    /// Those to read, where readers differ from writers.
    pub read: Option<Times>,
    /// Those to write.
    pub write: Option<Times>,
    /// Megabits of messages a second.
    pub mbit_per_sec: Option<f64>,
    /// Packets a second that found the queue full.
    pub dropped_per_sec: Option<f64>,
    /// Seconds that a build took, if it was finished.
    pub build_s: Option<f64>,
    /// Preemptions, and shares of the time.
    pub simulation: Summary,
}

impl Measured {
    /// Jain's index, if there were operations: none at all are not even.
    pub fn fairness(&self) -> Option<f64> {
        (self.total > 0).then_some(self.jain)
    }
}

/// Simulates a point for so long. The same point brings the same, whatever else this program does.
///
/// # Panics
///
/// If the lock panics, or does not run on a simulated machine.
pub fn simulate(
    point: &Point<'_>,
    round: Duration,
    interrupt: &Arc<Interrupt>,
) -> Result<Measured, Error> {
    let machine = point.machine.clone();
    let cpus = machine.cpus() as f64;
    let world = Simulated::new(
        machine,
        point.host.clone(),
        point.seed,
        Arc::clone(interrupt),
    );
    let world = world.beside(point.others).in_guests(point.guests);
    let rounds = point.lock.simulated.as_ref();
    let rounds = rounds.expect("the locks of a grid run on simulated machines");
    let workers = Workers {
        lock: point.lock.name,
        threads: point.vcpus,
        pin: false,
        stop_after: round,
        at_once: false,
    };
    world.begin(0);
    // Simulated clocks cost nothing to read, so one round counts operations and times the waits.
    let prepared = point.workload.prepare(&world, cpus, round);
    let sample = prepared.round(rounds, &world, &workers, Pass::Latency)?;
    let simulation = Summary::new(world.report().as_slice()).expect("the round has run");

    let operations = &sample.operations;
    let roles = sample.roles.as_ref();
    Ok(Measured {
        elapsed_s: sample.elapsed.as_secs_f64(),
        ops_per_sec: sample.ops_per_sec(),
        total: sample.total(),
        min: operations.iter().copied().min().unwrap_or_default(),
        avg: sample.total() as f64 / operations.len() as f64,
        max: operations.iter().copied().max().unwrap_or_default(),
        jain: jain(operations),
        cpu_s_per_mop: (sample.total() > 0)
            .then(|| sample.cpu.as_secs_f64() / sample.total() as f64 * 1e6),
        waits: sample.waits.as_ref().map(|waits| waits.times(&world)),
        read: roles.map(|roles| roles.readers.times(&world)),
        write: roles.map(|roles| roles.writers.times(&world)),
        mbit_per_sec: (point.workload == Workload::Qdisc)
            .then(|| qdisc::megabits(sample.ops_per_sec())),
        dropped_per_sec: sample.dropped_per_sec(),
        build_s: sample.build_s(),
        simulation,
    })
}
