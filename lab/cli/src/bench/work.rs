//! `overlock-lab bench micro` and its kin: one workload, every lock, every number of threads.

mod args;

use std::sync::{Arc, LazyLock};

use overlock_bench::interrupt::Interrupt;
use overlock_bench::machine::{Machine, most_threads};
use overlock_bench::measure::Measurement;
use overlock_bench::plan::Plan;
use overlock_bench::quota::InQuota;
use overlock_bench::registry::{self, Entry};
use overlock_bench::report;
use overlock_bench::settings::Settings;
use overlock_bench::workload::Workload;
use overlock_bench::world::native::{CHECKED, Native};

pub use args::Args;

use crate::exit::Exit;
use crate::measure::load::Load;
use crate::measure::{self, ending};

/// The part of the options that depends on the locks there are.
#[derive(Debug)]
struct Choice {
    workload: Workload,
    locks: Vec<&'static Entry>,
    load: Load,
}

impl Choice {
    fn new(args: &Args, workload: Workload) -> Result<Self, Exit> {
        let workload = args.workload.change(workload, "bench")?;
        let locks = args.locks.iter().map(|name| name.trim());
        Ok(Self {
            workload,
            locks: registry::select(workload.family(), locks)
                .map_err(|error| Exit::usage(error.to_string()))?,
            load: Load::new(&args.threads, &args.overcommit),
        })
    }
}

/// Runs the benchmark that `args` describe.
pub fn run(args: &Args, workload: Workload) -> Result<(), Exit> {
    // Everything that can be wrong is found before anything is changed or measured.
    let choice = Choice::new(args, workload)?;
    let files = args.output.open()?;

    let interrupt = Arc::new(Interrupt::default());
    ending::on_interrupt(Arc::clone(&interrupt))?;
    let _quota = args.quota.map(enter).transpose()?;
    // The quota is part of the machine that the rest of the run sees.
    let machine = Machine::probe();
    let plan = plan(args, &choice, &machine)?;
    if CHECKED && !args.output.quiet {
        crate::tell!(
            "overlock-lab: built with checks for misuse, which cost time; cargo build --release -p overlock-lab builds it without"
        );
    }

    let world = Native::new(machine.allowed().to_vec(), interrupt, ending::stuck);
    let quiet = args.output.quiet;
    let measurement = measure::measured(&world, &choice.workload, &plan, machine.cpus, quiet)?;

    let settings = settings(args, &choice, &plan, &world, &measurement);
    let rows = report::rows(&measurement, &world, &machine, &choice.workload);
    measure::show(files, &machine, &settings, &rows, quiet)
}

/// Checks the options as [`run`] does, on a machine like this one.
pub fn check(args: &Args, workload: Workload) -> Result<(), Exit> {
    static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::probe);
    let choice = Choice::new(args, workload)?;
    choice.load.threads(MACHINE.cpus, most_threads()).map(drop)
}

fn enter(percent: f64) -> Result<InQuota, Exit> {
    InQuota::enter(percent).map_err(|error| Exit::usage(format!("--quota: {error}")))
}

fn plan(args: &Args, choice: &Choice, machine: &Machine) -> Result<Plan, Exit> {
    let mut plan = Plan {
        locks: choice.locks.clone(),
        threads: choice.load.threads(machine.cpus, most_threads())?,
        runs: args.runs,
        latency_runs: if args.no_latency {
            0
        } else {
            args.latency_runs
        },
        round: args.seconds.unwrap_or_default(),
        stretch: choice.workload.stretch(),
        pin: args.pin,
        stat: args.stat,
        deadline: None,
    };
    plan.locks.extend(choice.workload.limit());
    measure::check_limits(&choice.locks, &plan, args.output.quiet)?;
    if args.seconds.is_none() {
        plan.fit(args.budget);
    }
    Ok(plan)
}

fn settings(
    args: &Args,
    choice: &Choice,
    plan: &Plan,
    world: &Native,
    measurement: &Measurement,
) -> Settings {
    Settings {
        workload: choice.workload.name(),
        locks: choice.locks.iter().map(|entry| entry.name).collect(),
        rivals: choice.workload.family().rivals(),
        threads: plan.threads.clone(),
        parameters: choice.workload.parameters(),
        seconds: plan.round.as_secs_f64(),
        runs: measurement.rounds(),
        latency_runs: plan.latency_runs,
        pin: plan.pin,
        quota_percent: args.quota,
        clock: world.clock().name(),
        elapsed_s: Some(measurement.elapsed.as_secs_f64()),
        simulation: None,
    }
}
