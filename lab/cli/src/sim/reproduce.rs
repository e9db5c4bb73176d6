//! `overlock-lab sim reproduce`

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use overlock_bench::error::Error;
use overlock_bench::interrupt::Interrupt;
use overlock_report::json;
use overlock_study::reproduce::text::{Form, describe, summary};
use overlock_study::reproduce::{Failure, Options, TABLES, Table};

use crate::exit::Exit;
use crate::files::Files;
use crate::measure::ending;
use crate::measure::progress::Progress;
use crate::number::{ANY, number, whole};
use crate::terminal::print;

/// Reproduce published tables: each figure beside the one that was published
///
/// The machines, the hypervisor and the numbers of vCPUs are those of the documents. One cost model
/// serves all tables; docs/evidence/simulator.md has its sources, and which figures it does not
/// reach.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The tables, or `all`; --list shows which there are
    #[arg(value_name = "TABLE", required_unless_present = "list")]
    tables: Vec<String>,

    /// List the tables and exit
    #[arg(long)]
    list: bool,

    /// Simulate so many times as long as is normal: 0.1 for a quick run
    #[arg(long, value_name = "X", value_parser = number(1e-3, 1e3, "times the normal length"), default_value = "1")]
    length: f64,

    /// Seed of the random choices: another number is another run
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0, ANY), default_value = "1")]
    seed: u64,

    /// Seeds, of which --seed is the first: figures are medians over them
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 1000), default_value = "5")]
    seeds: usize,

    /// Simulations at a time [default: as many as this machine has CPUs]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MOST_JOBS))]
    jobs: Option<usize>,

    /// Write everything as JSON; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Print the tables as results/simulator-tables.md has them, and the scores of
    /// docs/evidence/simulator.md
    #[arg(long)]
    markdown: bool,

    /// Print neither progress nor tables
    #[arg(long, short)]
    quiet: bool,
}

struct Choice {
    tables: Vec<&'static Table>,
    options: Options,
}

impl Choice {
    fn new(args: &Args) -> Result<Self, Exit> {
        Ok(Self {
            tables: tables(&args.tables)?,
            options: Options {
                length: args.length,
                seed: args.seed,
                seeds: args.seeds,
                jobs: args.jobs.unwrap_or_else(cpus),
                interrupt: Arc::new(Interrupt::default()),
            },
        })
    }
}

/// The tables of these names.
fn tables(names: &[String]) -> Result<Vec<&'static Table>, Exit> {
    let mut tables: Vec<&'static Table> = Vec::new();
    for name in names {
        match (name.as_str(), Table::named(name)) {
            ("all", _) => tables.extend(TABLES),
            (_, Some(table)) => tables.push(table),
            _ => {
                let names: Vec<_> = TABLES.iter().map(|table| table.name).collect();
                return Err(Exit::usage(format!(
                    "unknown table '{name}'; the tables are {}, and all",
                    names.join(", ")
                )));
            }
        }
    }
    Ok(tables)
}

/// More threads than any machine has CPUs.
pub const MOST_JOBS: u64 = 4096;

/// As many simulations as run at a time where --jobs says nothing.
pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, |count| count.get())
}

/// The exit after a simulation that has failed.
fn failed(failure: Failure) -> Exit {
    match failure.error {
        Error::Interrupted => Exit::Interrupted,
        error => Exit::Failed(format!("{}: {error}", failure.case)),
    }
}

/// Reproduces the tables that `args` name.
pub fn run(args: &Args) -> Result<(), Exit> {
    if args.list {
        let line = |table: &Table| format!("{:<22} {}\n", table.name, table.about);
        let text: String = TABLES.iter().map(line).collect();
        return print(io::stdout().lock(), text.as_bytes());
    }
    let Choice { tables, options } = Choice::new(args)?;
    let files = Files::open([("--json", &args.json)])?;
    let form = match args.markdown {
        true => Form::Markdown,
        false => Form::Plain,
    };
    let silent = args.quiet || files.use_stdout();
    ending::on_interrupt(Arc::clone(&options.interrupt))?;

    let cases: usize = tables.iter().map(|table| table.cases()).sum();
    let total = cases * options.seeds;
    let progress = Progress::of(total, "round", args.quiet);
    let mut done = 0;
    let mut all = Vec::new();
    for table in tables {
        let reproduction = table.reproduce(&options, |case| {
            done += 1;
            progress.at(done, &case.label());
        });
        let reproduction = reproduction.map_err(|failure| {
            progress.finish();
            failed(failure)
        })?;
        if !silent {
            let text = describe(form, &reproduction) + "\n";
            progress.aside(|| print(io::stdout().lock(), text.as_bytes()))?;
        }
        all.push(reproduction);
    }
    progress.finish();
    if !silent && all.len() > 1 {
        print(io::stdout().lock(), summary(form, &all).as_bytes())?;
    }
    files.write([&|out| json::write(out, &all)])
}

/// Checks the options as [`run`] does.
pub fn check(args: &Args) -> Result<(), Exit> {
    Choice::new(args).map(drop)
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab sim reproduce hybrid-micro              minutes on a laptop
  overlock-lab sim reproduce all --json tables.json
  overlock-lab sim reproduce semop qdisc --length 0.1 --seeds 1  a quick look

Exit codes: 0 done, 1 a simulation failed or a result could not be written, 2 bad use, 130 interrupted. A figure that is not reached is no failure.";
