//! `overlock sim merge`

use std::path::{Path, PathBuf};

use overlock_study::sweep::merge::{Merged, merge};
use overlock_study::sweep::{Part, csv, table};

use super::sweep::{refused, verdict};
use crate::exit::Exit;
use crate::files::{name, open};
use crate::terminal::{print_beside, width};

/// So many of the simulations that are missing are named.
const NAMED: usize = 10;

/// Join the files of a sweep, and show their medians over the seeds
///
/// The parts may be given in any order, and may overlap: what is the same in two of them counts
/// once, what contradicts is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files of `overlock sim sweep`, or of this
    #[arg(value_name = "PART", required = true)]
    parts: Vec<PathBuf>,

    /// Write all of them as one, in the order of the sweep; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Write a line for each simulation, with all its figures
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Print neither tables nor what is missing
    #[arg(long, short)]
    quiet: bool,
}

/// Joins the parts that `args` name.
pub fn run(args: &Args) -> Result<(), Exit> {
    let merged = read(args)?;
    if let (Some(out), Some(csv)) = (&args.out, &args.csv)
        && out == csv
    {
        return Err(Exit::usage(format!("--out and --csv name {}", name(out))));
    }
    let out = open("--out", args.out.as_deref())?;
    let csv = open("--csv", args.csv.as_deref())?;
    if let Some(out) = out {
        out.write(|out| merged.write(out))?;
    }
    if let Some(csv) = csv {
        csv.write(|out| csv::write(out, &merged.lines))?;
    }
    if !args.quiet {
        show(args, &merged)?;
    }
    if !merged.missing.is_empty() {
        let all = merged.lines.len() + merged.missing.len();
        return Err(Exit::Failed(format!(
            "{} of {all} simulations are missing",
            merged.missing.len()
        )));
    }
    verdict(&merged.lines)
}

fn read(args: &Args) -> Result<Merged, Exit> {
    let mut parts = Vec::new();
    for path in &args.parts {
        match Part::read(path).map_err(refused)? {
            Some(part) => parts.push(part),
            None if args.quiet => {}
            None => eprintln!("overlock: {} has no results yet", name(path)),
        }
    }
    merge(parts)
        .map_err(refused)?
        .ok_or_else(|| Exit::usage("no part has any results"))
}

fn show(args: &Args, merged: &Merged) -> Result<(), Exit> {
    let text = table::render(&merged.lines, width());
    let mut files = [&args.out, &args.csv].into_iter().flatten();
    print_beside(files.any(|path| path == Path::new("-")), &text)?;
    if merged.duplicates > 0 {
        let duplicates = merged.duplicates;
        eprintln!("overlock: {duplicates} results were there more than once");
    }
    for key in merged.missing.iter().take(NAMED) {
        eprintln!("overlock: missing: {key}");
    }
    if merged.missing.len() > NAMED {
        eprintln!("overlock: and {} more", merged.missing.len() - NAMED);
    }
    Ok(())
}

const EXAMPLES: &str = "\
Examples:
  overlock sim merge sweep.jsonl                     the tables of a sweep
  overlock sim merge part*.jsonl --out all.jsonl --csv all.csv

Exit codes: 0 all is there, 1 a lock failed or results are missing, 2 bad use or contradictions.";
