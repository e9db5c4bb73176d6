//! One line of every report: a lock with a number of threads.

use serde::Serialize;

use super::simulation::Summary;
use crate::counters::Counters;
use crate::guest;
use crate::machine::Machine;
use crate::measure::{Cell, Measurement};
use crate::probe::{Times, Waits};
use crate::registry::Origin;
use crate::stats::{jain, median};
use crate::workload::{Parameters, Sample, Workload, qdisc};
use crate::world::World;

/// A lock with a number of threads. Medians over the throughput rounds; waits over all latency
/// rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The lock's name.
    pub lock: &'static str,
    /// The workload's name.
    pub workload: &'static str,
    /// How many threads used it.
    pub threads: usize,
    /// CPUs' worth of time that they had.
    pub cpus: f64,
    /// Threads for each CPU.
    pub overcommit: f64,
    /// The workload's parameters.
    #[serde(flatten)]
    pub parameters: Parameters,
    /// Operations of all threads a second.
    pub ops_per_sec: f64,
    /// The slowest round.
    pub ops_per_sec_min: f64,
    /// The fastest round.
    pub ops_per_sec_max: f64,
    /// Operations of all threads in a round.
    pub total: f64,
    /// Operations of the thread that had the fewest.
    pub min: f64,
    /// Operations of a thread, on average.
    pub avg: f64,
    /// Operations of the thread that had the most.
    pub max: f64,
    /// Jain's index of fairness over the threads.
    pub jain: f64,
    /// CPU seconds for a million operations.
    pub cpu_s_per_mop: Option<f64>,
    /// Half of the waits were no longer.
    pub p50_ns: Option<f64>,
    /// 99 of 100 were no longer.
    pub p99_ns: Option<f64>,
    /// 999 of 1000 were no longer.
    pub p999_ns: Option<f64>,
    /// The longest wait of all.
    pub max_ns: Option<f64>,
    /// How many waits were timed.
    pub waits: Option<u64>,
    /// Half of the waits to read were no longer, where readers differ from writers.
    pub read_p50_ns: Option<f64>,
    /// 99 of 100 were no longer.
    pub read_p99_ns: Option<f64>,
    /// 999 of 1000 were no longer.
    pub read_p999_ns: Option<f64>,
    /// The longest wait to read.
    pub read_max_ns: Option<f64>,
    /// How many waits to read were timed.
    pub read_waits: Option<u64>,
    /// Half of the waits to write were no longer.
    pub write_p50_ns: Option<f64>,
    /// 99 of 100 were no longer.
    pub write_p99_ns: Option<f64>,
    /// 999 of 1000 were no longer.
    pub write_p999_ns: Option<f64>,
    /// The longest wait to write.
    pub write_max_ns: Option<f64>,
    /// How many waits to write were timed.
    pub write_waits: Option<u64>,
    /// Operations, relative to the best of the rivals in the same cell.
    pub vs_best_peer: Option<f64>,
    /// Which of them that is.
    pub best_peer: Option<&'static str>,
    /// Operations, relative to the limit.
    pub vs_limit: Option<f64>,
    /// The limit: operations a second without a lock, capped by one over the critical section.
    pub limit_ops_per_sec: Option<f64>,
    /// The critical section as measured in this run.
    pub cs_measured_ns: Option<f64>,
    /// The non-critical section as measured in this run.
    pub ncs_measured_ns: Option<f64>,
    /// Megabits of messages a second.
    pub mbit_per_sec: Option<f64>,
    /// Packets a second that found the queue full.
    pub dropped_per_sec: Option<f64>,
    /// Seconds that a build took, if every round finished it.
    pub build_s: Option<f64>,
    /// Operations a second of each round, in their order.
    pub rounds: Vec<f64>,
    /// The lock's events, for a lock of ours with `--stat`.
    pub stat: Option<Counters>,
    /// The counts that only a guest has, of all throughput rounds.
    pub guest: Option<guest::Counts>,
    /// Whether longer rounds would bring about the same figures, as far as a simulation can tell.
    pub settled: Option<bool>,
    /// The figures that only a simulation has.
    pub simulation: Option<Summary>,
    #[serde(skip)]
    origin: Origin,
}

