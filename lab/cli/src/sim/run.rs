//! `overlock-lab sim` itself: locks, vCPUs, tables.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use overlock_bench::interrupt::Interrupt;
use overlock_bench::plan::Plan;
use overlock_bench::registry::{self, Entry, Family};
use overlock_bench::report;
use overlock_bench::settings::Settings;
use overlock_bench::workload::Workload;
use overlock_bench::world::sim::Simulated;

use super::machine::{self, MOST_VCPUS, Place};
use super::workload::{self, Hints};
use crate::exit::Exit;
use crate::measure::load::{Load, count, level};
use crate::measure::results;
use crate::measure::{self, ending};
use crate::number::{simulated_seconds, warm_up, whole};
use crate::terminal::print;

/// The options.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    #[command(flatten)]
    pub workload: workload::Args,

    #[command(flatten)]
    pub machine: machine::Args,

    /// The locks, by name, or `all`, `ours`, `models`, `default`: those that can be simulated,
    /// which --list shows
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_value = "default",
        value_parser = Hints(workload::locks),
        hide_possible_values = true
    )]
    pub locks: Vec<String>,

    /// List the machines, the hosts, and the locks with the workloads that they are for, and exit
    #[arg(long)]
    pub list: bool,

    /// Print a machine, a host or a workload, by name or by file, as a file in TOML with all of its
    /// keys and what they are, and exit
    #[arg(long, value_name = "NAME", conflicts_with = "list")]
    pub show: Option<String>,

    /// Numbers of vCPUs
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        value_parser = count,
        conflicts_with = "overcommit"
    )]
    pub vcpus: Vec<usize>,

    /// vCPUs for each CPU of the machine
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "Nx,…",
        value_parser = level,
        default_value = "1x,1.5x,2x,3x"
    )]
    pub overcommit: Vec<f64>,

    /// The measured length of each round, in simulated time, and more where its windows disagree;
    /// for `build`, the length of a build that never waits
    #[arg(long, value_name = "S", value_parser = simulated_seconds, default_value = "0.05")]
    pub seconds: Duration,

    /// Discard so much simulated time before each round, and at most three times as much more,
    /// until each vCPU has had a CPU twice [default: what the host's scheduler takes for that]
    #[arg(long, value_name = "S", value_parser = warm_up)]
    pub warm_up: Option<Duration>,

    /// Rounds for each lock and number of vCPUs, each with another seed
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 10_000), default_value = "1")]
    pub runs: usize,

    /// Rounds that time each wait, apart from the others
    #[arg(long, value_name = "N", value_parser = whole::<usize>(0, 10_000), default_value = "0")]
    pub latency_runs: usize,

    #[command(flatten)]
    pub output: results::Args,
}

/// The locks of a family that `words` name and that run on a simulated machine.
pub fn locks(family: Family, words: &[String]) -> Result<Vec<&'static Entry>, Exit> {
    registry::select_in::<Simulated>(family, words.iter().map(String::as_str))
        .map_err(|error| Exit::usage(error.to_string()))
}

/// The simulation that the options ask for.
struct Choice {
    place: Place,
    workload: Workload,
    locks: Vec<&'static Entry>,
    plan: Plan,
}

impl Choice {
    fn new(args: &Args) -> Result<Self, Exit> {
        let place = args.machine.place()?;
        let workload = args.workload.workload("sim")?;
        let locks = locks(workload.family(), &args.locks)?;
        let load = Load::new(&args.vcpus, &args.overcommit);
        let mut plan = Plan {
            locks: locks.clone(),
            threads: load.threads(place.cpus(), MOST_VCPUS)?,
            runs: args.runs,
            latency_runs: args.latency_runs,
            round: args.seconds,
            stretch: workload.stretch(),
            pin: false,
            stat: false,
            deadline: None,
        };
        plan.locks.extend(workload.limit());
        Ok(Self {
            place,
            workload,
            locks,
            plan,
        })
    }

    fn settings(&self) -> Settings {
        Settings {
            workload: self.workload.name(),
            locks: self.locks.iter().map(|entry| entry.name).collect(),
            rivals: &[],
            threads: self.plan.threads.clone(),
            parameters: self.workload.parameters(),
            seconds: self.plan.round.as_secs_f64(),
            runs: self.plan.runs,
            latency_runs: self.plan.latency_runs,
            pin: false,
            quota_percent: None,
            clock: "simulated",
            // The files of two runs with the same options are the same.
            elapsed_s: None,
            simulation: Some(self.place.settings()),
        }
    }
}

/// Runs the simulations that `args` describe.
pub fn run(args: &Args) -> Result<(), Exit> {
    if args.list {
        let text = machine::describe() + &registry::describe::<Simulated>();
        return print(io::stdout().lock(), text.as_bytes());
    }
    if let Some(name) = &args.show {
        let text = machine::show(name)?;
        return print(io::stdout().lock(), text.as_bytes());
    }
    let choice = Choice::new(args)?;
    let files = args.output.open()?;
    let quiet = args.output.quiet;
    let Choice {
        place,
        workload,
        locks,
        plan,
    } = &choice;
    measure::check_limits(locks, plan, quiet)?;

    let interrupt = Arc::new(Interrupt::default());
    ending::on_interrupt(Arc::clone(&interrupt))?;
    let mut world = place.world(interrupt);
    if let Some(warm_up) = args.warm_up {
        world = world.warmed_up(warm_up);
    }
    let measurement = measure::measured(&world, workload, plan, place.cpus(), quiet)?;

    let machine = place.shown();
    let rows = report::rows(&measurement, &world, &machine, workload);
    measure::show(files, &machine, &choice.settings(), &rows, quiet)
}

/// Checks the options as [`run`] does.
pub fn check(args: &Args) -> Result<(), Exit> {
    Choice::new(args).map(drop)
}
