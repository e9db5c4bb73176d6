//! `overlock-lab sim sensitivity`

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use overlock_bench::interrupt::Interrupt;
use overlock_study::reproduce::sensitivity::{Constant, Study, text};
use overlock_study::reproduce::{Options, Table};

use super::reproduce::{MOST_JOBS, cpus, failed, length, tables};
use overlock_report::json;

use crate::exit::Exit;
use crate::files::Files;
use crate::measure::ending;
use crate::measure::progress::Progress;
use crate::number::{ANY, number, whole};
use crate::terminal::{print, print_beside};

/// Change each constant of the cost model, and see which published figures and claims move
///
/// The tables of `reproduce` are simulated again with each constant of the machines and hosts made
/// smaller, and larger, alone. The first row has the effect of other seeds, which is that of
/// chance.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The tables, or `all`; --list of `reproduce` shows which there are
    #[arg(value_name = "TABLE", default_values = ["qdisc", "semop"])]
    tables: Vec<String>,

    /// List the constants and exit
    #[arg(long)]
    list: bool,

    /// By how much constants change
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = number(0.1, 90.0, "a percentage"),
        default_value = "20"
    )]
    by: f64,

    /// The constants, by their keys [default: all]
    #[arg(long, value_delimiter = ',', value_name = "KEY,…")]
    keys: Vec<String>,

    /// Simulate so many times as long as is normal
    #[arg(long, value_name = "X", value_parser = length(), default_value = "0.1")]
    length: f64,

    /// Seed of the random choices: another number is another run
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0, ANY), default_value = "1")]
    seed: u64,

    /// Seeds, of which --seed is the first: figures are medians over them
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 1000), default_value = "3")]
    seeds: usize,

    /// Simulations at a time [default: as many as this machine has CPUs]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MOST_JOBS))]
    jobs: Option<usize>,

    /// Write everything as JSON; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Print the table as results/sensitivity.md has it
    #[arg(long)]
    markdown: bool,

    /// Print neither progress nor the table
    #[arg(long, short)]
    quiet: bool,
}

struct Choice {
    study: Study,
    options: Options,
}

impl Choice {
    fn new(args: &Args) -> Result<Self, Exit> {
        let tables: Vec<&'static Table> = tables(&args.tables)?;
        let mut constants = Vec::new();
        for key in &args.keys {
            let named = Constant::named(key.trim())
                .map_err(|error| Exit::usage(format!("--keys: {error}")))?;
            if constants
                .iter()
                .any(|other: &Constant| other.name() == named.name())
            {
                return Err(Exit::usage(format!("--keys: {named} is there twice")));
            }
            constants.push(named);
        }
        if constants.is_empty() {
            constants.extend(Constant::all());
        }
        let study = Study::new(&tables, constants, args.by / 100.0)
            .map_err(|error| Exit::usage(format!("--by {}: {error}", args.by)))?;
        Ok(Self {
            study,
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

/// Changes the constants that `args` name.
pub fn run(args: &Args) -> Result<(), Exit> {
    if args.list {
        let line = |constant: Constant| {
            let (name, of, about) = (constant.name(), constant.of(), constant.about());
            format!("{name:<16} {of:<8} {about}\n")
        };
        let text: String = Constant::all().map(line).collect();
        return print(io::stdout().lock(), text.as_bytes());
    }
    let Choice { study, options } = Choice::new(args)?;
    let files = Files::open([("--json", &args.json)])?;
    ending::on_interrupt(Arc::clone(&options.interrupt))?;

    let progress = Progress::of(study.rounds(options.seeds), "round", args.quiet);
    let mut done = 0;
    let found = study.run(&options, |case| {
        done += 1;
        progress.at(done, &case.label());
    });
    progress.finish();
    let found = found.map_err(failed)?;
    if !args.quiet {
        let text = match args.markdown {
            true => text::markdown(&found),
            false => text::describe(&found),
        };
        print_beside(files.use_stdout(), &text)?;
    }
    files.write([&|out| json::write(out, &found)])
}

/// Checks the options as [`run`] does.
pub fn check(args: &Args) -> Result<(), Exit> {
    Choice::new(args).map(drop)
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab sim sensitivity                            every constant by 20 %, on two quick tables
  overlock-lab sim sensitivity hybrid-micro --keys gap,request,snoop,locks_line
  overlock-lab sim sensitivity --list                     the constants

Exit codes: 0 done, 1 a simulation failed or a result could not be written, 2 bad use, 130 interrupted. A claim that moves is no failure.";
