//! The options, checked.

use std::time::Duration;

use overlock_bench::machine::Machine;
use overlock_bench::registry::{self, Entry};
use overlock_bench::workload::Workload;

use super::args::Args;
use crate::exit::Exit;
use crate::measure::load::Load;
use crate::number::{number, seconds, whole};

/// The run that the options ask for.
#[derive(Debug)]
pub struct Choice {
    pub workload: Workload,
    pub locks: Vec<&'static Entry>,
    pub load: Load,
    pub seconds: Option<Duration>,
    pub budget: Duration,
    pub runs: usize,
    pub latency_runs: usize,
    /// In percent of one CPU.
    pub quota: Option<f64>,
}

impl Choice {
    /// Checks everything that depends on nothing of the machine but its number of CPUs.
    pub fn new(args: &Args, workload: Workload, machine: &Machine) -> Result<Self, Exit> {
        let latency_runs = if args.no_latency {
            0
        } else {
            whole("--latency-runs", &args.latency_runs, 0, 10_000)?
        };
        let most_quota = 100.0 * machine.cpus_online as f64;
        let quota =
            |text: &str| number("--quota", text, 1.0, most_quota, "a percentage of one CPU");
        let workload = args.workload.change(workload, "bench")?;
        let locks = args.locks.iter().map(|name| name.trim());
        Ok(Self {
            workload,
            locks: registry::select(workload.family(), locks)
                .map_err(|error| Exit::usage(error.to_string()))?,
            load: Load::new("--threads", &args.threads, &args.overcommit)?,
            seconds: args
                .seconds
                .as_deref()
                .map(|text| seconds("--seconds", text))
                .transpose()?,
            budget: seconds("--budget", &args.budget)?,
            runs: whole("--runs", &args.runs, 1, 10_000)?,
            latency_runs,
            quota: args.quota.as_deref().map(quota).transpose()?,
        })
    }
}
