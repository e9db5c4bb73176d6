//! `overlock-lab sim advise`

mod report;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use overlock_bench::workload::Workload;
use overlock_profile::Profile;
use overlock_report::json;
use overlock_report::numbers::time;
use overlock_study::advise::{Question, candidates};
use overlock_study::case::Place;

use report::{Load, load};

use super::how::{self, How};
use super::machine::{self, MOST_VCPUS};
use super::workload::{self, Hints};
use crate::exit::Exit;
use crate::files::Files;
use crate::number::whole;
use crate::terminal::print;

/// Say which lock is best for a machine and a load: the three best, with ranges
///
/// Each lock is simulated; the best ones again with constants a tenth smaller and larger. The load
/// is that of the options, or that of a lock in a report of `overlock profile`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The machine: a name, perhaps with changed keys, or a file in TOML, as --machine of `sim`;
    /// this-machine is measured in half a second
    #[arg(long, value_name = "NAME", default_value = "this-machine")]
    machine: String,

    /// Use so many of its cores, and no more sockets than that takes [default: all]
    #[arg(long, value_name = "N")]
    cores: Option<String>,

    /// The host of the threads, as --host of `sim`
    #[arg(long, value_name = "NAME", default_value = "threads")]
    host: String,

    /// How long the lock is held: 200ns, 1.5us
    #[arg(long, value_name = "TIME", required_unless_present = "report")]
    section: Option<String>,

    /// How long a thread is away between two acquisitions
    #[arg(long, value_name = "TIME", required_unless_present = "report")]
    gap: Option<String>,

    /// Threads that take the lock [default: those of the report, or one for each CPU]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MOST_VCPUS.0 as u64))]
    threads: Option<usize>,

    /// A report of `overlock profile --json`, whose load this is; options given beside it count
    /// more
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// The lock of the report [default: the one with the longest waits]
    #[arg(long, value_name = "NAME", requires = "report")]
    lock: Option<String>,

    /// The locks to choose from, by the names that people use [default: those that a program may
    /// choose, and models of the locks of others]
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        value_parser = Hints(workload::mutexes),
        hide_possible_values = true
    )]
    locks: Vec<String>,

    /// Write a picture: the best locks, ours and that of std, over the number of threads
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    #[command(flatten)]
    how: How,
}

fn read(path: &Path, name: Option<&str>) -> Result<Load, Exit> {
    let unreadable =
        |why: &dyn std::fmt::Display| Exit::usage(format!("--report {}: {why}", path.display()));
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    let profile = Profile::read(BufReader::new(file)).map_err(|error| unreadable(&error))?;
    load(&profile, name).map_err(|why| unreadable(&why))
}

/// A length of the report, where no option has it.
fn length(option: &str, given: Option<&String>, found: Option<f64>) -> Result<String, Exit> {
    match (given, found) {
        (Some(given), _) => Ok(given.clone()),
        (None, Some(found)) => Ok(format!("{found:.0}ns")),
        (None, None) => Err(Exit::usage(format!(
            "the report does not say it: --{option} is needed"
        ))),
    }
}

/// The question of the options, and what it was made of if that was a report.
fn question(args: &Args) -> Result<(Question, Option<Load>), Exit> {
    let place = machine::Args {
        machine: args.machine.clone(),
        cores: args.cores.clone(),
        host: args.host.clone(),
        others: 0,
        seed: args.how.seed,
    };
    let found = args
        .report
        .as_ref()
        .map(|path| read(path, args.lock.as_deref()));
    let found = found.transpose()?;
    let of = |value: fn(&Load) -> Option<f64>| found.as_ref().and_then(value);
    let section = length("section", args.section.as_ref(), of(|load| load.section))?;
    let gap = length("gap", args.gap.as_ref(), of(|load| load.gap))?;
    let workload: Workload = format!("micro:cs={section}:ncs={gap}")
        .parse()
        .map_err(|error| Exit::usage(format!("--section {section} --gap {gap}: {error}")))?;
    let locks = match args.locks.as_slice() {
        [] => candidates(),
        names => how::locks(names)?,
    };
    let place = place.place()?;
    let threads = args.threads.or(found.as_ref().map(|load| load.threads));
    let threads = threads.unwrap_or(place.machine.cpus());
    let place = Place::new(place.machine, place.host, workload, threads);
    Ok((Question { place, locks }, found))
}

/// Answers the question of `args`.
pub fn run(args: &Args) -> Result<(), Exit> {
    let (question, found) = question(args)?;
    let files = Files::open([("--svg", &args.svg), ("--json", &args.how.json)])?;
    let options = args.how.options()?;
    let advice = question.answer(&options, args.svg.is_some(), args.how.progress());
    let advice = advice.map_err(how::failed)?;
    if !args.how.quiet && !files.use_stdout() {
        let mut text = String::new();
        if let Some(load) = found {
            let known = |length: Option<f64>| length.map_or("not known".to_owned(), time);
            let (section, gap) = (known(load.section), known(load.gap));
            text += &format!(
                "The lock {} of the report: held for {section}, {gap} between two acquisitions, \
                 {} threads on {} CPUs.\n",
                load.lock, load.threads, load.cpus
            );
        }
        print(io::stdout().lock(), (text + &advice.describe()).as_bytes())?;
    }
    files.write([&|out| advice.draw(out), &|out| json::write(out, &advice)])?;
    match advice.locks.is_empty() {
        true => Err(Exit::Failed("no lock could be simulated".to_owned())),
        false => Ok(()),
    }
}

/// Checks the options as [`run`] does.
pub fn check(args: &Args) -> Result<(), Exit> {
    question(args).map(drop)
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab sim advise --section 200ns --gap 2us              on this machine
  overlock-lab sim advise --machine epyc-9654 --section 200ns --gap 2us --threads 128 --svg epyc.svg
  overlock-lab sim advise --machine my.toml --section 1us --gap 10us --locks overlock,std,glibc
  overlock-lab sim advise --report r.json                        the hottest lock of a profile

Exit codes: 0 done, 1 no lock could be simulated or a result could not be written, 2 bad use, 130 interrupted.";
