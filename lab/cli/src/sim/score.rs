//! `overlock-lab sim score`

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use overlock_bench::error::Error;
use overlock_bench::interrupt::Interrupt;
use overlock_report::json;
use overlock_study::score::text::{Form, figures, summary};
use overlock_study::score::{Figure, Folder, Half, Options, Score, simulate_all};

use super::sweep::{MOST_JOBS, cpus};
use crate::exit::Exit;
use crate::files::Files;
use crate::measure::ending;
use crate::measure::progress::Progress;
use crate::number::{ANY, simulated_seconds, whole};
use crate::terminal::print;

/// Hold simulations against published measurements: orders, errors, the skill over a null model
///
/// The measurements are data, of which one half may be used to choose constants; the other is only
/// scored. docs/evidence/simulator.md has the score, and how it is made.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct Args {
    /// Groups of figures, by name [default: all]
    #[arg(value_name = "GROUP")]
    groups: Vec<String>,

    /// A folder of measurements in place of the program's own: files in CSV, with files of machines
    #[arg(long, value_name = "DIR")]
    data: Vec<PathBuf>,

    /// Only the groups that may be used to choose constants, or only the others
    #[arg(long, value_parser = ["calibrate", "score"])]
    half: Option<String>,

    /// Repeat each simulation with constants a tenth smaller and larger, and print a range where
    /// that changes a lock's regime: seven times as long
    #[arg(long)]
    vary: bool,

    /// List the groups and their documents, and exit
    #[arg(long)]
    list: bool,

    /// Length of each simulation, in simulated time; of a build ten times that
    #[arg(long, value_name = "S", value_parser = simulated_seconds, default_value = "0.05")]
    seconds: Duration,

    /// Seed of the random choices: another number is another run
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0, ANY), default_value = "1")]
    seed: u64,

    /// Simulations at a time [default: as many as this machine has CPUs]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MOST_JOBS))]
    jobs: Option<usize>,

    /// Write everything as JSON; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Print tables in Markdown, as results/score.md has them
    #[arg(long)]
    markdown: bool,

    /// Print neither progress nor tables
    #[arg(long, short)]
    quiet: bool,
}

/// The figures that `args` ask for.
fn chosen(args: &Args) -> Result<Vec<Figure>, Exit> {
    let folders: Vec<Folder> = match args.data.as_slice() {
        [] => vec![Folder::Published],
        paths => paths.iter().cloned().map(Folder::At).collect(),
    };
    let mut all = Vec::new();
    for folder in folders {
        let figures = folder.figures();
        all.extend(figures.map_err(|error| Exit::usage(error.to_string()))?);
    }
    let names = groups(&all);
    if let Some(unknown) = args.groups.iter().find(|name| !names.contains(name)) {
        return Err(Exit::usage(format!(
            "unknown group '{unknown}'; the groups are {}",
            names
                .iter()
                .map(|name| name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        )));
    }
    let half = args.half.as_deref().map(|half| match half {
        "calibrate" => Half::Calibrate,
        _ => Half::Score,
    });
    all.retain(|figure| {
        let named = args.groups.is_empty() || args.groups.contains(&figure.row.group);
        named && half.is_none_or(|half| figure.half() == half)
    });
    match all.is_empty() {
        true => Err(Exit::usage("none of these groups is in that half")),
        false => Ok(all),
    }
}

/// The names of the groups, each once.
fn groups(figures: &[Figure]) -> Vec<&String> {
    let mut names: Vec<&String> = figures.iter().map(|figure| &figure.row.group).collect();
    names.dedup();
    names
}

/// Scores what `args` name.
pub fn run(args: &Args) -> Result<(), Exit> {
    let chosen = chosen(args)?;
    if args.list {
        return print(io::stdout().lock(), list(&chosen).as_bytes());
    }
    let files = Files::open([("--json", &args.json)])?;
    let options = Options {
        round: args.seconds,
        seed: args.seed,
        vary: args.vary,
        jobs: args.jobs.unwrap_or_else(cpus),
        interrupt: Arc::new(Interrupt::default()),
    };
    ending::on_interrupt(Arc::clone(&options.interrupt))?;
    // How many simulations there are is known once the first has ended.
    let mut progress = None;
    let results = simulate_all(&chosen, &options, |ended, all, case| {
        let progress = progress.get_or_insert_with(|| Progress::of(all, "simulation", args.quiet));
        progress.at(
            ended,
            &format!("{}, {} threads", case.lock.name, case.threads),
        );
    });
    if let Some(progress) = progress {
        progress.finish();
    }
    let results = results.map_err(|error| match error {
        Error::Interrupted => Exit::Interrupted,
        error => Exit::Failed(error.to_string()),
    })?;
    let score = Score::new(&chosen, &results);
    if !args.quiet && !files.use_stdout() {
        let form = match args.markdown {
            true => Form::Markdown,
            false => Form::Plain,
        };
        let text = summary(form, &score) + "\n" + &figures(form, &score);
        print(io::stdout().lock(), text.as_bytes())?;
    }
    files.write([&|out| json::write(out, &score)])?;
    let failures = score.failures().count();
    match score.failures().next() {
        None => Ok(()),
        Some((row, why)) => Err(Exit::Failed(format!(
            "{failures} figures could not be simulated, first {} of {}: {why}",
            row.lock, row.group
        ))),
    }
}

fn list(figures: &[Figure]) -> String {
    let mut text = String::new();
    for group in figures.chunk_by(|a, b| a.row.group == b.row.group) {
        let row = &group[0].row;
        let (name, half, count) = (&row.group, group[0].half(), group.len());
        text += &format!("{name:<24} {half:<10} {count:>3} figures  {}\n", row.source);
    }
    text
}

/// Checks the options as [`run`] does.
pub fn check(args: &Args) -> Result<(), Exit> {
    chosen(args).map(drop)
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab sim score                               all figures; minutes
  overlock-lab sim score --half score --json score.json
  overlock-lab sim score qdisc rwsem --vary            two groups, with ranges
  overlock-lab sim score --data my-figures             figures of a folder of yours

Exit codes: 0 done, 1 a simulation failed or a result could not be written, 2 bad use, 130 interrupted. A figure that is far off is no failure.";
