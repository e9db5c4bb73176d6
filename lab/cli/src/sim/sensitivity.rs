//! `overlock-lab sim sensitivity`

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use overlock_bench::interrupt::Interrupt;
use overlock_study::reproduce::sensitivity::{Constant, Study, text};
use overlock_study::reproduce::{Options, Table};

use super::reproduce::{failed, jobs, length, tables};
use crate::exit::Exit;
use crate::files::open;
use crate::measure::ending;
use crate::measure::progress::Progress;
use crate::number::{number, whole};
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
    #[arg(long, value_name = "PERCENT", default_value = "20")]
    by: String,

    /// The constants, by their keys [default: all]
    #[arg(long, value_delimiter = ',', value_name = "KEY,…")]
    keys: Vec<String>,

    /// Simulate so many times as long as is normal
    #[arg(long, value_name = "X", default_value = "0.1")]
    length: String,

    /// Seed of the random choices: another number is another run
    #[arg(long, value_name = "N", default_value = "1")]
    seed: String,

    /// Seeds, of which --seed is the first: figures are medians over them
    #[arg(long, value_name = "N", default_value = "3")]
    seeds: String,

    /// Simulations at a time [default: as many as this machine has CPUs]
    #[arg(long, value_name = "N")]
    jobs: Option<String>,

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
        let by = number("--by", &args.by, 0.1, 90.0, "a percentage")?;
        let study = Study::new(&tables, constants, by / 100.0)
            .map_err(|error| Exit::usage(format!("--by {}: {error}", args.by)))?;
        Ok(Self {
            study,
            options: Options {
                length: length(&args.length)?,
                seed: whole("--seed", &args.seed, 0, usize::MAX)? as u64,
                seeds: whole("--seeds", &args.seeds, 1, 1000)?,
                jobs: jobs(args.jobs.as_deref())?,
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
    let json = open("--json", args.json.as_deref())?;
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
        let beside = args
            .json
            .as_deref()
            .is_some_and(|path| path.as_os_str() == "-");
        print_beside(beside, &text)?;
    }
    json.map_or(Ok(()), |json| json.write(|out| text::json(out, &found)))
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
