//! `overlock-lab sim score`

use std::io;
use std::path::PathBuf;

use overlock_report::columns::Form;
use overlock_report::json;
use overlock_study::case::Options;
use overlock_study::score::text::{figures, summary};
use overlock_study::score::{Figure, Folder, Score, simulate_all};

use super::how::{self, How};
use crate::exit::Exit;
use crate::files::Files;
use crate::number::whole;
use crate::terminal::print;

/// Hold simulations against published measurements: orders, errors, the skill over a null model
///
/// The measurements are data, of which one half may be used to choose constants; the other is only
/// scored. docs/evidence/simulator.md has the score, and how it is made. A build has ten times the
/// length of --seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct Args {
    /// Groups of figures, by name [default: all]
    #[arg(value_name = "GROUP")]
    groups: Vec<String>,

    /// Measurements in place of the program's own: a folder of files in CSV, with files of
    /// machines, or one such file in CSV
    #[arg(long, value_name = "PATH")]
    data: Vec<PathBuf>,

    /// Only the groups that may be used to choose constants, or only the others
    #[arg(long, value_parser = ["calibrate", "score"])]
    half: Option<String>,

    /// Repeat each simulation with constants a tenth smaller and larger, and print a range where
    /// that changes a lock's regime: seven times as long
    #[arg(long)]
    vary: bool,

    /// Simulate each figure with so many seeds, from --seed on: the median counts, and a range is
    /// printed where they differ by more than a third
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, 100), default_value = "3")]
    seeds: u64,

    /// List the groups and their documents, and exit
    #[arg(long)]
    list: bool,

    /// Print tables in Markdown, as results/score.md has them
    #[arg(long)]
    markdown: bool,

    #[command(flatten)]
    how: How,
}

/// The figures that `args` ask for.
fn chosen(args: &Args) -> Result<Vec<Figure>, Exit> {
    let folders: Result<Vec<Folder>, String> = match args.data.as_slice() {
        [] => Ok(vec![Folder::published()]),
        paths => paths.iter().map(|path| Folder::read(path)).collect(),
    };
    let folders = folders.map_err(Exit::usage)?;
    let all: Result<Vec<_>, String> = folders.iter().map(Folder::figures).collect();
    let mut all = all.map_err(Exit::usage)?.concat();
    let mut names: Vec<&str> = all.iter().map(|figure| figure.row.group.as_str()).collect();
    names.dedup();
    if let Some(unknown) = args
        .groups
        .iter()
        .find(|name| !names.contains(&name.as_str()))
    {
        let names = names.join(", ");
        return Err(Exit::usage(format!(
            "unknown group '{unknown}'; the groups are {names}"
        )));
    }
    all.retain(|figure| {
        let named = args.groups.is_empty() || args.groups.contains(&figure.row.group);
        let half = args.half.as_ref();
        named && half.is_none_or(|half| figure.row.half().to_string() == *half)
    });
    match all.is_empty() {
        true => Err(Exit::usage("none of these groups is in that half")),
        false => Ok(all),
    }
}

/// Scores what `args` name.
pub fn run(args: &Args) -> Result<(), Exit> {
    let chosen = chosen(args)?;
    let form = match args.markdown {
        true => Form::Markdown,
        false => Form::Plain,
    };
    let told = |text: String| print(io::stdout().lock(), text.as_bytes());
    if args.list {
        return told(list(&chosen));
    }
    let files = Files::open([("--json", &args.how.json)])?;
    let options = args.how.options()?;
    let seeds: Vec<u64> = (0..args.seeds)
        .map(|more| options.seed.wrapping_add(more))
        .collect();
    let mut progress = args.how.progress();
    let run = |(number, &seed): (usize, &u64)| {
        let options = Options {
            seed,
            ..options.clone()
        };
        simulate_all(&chosen, args.vary, &options, |ended, all, case| {
            progress(number * all + ended, seeds.len() * all, case);
        })
    };
    let runs: Result<Vec<_>, _> = seeds.iter().enumerate().map(run).collect();
    let score = Score::new(&chosen, seeds, &runs.map_err(how::failed)?);
    if !args.how.quiet && !files.use_stdout() {
        told(summary(form, &score) + "\n" + &figures(form, &score))?;
    }
    files.write([&|out| json::write(out, &score)])?;
    let failures = score.failures().count();
    match score.failures().next() {
        None => Ok(()),
        Some((row, why)) => Err(Exit::Failed(format!(
            "could not simulate {failures} of the figures, first {} of {}: {why}",
            row.lock, row.group
        ))),
    }
}

fn list(figures: &[Figure]) -> String {
    let mut text = String::new();
    for group in figures.chunk_by(|a, b| a.row.group == b.row.group) {
        let row = &group[0].row;
        let (name, half, count) = (&row.group, row.half(), group.len());
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
