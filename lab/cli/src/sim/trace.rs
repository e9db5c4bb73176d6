//! `overlock-lab sim trace`

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use overlock_bench::interrupt::Interrupt;
use overlock_bench::plan::Plan;
use overlock_bench::registry::Entry;
use overlock_bench::report::timeline;
use overlock_bench::workload::Workload;

use super::machine::{self, MOST_VCPUS, Place};
use super::run::locks;
use super::workload::{self, Hints};
use crate::exit::Exit;
use crate::files::{Promised, name};
use crate::measure::{self, ending};
use crate::number::{simulated_seconds, whole};

/// Write a timeline of one lock on a simulated machine, for ui.perfetto.dev or chrome://tracing
///
/// It shows for each vCPU when it holds a lock, waits, is preempted or sleeps, and who kicked it;
/// and for each CPU which vCPU it runs.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct Args {
    #[command(flatten)]
    workload: workload::Args,

    #[command(flatten)]
    machine: machine::Args,

    /// The lock, by name; --list of `sim` shows them
    #[arg(
        long,
        value_name = "NAME",
        default_value = "hybrid",
        value_parser = Hints(workload::single),
        hide_possible_values = true
    )]
    lock: String,

    /// The number of vCPUs [default: 2 for each CPU of the machine]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MOST_VCPUS.0 as u64))]
    vcpus: Option<usize>,

    /// Length of the run, in simulated time; for `build`, of a build that never waits
    #[arg(long, value_name = "S", value_parser = simulated_seconds, default_value = "0.002")]
    seconds: Duration,

    /// The file; `-` is the standard output
    #[arg(long, value_name = "FILE", default_value = "trace.json")]
    out: PathBuf,

    /// Say nothing
    #[arg(long, short)]
    quiet: bool,
}

struct Choice {
    place: Place,
    workload: Workload,
    lock: &'static Entry,
    plan: Plan,
}

impl Choice {
    fn new(args: &Args) -> Result<Self, Exit> {
        let place = args.machine.place()?;
        let workload = args.workload.workload("sim trace")?;
        let lock = locks(workload.family(), std::slice::from_ref(&args.lock))?;
        let [lock] = lock[..] else {
            return Err(Exit::usage(format!(
                "--lock {}: a timeline is of one lock",
                args.lock
            )));
        };
        let plan = Plan {
            locks: vec![lock],
            threads: vec![args.vcpus.unwrap_or(2 * place.machine.cpus())],
            runs: 1,
            latency_runs: 0,
            round: args.seconds,
            stretch: workload.stretch(),
            pin: false,
            stat: false,
            deadline: None,
        };
        Ok(Self {
            place,
            workload,
            lock,
            plan,
        })
    }
}

/// Runs the simulation that `args` describe, and writes its timeline.
pub fn run(args: &Args) -> Result<(), Exit> {
    let Choice {
        place,
        workload,
        lock,
        plan,
    } = &Choice::new(args)?;
    let file = Promised::open("--out", &args.out)?;
    measure::check_limits(&plan.locks, plan, args.quiet)?;

    let interrupt = Arc::new(Interrupt::default());
    ending::on_interrupt(Arc::clone(&interrupt))?;
    let world = place.world(interrupt).traced();
    let measurement = measure::measured(&world, workload, plan, place.cpus(), args.quiet)?;
    let cell = &measurement.cells[0];
    let marks = &cell.reports[0].trace;

    let about = timeline::About {
        workload: workload.name(),
        lock: lock.name,
        simulation: place.settings(),
        vcpus: cell.threads,
        cpus: place.machine.cpus(),
    };
    file.write(|out| timeline::write(out, &about, marks))?;
    if !args.quiet {
        crate::tell!(
            "overlock-lab: {} has {} marks of {}, {} vCPUs; ui.perfetto.dev shows them",
            name(&args.out),
            marks.len(),
            lock.name,
            cell.threads
        );
    }
    Ok(())
}

/// Checks the options as [`run`] does.
pub fn check(args: &Args) -> Result<(), Exit> {
    Choice::new(args).map(drop)
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab sim trace --lock hybrid --vcpus 72 --out hybrid.json
  overlock-lab sim trace semop --arrays 1 --lock kernel_mutex --machine e5-2620v4 --seconds 0.0005

Exit codes: 0 done, 1 a lock failed or a result could not be written, 2 bad use, 130 interrupted.";
