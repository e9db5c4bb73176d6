//! `overlock bench`

mod args;
mod choice;
mod ending;
mod files;
mod progress;

use std::io;
use std::sync::{Arc, LazyLock};

use overlock_bench::error::Error;
use overlock_bench::interrupt::Interrupt;
use overlock_bench::machine::Machine;
use overlock_bench::measure::{self, Failure, Measurement};
use overlock_bench::plan::Plan;
use overlock_bench::quota::Quota;
use overlock_bench::registry;
use overlock_bench::report::{self, table};
use overlock_bench::settings::Settings;
use overlock_bench::world::native::Native;

pub use args::Args;
use choice::Choice;
use files::Files;
use progress::Progress;

use crate::exit::Exit;

/// Runs the benchmark that `args` describe.
pub fn run(args: &Args) -> Result<(), Exit> {
    if args.list {
        return crate::print(io::stdout().lock(), registry::describe().as_bytes());
    }
    // Everything that can be wrong is found before anything is changed or measured.
    let choice = Choice::new(args, &Machine::probe())?;
    let files = Files::open(args)?;

    let interrupt = Arc::new(Interrupt::default());
    ending::on_interrupt(Arc::clone(&interrupt))?;
    let _quota = choice.quota.map(enter).transpose()?;
    // The quota is part of the machine that the rest of the run sees.
    let machine = Machine::probe();
    let plan = plan(args, &choice, &machine)?;

    let world = Native::new(machine.allowed().to_vec(), interrupt, ending::stuck);
    let mut progress = Progress::new(&plan, args.quiet);
    let measurement = measure::run(&world, &choice.workload, &plan, machine.cpus, &mut progress);
    progress.finish();
    let measurement = measurement.map_err(failed)?;

    let settings = settings(&choice, &plan, &world, &measurement);
    let rows = report::rows(&measurement, &world, &machine, &choice.workload);
    if !args.quiet {
        let text = table::render(&machine, &settings, &rows, progress::width());
        // A file that is the standard output has it for itself.
        if files.use_stdout() {
            crate::print(io::stderr().lock(), text.as_bytes())?;
        } else {
            crate::print(io::stdout().lock(), text.as_bytes())?;
        }
    }
    files.write(&machine, &settings, &rows)
}

/// Checks the options as [`run`] does, on a machine like this one.
pub fn check(args: &Args) -> Result<(), Exit> {
    static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::probe);
    let choice = Choice::new(args, &MACHINE)?;
    choice.load.threads(MACHINE.cpus).map(drop)
}

fn enter(percent: f64) -> Result<ending::InQuota, Exit> {
    Quota::enter(percent)
        .map(ending::InQuota::new)
        .map_err(|error| Exit::usage(format!("--quota: {error}")))
}

fn plan(args: &Args, choice: &Choice, machine: &Machine) -> Result<Plan, Exit> {
    let mut plan = Plan {
        locks: choice.locks.clone(),
        threads: choice.load.threads(machine.cpus)?,
        runs: choice.runs,
        latency_runs: choice.latency_runs,
        round: choice.seconds.unwrap_or_default(),
        stretch: choice.workload.stretch(),
        pin: args.pin,
        stat: args.stat,
        deadline: None,
    };
    plan.locks.extend(choice.workload.limit());
    for entry in &choice.locks {
        let Some(most) = entry.most_threads else {
            continue;
        };
        if plan.threads.iter().all(|&threads| threads > most) {
            return Err(Exit::usage(format!(
                "{} takes at most {most} threads",
                entry.name
            )));
        }
        if plan.threads.iter().any(|&threads| threads > most) && !args.quiet {
            eprintln!(
                "overlock: {} takes at most {most} threads, and has no rows beyond",
                entry.name
            );
        }
    }
    if choice.seconds.is_none() {
        plan.fit(choice.budget);
    }
    Ok(plan)
}

fn settings(choice: &Choice, plan: &Plan, world: &Native, measurement: &Measurement) -> Settings {
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
        quota_percent: choice.quota,
        clock: world.clock().name(),
        elapsed_s: measurement.elapsed.as_secs_f64(),
    }
}

fn failed(failure: Failure) -> Exit {
    match failure.error {
        Error::Interrupted => Exit::Interrupted,
        error @ Error::Spawn { .. } => Exit::usage(error.to_string()),
        error => Exit::Failed(format!(
            "{} with {} threads {error}",
            failure.entry.name, failure.threads
        )),
    }
}

#[cfg(test)]
mod tests {
    use overlock_bench::registry::Family;

    use super::*;

    #[test]
    fn a_lock_that_fails_is_named() {
        let failure = |error| Failure {
            entry: &Family::Exclusive.locks()[0],
            threads: 4,
            error,
        };
        let broken = Error::NotExclusive {
            expected: 5,
            found: 3,
        };
        let Exit::Failed(message) = failed(failure(broken)) else {
            panic!("no failure")
        };
        assert!(
            message.contains(" with 4 threads does not exclude: 5 operations"),
            "{message}"
        );
        assert!(matches!(
            failed(failure(Error::Interrupted)),
            Exit::Interrupted
        ));
    }
}
