//! `overlock-lab bench idle`

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use overlock_bench::error::Error;
use overlock_bench::idle::object::{KINDS, OBJECTS, Object};
use overlock_bench::idle::report::{Report, Settings, VERSION};
use overlock_bench::idle::{Plan, measure};
use overlock_bench::interrupt::Interrupt;
use overlock_bench::machine::{Machine, most_threads};

use crate::exit::Exit;
use crate::files::open;
use crate::measure::ending;
use crate::measure::progress::Progress;
use crate::number::{seconds, whole};
use crate::terminal::{print_beside, width};

/// Measure what threads cost that are blocked for long: CPU time, switches, the owner's time
///
/// So many threads wait for something that its owner does not give for some seconds, while it
/// works. They had better cost nothing. Then it lets them go, one after the other or all at once.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct Args {
    /// Threads that wait
    #[arg(long, value_name = "N", default_value = "1000")]
    threads: String,

    /// For how long they are watched
    #[arg(long, value_name = "S", default_value = "10")]
    seconds: String,

    /// For how long before that they may come to rest
    #[arg(long, value_name = "S", default_value = "1")]
    settle: String,

    /// The kinds of objects: mutex, read, write, condvar, semaphore, barrier [default: each of
    /// them]
    #[arg(long, value_delimiter = ',', value_name = "WHAT,…")]
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
    let json = open("--json", args.json.as_deref())?;
    let use_stdout = args
        .json
        .as_deref()
        .is_some_and(|path| path.as_os_str() == "-");
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
            print_beside(use_stdout, &text)?;
        }
        if let Some(file) = json {
            file.write(|out| report.json(out))?;
        }
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
    let (most, _) = most_threads();
    let settle = match args.settle.trim() {
        "0" => Duration::ZERO,
        text => seconds("--settle", text)?,
    };
    Ok(Plan {
        objects: objects(&args.what, &args.locks)?,
        threads: whole("--threads", &args.threads, 1, most)?,
        watched: seconds("--seconds", &args.seconds)?,
        settle,
    })
}

fn objects(what: &[String], locks: &[String]) -> Result<Vec<&'static Object>, Exit> {
    let (what, locks) = (trimmed(what), trimmed(locks));
    if let Some(word) = what.iter().find(|word| !KINDS.contains(word)) {
        let all = KINDS.join(", ");
        return Err(Exit::usage(format!(
            "unknown '{word}' in --what; there are {all}"
        )));
    }
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
        .filter(|object| what.is_empty() || what.contains(&object.what))
        .filter(|object| locks.is_empty() || locks.iter().any(|word| is(object, word)))
        .collect();
    if chosen.is_empty() {
        return Err(Exit::usage("no lock of --locks is one of --what"));
    }
    Ok(chosen)
}

fn trimmed(words: &[String]) -> Vec<&str> {
    words.iter().map(|word| word.trim()).collect()
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab bench idle                                everything, 1,000 threads, 10 s each
  overlock-lab bench idle --what mutex --threads 100 --seconds 2
  overlock-lab bench idle --locks ours --json idle.json

Exit codes: 0 done, 1 a lock failed or a result could not be written, 2 bad use, 130 interrupted; what was measured is reported.";
