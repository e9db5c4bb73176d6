//! `overlock-mutants`: breaks one line of the locks after the other, and shows that a check notices
//! each.
//!
//! The lines are in `lab/mutants/lists/*/*.toml`: those that prevent a known race, or carry an
//! ordering that is needed. Each is changed in a copy of the sources, the checkers run on the locks
//! that the file names, and one of them must fail: the explorer for a short time first, then the
//! unit tests of overlock-core and overlock-family, then the explorer for a longer time. A mutant
//! that survives fails the run; so does a check that fails without it.

mod check;
mod list;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use crate::check::{Copy, Sound, Verdict};
use crate::list::Task;

/// Breaks one line of the locks after the other, and shows that a check notices each.
///
/// Exits with 1 where a mutant survives, and with 2 where one does not fit the sources or does not
/// compile.
#[derive(Debug, Parser)]
#[command(name = "overlock-mutants", version)]
struct Args {
    /// Only the mutants of these files (`queued` for lists/spin/queued.toml).
    #[arg(long, value_delimiter = ',', value_name = "FILES")]
    only: Vec<String>,
    /// Only the mutants with these names.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    names: Vec<String>,
    /// Show the mutants.
    #[arg(long)]
    list: bool,
    /// Leave the long search out, which takes minutes for each mutant that survives the rest.
    #[arg(long)]
    quick: bool,
    /// Mutants that are tried at a time, each in a copy of its own [default: one for each CPU].
    #[arg(long)]
    jobs: Option<usize>,
    /// Write the table there instead, as a page of Markdown.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Write the results there, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The project's root.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn show(tasks: &[Task], mut out: impl Write) -> io::Result<()> {
    for Task { group, mutant, .. } in tasks {
        writeln!(out, "{group:<22} {:<60} {}", mutant.name, mutant.breaks)?;
    }
    Ok(())
}

fn run(args: &Args) -> Result<ExitCode, String> {
    let tasks = list::read(&args.root, &args.only, &args.names)?;
    if args.list {
        return match show(&tasks, io::stdout().lock()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(format!("cannot print: {error}"))
            }
            _ => Ok(ExitCode::SUCCESS),
        };
    }
    let jobs = args
        .jobs
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let bar = ProgressBar::new(tasks.len() as u64).with_style(
        ProgressStyle::with_template("{elapsed_precise} {wide_bar} {pos}/{len} {msg}")
            .map_err(|error| error.to_string())?,
    );
    let next = AtomicUsize::new(0);
    let (verdicts, sound) = (Mutex::new(BTreeMap::new()), Sound::default());
    let result: Result<(), String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1))
            .map(|job| {
                let (tasks, next, verdicts, bar) = (&tasks, &next, &verdicts, &bar);
                let sound = &sound;
                scope.spawn(move || -> Result<(), String> {
                    let copy = Copy::new(&args.root, job, !args.quick)?;
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(task) = tasks.get(index) else {
                            return Ok(());
                        };
                        let verdict = copy.try_mutant(task, sound);
                        bar.inc(1);
                        let end = verdict.error.clone().or_else(|| verdict.caught_by.clone());
                        let line = format!(
                            "{} {}: {}",
                            verdict.group,
                            verdict.name,
                            end.as_deref().unwrap_or("SURVIVES")
                        );
                        bar.suspend(|| eprintln!("{line}"));
                        lock(verdicts).insert(index, verdict);
                    }
                })
            })
            .collect();
        for worker in workers {
            worker
                .join()
                .map_err(|_| "a worker panicked".to_owned())??;
        }
        Ok(())
    });
    bar.finish_and_clear();
    result?;
    let verdicts: Vec<_> = lock(&verdicts).values().cloned().collect();
    let table = table(&verdicts);
    if let Some(path) = &args.table {
        write(path, &(page(&verdicts) + &table))?;
    } else {
        print!("{table}");
    }
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&verdicts).map_err(|error| error.to_string())?;
        write(path, &(text + "\n"))?;
    }
    let errors = verdicts
        .iter()
        .filter(|verdict| verdict.error.is_some())
        .count();
    let alive = verdicts
        .iter()
        .filter(|verdict| verdict.error.is_none() && verdict.caught_by.is_none())
        .count();
    println!(
        "{} mutants, {alive} survive, {errors} could not be tried",
        verdicts.len()
    );
    Ok(match (alive, errors) {
        (0, 0) => ExitCode::SUCCESS,
        (_, 0) => ExitCode::from(1),
        _ => ExitCode::from(2),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The text before the table if it is a page.
fn page(verdicts: &[Verdict]) -> String {
    format!(
        "# Mutants\n\n\
         For people who ask whether the checks would notice a broken lock. The page lists {} ways to break a\n\
         line of the locks, one at a time, and the check that notices each: a barrier left out, two stores\n\
         swapped, an ordering weakened, a recheck forgotten.\n\n\
         Each line prevents a race or a hang. The check is the explorer (with the lock, the scenario and the\n\
         failure) or a unit test (its path). [mutants/](../lab/mutants/lists) has the changed lines, and\n\
         [orderings.md](orderings.md) the pairs of orderings by the names used here. This command writes the\n\
         page:\n\n\
         ```sh\n\
         cargo run -p overlock-mutants -- --table results/mutants.md\n\
         ```\n\n",
        verdicts.len()
    )
}

fn table(verdicts: &[Verdict]) -> String {
    let mut text = String::from("| lock | mutant | breaks | caught by |\n|---|---|---|---|\n");
    for verdict in verdicts {
        let end = match (&verdict.error, &verdict.caught_by) {
            (Some(error), _) => format!("**not tried**: {error}"),
            (None, Some(caught_by)) => caught_by.clone(),
            (None, None) => "**survives**".to_owned(),
        };
        let cells = [&verdict.group, &verdict.name, &verdict.breaks, &end]
            .map(|cell| cell.replace('|', "\\|"));
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}
