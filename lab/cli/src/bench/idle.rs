//! `overlock-lab bench idle`

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use overlock_bench::error::Error;
use overlock_bench::idle::object::{KINDS, OBJECTS, Object};
use overlock_bench::idle::report::{Report, Settings, VERSION};
use overlock_bench::idle::{Plan, measure};
use overlock_bench::interrupt::Interrupt;
use overlock_bench::machine::Machine;
use overlock_report::json;

use crate::exit::Exit;
use crate::files::Files;
use crate::measure::ending;
use crate::measure::load::check_threads;
use crate::measure::progress::Progress;
use crate::number::{ANY, seconds, seconds_or_none, whole};
use crate::terminal::{print_beside, width};

/// Measure what threads cost that are blocked for long: CPU time, switches, the owner's time
///
/// So many threads wait for something that its owner does not give for some seconds, while it
/// works. They had better cost nothing. Then it lets them go, one after the other or all at once.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct Args {
    /// Threads that wait
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, ANY), default_value = "1000")]
    threads: usize,

    /// For how long they are watched
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "10")]
    seconds: Duration,

    /// For how long before that they may come to rest
    #[arg(long, value_name = "S", value_parser = seconds_or_none, default_value = "1")]
    settle: Duration,

    /// The kinds of objects [default: each of them]
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "WHAT,…",
        value_parser = PossibleValuesParser::new(KINDS)
    )]
    what: Vec<String>,

    /// The locks, by name, or `ours`, `peers` [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    locks: Vec<String>,

    /// Write everything as JSON; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Print neither progress nor tables
    #[arg(long, short)]
    quiet: bool,
}

/// Measures, and reports.
pub fn run(args: &Args) -> Result<(), Exit> {
    let plan = plan(args)?;
    let files = Files::open([("--json", &args.json)])?;
    let interrupt = Arc::new(Interrupt::default());
    ending::on_interrupt(Arc::clone(&interrupt))?;
    let count = u32::try_from(plan.objects.len()).unwrap_or(u32::MAX);
    let progress = Progress::timed(plan.each() * count, args.quiet);
    let (mut rows, mut end) = (Vec::new(), Ok(()));
    for (done, object) in (0..).zip(&plan.objects) {
        progress.at_time(
            plan.each() * done,
            &format!("{} {}", object.what, object.lock),
        );
        match measure(object, &plan, &interrupt, ending::stuck) {
            Ok(row) => rows.push(row),
            Err(error) => {
                end = Err(error);
                break;
            }
        }
    }
    progress.finish();

    if !rows.is_empty() {
        let report = Report {
            version: VERSION,
            machine: Machine::probe(),
            settings: Settings {
                threads: plan.threads,
                seconds: plan.watched.as_secs_f64(),
                settle_s: plan.settle.as_secs_f64(),
                end: match end {
                    Ok(()) => "complete",
                    Err(Error::Interrupted) => "interrupted",
                    Err(_) => "failed",
                },
            },
            rows,
        };
        if !args.quiet {
            let text = report.render(width());
            print_beside(files.use_stdout(), &text)?;
        }
        files.write([&|out| json::write(out, &report)])?;
    }
    end.map_err(|error| match error {
        Error::Interrupted => Exit::Interrupted,
        error @ Error::Spawn { .. } => Exit::usage(error.to_string()),
        error => Exit::Failed(error.to_string()),
    })
}

/// Checks the options as [`run`] does.
pub fn check(args: &Args) -> Result<(), Exit> {
    plan(args).map(drop)
}

fn plan(args: &Args) -> Result<Plan, Exit> {
    check_threads(args.threads)?;
    Ok(Plan {
        objects: objects(&args.what, &args.locks)?,
        threads: args.threads,
        watched: args.seconds,
        settle: args.settle,
    })
}

fn objects(what: &[String], locks: &[String]) -> Result<Vec<&'static Object>, Exit> {
    let locks: Vec<&str> = locks.iter().map(|word| word.trim()).collect();
    let is = |object: &Object, word: &str| match word {
        "ours" => object.ours,
        "peers" => !object.ours,
        name => object.lock == name,
    };
    let unknown = |word: &&&str| !OBJECTS.iter().any(|object| is(object, word));
    if let Some(word) = locks.iter().find(unknown) {
        let mut names: Vec<&str> = OBJECTS.iter().map(|object| object.lock).collect();
        names.sort_unstable();
        names.dedup();
        return Err(Exit::usage(format!(
            "unknown lock '{word}'; the locks are ours, peers, {}",
            names.join(", ")
        )));
    }
    let chosen: Vec<&'static Object> = OBJECTS
        .iter()
        .filter(|object| what.is_empty() || what.iter().any(|what| what == object.what))
        .filter(|object| locks.is_empty() || locks.iter().any(|word| is(object, word)))
        .collect();
    if chosen.is_empty() {
        return Err(Exit::usage("no lock of --locks is one of --what"));
    }
    Ok(chosen)
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab bench idle                                everything, 1,000 threads, 10 s each
  overlock-lab bench idle --what mutex --threads 100 --seconds 2
  overlock-lab bench idle --locks ours --json idle.json

Exit codes: 0 done, 1 a lock failed or a result could not be written, 2 bad use, 130 interrupted; what was measured is reported.";
