//! The request of a run, as the report repeats it.

use std::borrow::Cow;

use serde::Serialize;

use crate::workload::Parameters;

/// The settings of a run, defaults filled in.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// The workload.
    pub workload: &'static str,
    /// The locks, without the limit.
    pub locks: Vec<&'static str>,
    /// The peers that count for `vs_best_peer`, measured or not.
    pub rivals: &'static [&'static str],
    /// The thread counts.
    pub threads: Vec<usize>,
    /// The workload's parameters.
    #[serde(flatten)]
    pub parameters: Parameters,
    /// Seconds of each round; of a build that never waits.
    pub seconds: f64,
    /// Throughput rounds of each cell, as many as there were.
    pub runs: usize,
    /// Latency rounds of each cell.
    pub latency_runs: usize,
    /// Whether threads were bound to CPUs.
    pub pin: bool,
    /// The quota that the run set itself, in percent of one CPU.
    pub quota_percent: Option<f64>,
    /// The clock that waits were timed with.
    pub clock: &'static str,
    /// Seconds that the run took, where that is not left to the computer that simulated it.
    pub elapsed_s: Option<f64>,
    /// The simulated machine and its host, if there was one.
    pub simulation: Option<Simulation>,
}

/// A simulated machine, by the names that bring it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Simulation {
    /// The machine: its preset, and the keys that differ from it.
    pub machine: Cow<'static, str>,
    /// How many of its cores were used.
    pub cores: usize,
    /// The host of the vCPUs, in the same way.
    pub host: Cow<'static, str>,
    /// vCPUs of other guests.
    pub others: usize,
    /// Seed of the random choices.
    pub seed: u64,
}
