//! `overlock-lab sim which-lock`

use std::io;

use overlock_bench::registry::Entry;
use overlock_report::columns::Form;
use overlock_report::json;
use overlock_study::which::{candidates, cells, describe, places};

use super::how::{self, How, Locks};
use crate::exit::Exit;
use crate::files::Files;
use crate::terminal::print;

/// Say which lock is best for which class of machines: a table with ranges
///
/// The same locks with the same loads on machines of 8 to 128 CPUs, with 0.5 to 4 threads for each.
/// The best of each cell is simulated again with constants a tenth smaller and larger. A range is
/// what that makes of a figure, widened by the error of the score. Without --locks the choice is
/// among overlock, hybrid_short, mcs, std, glibc and parking_lot.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Classes of machines, by name: 8, 16, 64, 128, two-sockets, epyc, graviton [default: all]
    #[arg(value_name = "CLASS")]
    places: Vec<String>,

    #[command(flatten)]
    locks: Locks,

    /// Print tables in Markdown, as docs/evidence/which-lock.md has them
    #[arg(long)]
    markdown: bool,

    #[command(flatten)]
    how: How,
}

/// Prints the table.
pub fn run(args: &Args) -> Result<(), Exit> {
    let locks = chosen(args)?;
    let files = Files::open([("--json", &args.how.json)])?;
    let options = args.how.options()?;
    let cells = cells(&args.places, &locks, &options, args.how.progress()).map_err(how::failed)?;
    if !args.how.quiet && !files.use_stdout() {
        let form = match args.markdown {
            true => Form::Markdown,
            false => Form::Plain,
        };
        print(io::stdout().lock(), describe(form, &cells).as_bytes())?;
    }
    files.write([&|out| json::write(out, &cells)])?;
    for lock in &locks {
        let beyond = |most: usize| cells.iter().any(|cell| cell.advice.threads > most);
        if let Some(most) = lock.most_threads.filter(|&most| beyond(most))
            && !args.how.quiet
        {
            crate::tell!(
                "overlock-lab: {} takes at most {most} threads, and is left out beyond",
                lock.name
            );
        }
    }
    match cells.iter().find_map(|cell| cell.advice.failed.first()) {
        None => Ok(()),
        Some((lock, why)) => Err(Exit::Failed(format!("{lock} failed: {why}"))),
    }
}

/// The locks of known classes.
fn chosen(args: &Args) -> Result<Vec<&'static Entry>, Exit> {
    let names = places();
    let unknown = args.places.iter();
    let mut unknown = unknown.filter(|place| !names.contains(&place.as_str()));
    if let Some(unknown) = unknown.next() {
        return Err(Exit::usage(format!(
            "unknown class '{unknown}'; the classes are {}",
            names.join(", ")
        )));
    }
    args.locks.or(candidates)
}

/// Checks the options as [`run`] does.
pub fn check(args: &Args) -> Result<(), Exit> {
    chosen(args).map(drop)
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab sim which-lock                         the table of docs/evidence/which-lock.md; minutes
  overlock-lab sim which-lock two-sockets epyc        two classes of machines
  overlock-lab sim which-lock 8 --locks overlock,std,my-lock

Exit codes: 0 done, 1 a simulation failed or a result could not be written, 2 bad use, 130 interrupted.";
