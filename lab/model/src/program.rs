//! The command line of the checkers: the program `overlock-model`, and `overlock-lab model`.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};

use crate::report::Report;
use crate::run::{Effort, Engine, SEED, run};

/// Check locks with model checkers: an explorer with weak memory and blocking waits, and shuttle
///
/// Exits with 1 if a check fails, if the explorer has not reached an access, a wait or a kick in a
/// lock's sources, or if a faulty lock was not found out. Exits with 2 if there is nothing to
/// check. All must be reached only if all checkers run all scenarios of a lock (neither --engines
/// nor --scenarios leaves one out) and no check has failed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these locks (see --list).
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    locks: Vec<String>,
    /// Only these scenarios (see --list).
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    scenarios: Vec<String>,
    /// Only these checkers.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    engines: Vec<Engine>,
    /// Show the locks and their scenarios.
    #[arg(long)]
    list: bool,
    /// Show how often each site of the locks' sources was reached.
    #[arg(long)]
    sites: bool,
    /// Go further: hours instead of minutes.
    #[arg(long)]
    long: bool,
    /// Explorer: departures from the plain course, at most.
    #[arg(long)]
    departures: Option<u32>,
    /// Explorer: executions of a scenario for each number of departures, at most.
    #[arg(long)]
    executions: Option<u64>,
    /// Explorer: random walks, and as many PCT schedules, of each scenario.
    #[arg(long)]
    walks: Option<u64>,
    /// Shuttle: schedules of each lock.
    #[arg(long)]
    schedules: Option<usize>,
    /// The start of the random numbers.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Checks that run at a time [default: one for each CPU].
    #[arg(long)]
    jobs: Option<usize>,
    /// Stop at the first failure.
    #[arg(long)]
    fail_fast: bool,
    /// Write all results there, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Checks what `args` say, and prints the results. Returns whether all is well.
///
/// # Errors
///
/// A message, where the options make no sense or a file cannot be written.
pub fn check(args: &Args) -> Result<bool, String> {
    let locks = Engine::Explore.locks();
    let known = |name: &String| locks.iter().any(|lock| lock.name == name);
    if let Some(name) = args.locks.iter().find(|name| !known(name)) {
        return Err(format!("there is no lock `{name}` (see --list)"));
    }
    let wanted =
        |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
    let has = |name: &String| {
        let mut all = locks.iter().flat_map(|lock| &lock.scenarios);
        all.any(|scenario| scenario.name == *name)
    };
    if let Some(name) = args.scenarios.iter().find(|name| !has(name)) {
        return Err(format!("there is no scenario `{name}` (see --list)"));
    }
    if args.list {
        for lock in locks {
            let names: Vec<_> = lock
                .scenarios
                .iter()
                .map(|scenario| &*scenario.name)
                .collect();
            println!("{}: {}", lock.name, names.join(", "));
        }
        return Ok(true);
    }
    let base = if args.long {
        Effort::LONG
    } else {
        Effort::QUICK
    };
    let effort = Effort {
        departures: args.departures.unwrap_or(base.departures),
        executions: args.executions.unwrap_or(base.executions),
        walks: args.walks.unwrap_or(base.walks),
        schedules: args.schedules.unwrap_or(base.schedules),
    };
    let mut engines = Engine::ALL.to_vec();
    engines.retain(|&engine| args.engines.is_empty() || args.engines.contains(&engine));
    let jobs = args
        .jobs
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let bar = ProgressBar::no_length().with_style(
        ProgressStyle::with_template("{elapsed_precise} {wide_bar} {pos}/{len} {msg}")
            .map_err(|error| error.to_string())?,
    );
    let failed = AtomicUsize::new(0);
    let faulty = Engine::Explore.locks().into_iter();
    let faulty = faulty.filter(|lock| !lock.broken_for.is_empty());
    let faulty: Vec<_> = faulty.map(|lock| lock.name).collect();
    let outcomes = run(
        &engines,
        |lock, scenario| wanted(&args.locks, lock.name) && wanted(&args.scenarios, &scenario.name),
        effort,
        args.seed,
        jobs,
        |checks| bar.set_length(checks as u64),
        |outcome| {
            bar.inc(1);
            bar.set_message(format!("{} {}", outcome.lock, outcome.scenario));
            if outcome.failure.is_some() && !faulty.contains(&outcome.lock) {
                failed.fetch_add(1, Ordering::Relaxed);
            }
            !(args.fail_fast && failed.load(Ordering::Relaxed) > 0)
        },
    );
    bar.finish_and_clear();
    if outcomes.is_empty() {
        return Err("there is nothing to check: no such lock has such a scenario that such a checker runs (see --list)".to_owned());
    }
    let whole = args.scenarios.is_empty()
        && engines.len() == Engine::ALL.len()
        && failed.load(Ordering::Relaxed) == 0;
    let report = Report::new(effort, args.seed, outcomes, whole);
    print!("{}", report.text());
    if args.sites {
        for row in &report.locks {
            println!("\n{}", row.lock);
            for site in &row.sites {
                let mark = match site.unit_tested {
                    _ if site.lacking => "(not this lock's)".to_owned(),
                    Some(test) => format!("(in the unit test {test})"),
                    None => String::new(),
                };
                println!("{:>14}  {site} {mark}", site.times);
            }
        }
    }
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
        fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(report.is_good())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn check_with(options: &[&str]) -> Result<bool, String> {
        check(&Line::parse_from([&["overlock-model"], options].concat()).args)
    }

    #[test]
    fn scenarios_of_different_locks_are_known_in_any_order() {
        for names in [
            "kernel_mutex-one,visible",
            "visible,kernel_mutex-one",
            "visible,visible",
        ] {
            assert_eq!(check_with(&["--list", "--scenarios", names]), Ok(true));
        }
        let known_and_unknown = check_with(&["--list", "--scenarios", "visible,besides"]);
        assert_eq!(
            known_and_unknown,
            Err("there is no scenario `besides` (see --list)".to_owned())
        );
    }

    #[test]
    fn one_checker_named_three_times_is_not_both() {
        let thrice = [
            "--locks",
            "overlock_rw",
            "--engines",
            "explore,explore,explore",
        ];
        let little = ["--departures", "0", "--executions", "1", "--walks", "1"];
        assert_eq!(check_with(&[&thrice[..], &little].concat()), Ok(true));
    }

    #[test]
    fn a_run_that_checks_nothing_is_an_error() {
        let end = check_with(&["--locks", "kernel_mutex", "--scenarios", "visible"]);
        assert!(
            end.as_ref().is_err_and(|text| text.contains("nothing")),
            "{end:?}"
        );
    }
}
