//! `overlock-lab sim merge`

use std::path::PathBuf;

use overlock_study::sweep::Sweep;
use overlock_study::sweep::table::render;

use super::sweep::verdict;
use crate::exit::Exit;
use crate::files::Files;
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
    let sweep = Sweep::merge(&args.parts).map_err(Exit::usage)?;
    let files = Files::open([("--out", &args.out)])?;
    let stdout = files.use_stdout();
    files.write([&|out| sweep.write(out)])?;
    let missing = sweep.missing((1, 1)).count();
    if !args.quiet {
        print_beside(stdout, &render(&sweep, width()))?;
        for key in sweep.missing((1, 1)).take(NAMED) {
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
            sweep.results.len()
        ))),
    }
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab sim merge sweep.jsonl                     the tables of a sweep
  overlock-lab sim merge part*.jsonl --out all.jsonl

Exit codes: 0 all is there, 1 a lock failed, results are missing or could not be written, 2 bad use or contradictions.";