impl Row {
    /// Ours, a peer, or the limit.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    fn new(cell: &Cell, timed: Timed<'_>, machine: &Machine, workload: &Workload) -> Self {
        let samples = &cell.samples;
        let rounds: Vec<f64> = samples.iter().map(Sample::ops_per_sec).collect();
        let over_threads =
            |pick: fn(&[u64]) -> f64| median(samples.iter().map(|s| pick(&s.operations)));
        let all = cell.waits.as_ref().and_then(timed);
        let roles = cell.roles.as_ref();
        let readers = roles.and_then(|roles| timed(&roles.readers));
        let writers = roles.and_then(|roles| timed(&roles.writers));
        let cost = median(
            samples
                .iter()
                .map(|s| s.cpu.as_secs_f64() / s.total() as f64 * 1e6),
        );
        let ops_per_sec = median(rounds.iter().copied());
        let simulation = Summary::new(&cell.reports);
        Self {
            lock: cell.entry.name,
            origin: cell.entry.origin,
            workload: workload.name(),
            threads: cell.threads,
            cpus: machine.cpus,
            overcommit: cell.threads as f64 / machine.cpus,
            parameters: workload.parameters(),
            ops_per_sec,
            ops_per_sec_min: rounds.iter().copied().fold(f64::INFINITY, f64::min),
            ops_per_sec_max: rounds.iter().copied().fold(0.0, f64::max),
            total: over_threads(|ops| ops.iter().sum::<u64>() as f64),
            min: over_threads(|ops| ops.iter().copied().min().unwrap_or(0) as f64),
            avg: over_threads(|ops| ops.iter().sum::<u64>() as f64 / ops.len() as f64),
            max: over_threads(|ops| ops.iter().copied().max().unwrap_or(0) as f64),
            jain: over_threads(jain),
            // Zero where nobody has measured it.
            cpu_s_per_mop: (cost.is_finite() && cost > 0.0).then_some(cost),
            p50_ns: all.map(|times| times.p50_ns),
            p99_ns: all.map(|times| times.p99_ns),
            p999_ns: all.map(|times| times.p999_ns),
            max_ns: all.map(|times| times.max_ns),
            waits: all.map(|times| times.count),
            read_p50_ns: readers.map(|times| times.p50_ns),
            read_p99_ns: readers.map(|times| times.p99_ns),
            read_p999_ns: readers.map(|times| times.p999_ns),
            read_max_ns: readers.map(|times| times.max_ns),
            read_waits: readers.map(|times| times.count),
            write_p50_ns: writers.map(|times| times.p50_ns),
            write_p99_ns: writers.map(|times| times.p99_ns),
            write_p999_ns: writers.map(|times| times.p999_ns),
            write_max_ns: writers.map(|times| times.max_ns),
            write_waits: writers.map(|times| times.count),
            vs_best_peer: None,
            best_peer: None,
            vs_limit: None,
            limit_ops_per_sec: None,
            cs_measured_ns: None,
            ncs_measured_ns: None,
            mbit_per_sec: (*workload == Workload::Qdisc).then(|| qdisc::megabits(ops_per_sec)),
            dropped_per_sec: in_all(samples, Sample::dropped_per_sec),
            build_s: in_all(samples, Sample::build_s),
            rounds,
            stat: cell.counters.clone(),
            guest: guest::Counts::sum(&cell.guests),
            settled: simulation.as_ref().and_then(|summary| summary.settled),
            simulation,
        }
    }
}

/// The median of what `value` finds in the samples, if it finds it in all.
fn in_all(samples: &[Sample], value: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    samples
        .iter()
        .map(value)
        .collect::<Option<Vec<f64>>>()
        .map(median)
}

/// The rows of a measurement, in its order.
pub fn rows(
    measurement: &Measurement,
    world: &impl World,
    machine: &Machine,
    workload: &Workload,
) -> Vec<Row> {
    let timed = |waits: &Waits| Some(waits.times(world));
    rows_by(measurement, &timed, machine, workload)
}

/// The same of a guest's measurement, which times no waits.
pub fn guest_rows(measurement: &Measurement, machine: &Machine, workload: &Workload) -> Vec<Row> {
    rows_by(measurement, &|_| None, machine, workload)
}

/// Waits in the form of reports, where they can be had.
type Timed<'a> = &'a dyn Fn(&Waits) -> Option<Times>;

fn rows_by(
    measurement: &Measurement,
    timed: Timed<'_>,
    machine: &Machine,
    workload: &Workload,
) -> Vec<Row> {
    let mut rows: Vec<Row> = measurement
        .cells
        .iter()
        .map(|cell| Row::new(cell, timed, machine, workload))
        .collect();
    let critical = measurement.sections.map(|sections| sections.critical);
    for cell in rows.chunk_by_mut(|a, b| a.threads == b.threads) {
        let cap = critical.map_or(f64::INFINITY, |critical| {
            workload.cap(critical, cell[0].threads, machine.cpus_allowed)
        });
        compare(cell, workload.family().rivals(), cap);
    }
    for row in &mut rows {
        row.cs_measured_ns = critical;
        row.ncs_measured_ns = measurement.sections.map(|sections| sections.between);
    }
    rows
}

/// Fills in the ratios within the rows of one number of threads. No lock allows more than `cap`
/// operations a second.
fn compare(rows: &mut [Row], rivals: &[&str], cap: f64) {
    let best = rows
        .iter()
        .filter(|row| rivals.contains(&row.lock))
        .max_by(|a, b| a.ops_per_sec.total_cmp(&b.ops_per_sec))
        .map(|row| (row.lock, row.ops_per_sec));
    let unlocked = rows
        .iter()
        .find(|row| row.origin == Origin::Limit)
        .map(|row| row.ops_per_sec);
    let limit = unlocked.map(|ops| ops.min(cap));
    for row in rows.iter_mut().filter(|row| row.origin != Origin::Limit) {
        row.best_peer = best.map(|(name, _)| name);
        row.vs_best_peer = best.and_then(|(_, ops)| ratio(row.ops_per_sec, ops));
        row.limit_ops_per_sec = limit;
        row.vs_limit = limit.and_then(|limit| ratio(row.ops_per_sec, limit));
    }
}

fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}
