//! One round of a lock on a simulated machine, with all that it tells.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::probe::{Pass, Times};
use crate::registry::Entry;
use crate::report::simulation::Summary;
use crate::stats::jain;
use crate::workload::{Workload, qdisc};
use crate::world::sim::Simulated;
use crate::world::{Part, Workers, World};

/// The figures of a round.
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
    /// Jain's index of fairness over the vCPUs, if there were operations: none at all are not even.
    pub jain: Option<f64>,
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
    /// The percentage of the acquisitions on a slow path that went through the queue, if any did
    /// take that path.
    pub fn queued_percent(&self) -> Option<f64> {
        let (queued, unfair) = (self.simulation.queued, self.simulation.unfair);
        let all = queued + unfair;
        (all > 0).then(|| 100.0 * queued as f64 / all as f64)
    }

    /// Whether longer simulations may bring other figures.
    pub fn is_unsettled(&self) -> bool {
        self.simulation.settled == Some(false)
    }
}

/// Simulates a round of so long. The same brings the same, whatever else this program does.
///
/// # Errors
///
/// Says how the lock failed, or what this machine lacks.
///
/// # Panics
///
/// If the lock panics, or does not run on a simulated machine.
pub fn round(
    world: &Simulated,
    lock: &Entry,
    workload: &Workload,
    threads: usize,
    length: Duration,
) -> Result<Measured, Error> {
    let rounds = lock.simulated.as_ref();
    let rounds = rounds.expect("the lock runs on simulated machines");
    let workers = Workers {
        lock: lock.name,
        threads,
        pin: false,
        stop_after: length,
        measured: Part::Warm,
    };
    world.begin(0);
    // Simulated clocks cost nothing to read, so one round counts operations and times waits.
    let prepared = workload.prepare(world, world.machine().cpus() as f64, length);
    let sample = prepared.round(rounds, world, &workers, Pass::Latency)?;
    let simulation = Summary::new(world.report().as_slice()).expect("the round has run");

    let (operations, total) = (&sample.operations, sample.total());
    let roles = sample.roles.as_ref();
    Ok(Measured {
        elapsed_s: sample.elapsed.as_secs_f64(),
        ops_per_sec: sample.ops_per_sec(),
        total,
        min: operations.iter().copied().min().unwrap_or_default(),
        avg: total as f64 / operations.len() as f64,
        max: operations.iter().copied().max().unwrap_or_default(),
        jain: (total > 0).then(|| jain(operations)),
        cpu_s_per_mop: (total > 0).then(|| sample.cpu.as_secs_f64() / total as f64 * 1e6),
        waits: sample.waits.as_ref().map(|waits| waits.times(world)),
        read: roles.map(|roles| roles.readers.times(world)),
        write: roles.map(|roles| roles.writers.times(world)),
        mbit_per_sec: (*workload == Workload::Qdisc).then(|| qdisc::megabits(sample.ops_per_sec())),
        dropped_per_sec: sample.dropped_per_sec(),
        build_s: sample.build_s(),
        simulation,
    })
}
