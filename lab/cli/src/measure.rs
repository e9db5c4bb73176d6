//! Common parts of `overlock-lab bench` and `overlock-lab sim`: workloads, numbers of threads,
//! progress, results, ways to end.

pub mod ending;
pub mod load;
pub mod progress;
pub mod results;
pub mod workload;

use overlock_bench::error::Error;
use overlock_bench::machine::Machine;
use overlock_bench::measure::{Failure, Measurement, run};
use overlock_bench::plan::Plan;
use overlock_bench::registry::{Entry, Listed};
use overlock_bench::report::{Row, table};
use overlock_bench::settings::Settings;
use overlock_bench::workload::Workload;

use self::progress::Progress;
use crate::exit::Exit;
use crate::files::Files;
use crate::terminal::{print_beside, width};

/// Refuses locks that take fewer threads than any number of the plan. Those that take fewer than
/// some of them have no rows there, which a message says.
pub fn check_limits(locks: &[&'static Entry], plan: &Plan, quiet: bool) -> Result<(), Exit> {
    for entry in locks {
        let Some(most) = entry.most_threads else {
            continue;
        };
        if plan.threads.iter().all(|&threads| threads > most) {
            return Err(Exit::usage(format!(
                "{} takes at most {most} threads",
                entry.name
            )));
        }
        if plan.threads.iter().any(|&threads| threads > most) && !quiet {
            crate::tell!(
                "overlock-lab: {} takes at most {most} threads, and has no rows beyond",
                entry.name
            );
        }
    }
    Ok(())
}

/// Runs the plan, and shows how far it is.
pub fn measured<W: Listed>(
    world: &W,
    workload: &Workload,
    plan: &Plan,
    cpus: f64,
    quiet: bool,
) -> Result<Measurement, Exit> {
    let progress = Progress::new(plan, quiet);
    let measurement = run(world, workload, plan, cpus, |index, entry, threads| {
        progress.begin(index, entry, threads);
    });
    progress.finish();
    measurement.map_err(failed)
}

/// Prints the tables and writes the files.
pub fn show(
    files: Files<3>,
    machine: &Machine,
    settings: &Settings,
    rows: &[Row],
    quiet: bool,
) -> Result<(), Exit> {
    if !quiet {
        let text = table::render(machine, settings, rows, width());
        print_beside(files.use_stdout(), &text)?;
    }
    results::write(files, machine, settings, rows)
}

/// How the program ends after a round that failed.
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
