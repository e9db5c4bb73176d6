//! `overlock-lab sim merge`

use std::path::PathBuf;

use overlock_study::sweep::table::render;
use overlock_study::sweep::{Sweep, merge};

use super::sweep::verdict;
use crate::exit::Exit;
use crate::files::{Files, name};
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
    /// Files of `overlock-lab sim sweep`, or of this
    #[arg(value_name = "PART", required = true)]
    parts: Vec<PathBuf>,

    /// Write all of them as one, in the order of the sweep; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print neither tables nor what is missing
    #[arg(long, short)]
    quiet: bool,
}

/// Joins the parts that `args` name.
pub fn run(args: &Args) -> Result<(), Exit> {
    let mut parts = Vec::new();
    for path in &args.parts {
        match Sweep::read(path).map_err(Exit::usage)? {
            Some(part) => parts.push(part),
            None if args.quiet => {}
            None => crate::tell!("overlock-lab: {} has no results yet", name(path)),
        }
    }
    let merged = merge(parts).map_err(Exit::usage)?;
    let (sweep, duplicates) = merged.ok_or_else(|| Exit::usage("no part has any results"))?;
    let files = Files::open([("--out", &args.out)])?;
    let stdout = files.use_stdout();
    files.write([&|out| sweep.write(out)])?;
    let missing = sweep.missing().count();
    if !args.quiet {
        print_beside(stdout, &render(&sweep, width()))?;
        if duplicates > 0 {
            crate::tell!("overlock-lab: {duplicates} results were there more than once");
        }
        for key in sweep.missing().take(NAMED) {
            crate::tell!("overlock-lab: missing: {key}");
        }
        if missing > NAMED {
            crate::tell!("overlock-lab: and {} more", missing - NAMED);
        }
    }
    match missing {
        0 => verdict(&sweep),
        missing => Err(Exit::Failed(format!(
            "{missing} of {} simulations are missing",
            sweep.points.len()
        ))),
    }
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab sim merge sweep.jsonl                     the tables of a sweep
  overlock-lab sim merge part*.jsonl --out all.jsonl

Exit codes: 0 all is there, 1 a lock failed, results are missing or could not be written, 2 bad use or contradictions.";
