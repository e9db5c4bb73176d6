//! `overlock-lab sim advise`

mod report;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use overlock_bench::workload::Workload;
use overlock_bench::workload::spec::LONGEST_SECTION;
use overlock_profile::Profile;
use overlock_report::json;
use overlock_report::numbers::{significant, time};
use overlock_sim::Time;
use overlock_study::advise::{Question, candidates};
use overlock_study::case::Place;
use serde::Serialize;

use report::{Load, load};

use super::how::{self, How, Locks};
use super::machine::{self, MOST_VCPUS};
use crate::exit::Exit;
use crate::files::Files;
use crate::measure::workload::section;
use crate::number::whole;
use crate::terminal::print;

/// Say which lock is best for a machine and a load: the three best, with ranges
///
/// Each lock is simulated; the best ones again with constants a tenth smaller and larger. The load
/// is that of the options, or that of a lock in a report of `overlock profile`. Without --locks the
/// choice is among locks that a program can have, with models of published ones beside them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
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

    /// How long the lock is held: 200ns, 1.5us; a bare number is nanoseconds
    #[arg(long, value_name = "TIME", value_parser = section, required_unless_present = "report")]
    section: Option<f64>,

    /// How long a thread is away between two acquisitions, likewise
    #[arg(long, value_name = "TIME", value_parser = gap, required_unless_present = "report")]
    gap: Option<f64>,

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

    #[command(flatten)]
    locks: Locks,

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

/// A gap in nanoseconds. Only a lock that matters limits it.
fn gap(text: &str) -> Result<f64, String> {
    let time = text.trim().parse().map(Time::as_ns_f64);
    time.map_err(|_| "must be a time, such as 2us or 5s; a bare number is nanoseconds".to_owned())
}

/// A length of the report, where no option has it.
fn length(option: &str, given: Option<f64>, found: Option<f64>) -> Result<f64, Exit> {
    given
        .or(found.map(f64::round))
        .ok_or_else(|| Exit::usage(format!("the report does not say it: --{option} is needed")))
}

/// A question, and where it is from.
struct Asked {
    load: Demand,
    question: Question,
    /// The lock of the report, if there is one.
    report: Option<Load>,
}

/// How much threads want a lock, and that it is no question if they hardly do.
#[derive(Clone, Copy, Debug, Serialize)]
struct Demand {
    threads: usize,
    section_ns: f64,
    gap_ns: f64,
    /// The share of the time for which the lock is held if nobody waits, or more than all of it.
    busy: f64,
    /// There are none to choose from.
    locks: [(); 0],
}

/// Below this share threads hardly meet at a lock: fewer than one acquisition in a hundred finds it
/// held.
const FREE: f64 = 0.01;

/// In nanoseconds, longer than any lock takes that nobody waits for.
const LOCKING: f64 = 1e3;

impl Demand {
    fn new(threads: usize, section_ns: f64, gap_ns: f64) -> Self {
        let locks = [];
        Self {
            threads,
            section_ns,
            gap_ns,
            busy: threads as f64 * section_ns / (section_ns + gap_ns),
            locks,
        }
    }

    /// The share with [`LOCKING`].
    fn used(&self) -> f64 {
        self.threads as f64 * (self.section_ns + LOCKING) / (self.section_ns + self.gap_ns)
    }

    fn is_none(&self) -> bool {
        self.used() < FREE
    }

    /// For people: why no lock matters.
    fn describe(&self) -> String {
        format!(
            "No lock matters here: {} threads that hold it for {} and are away for {} have it for \
             {} % of the time, so they hardly ever meet. Take the one that suits you otherwise.\n",
            self.threads,
            time(self.section_ns),
            time(self.gap_ns),
            significant(100.0 * self.busy)
        )
    }

    /// The load to simulate. A free lock needs none, so its gap may be any.
    fn workload(&self) -> Result<Workload, Exit> {
        let (section, gap) = (self.section_ns, self.gap_ns);
        for (option, length) in [("section", section), ("gap", gap)] {
            if length > LONGEST_SECTION && !self.is_none() {
                return Err(Exit::usage(format!(
                    "--{option} {}: must be at most {}, since a simulation is shorter; only of a \
                     lock that is in use for less than {} % of the time it may be longer, and this \
                     one is for {} %, with a microsecond for each use",
                    time(length),
                    time(LONGEST_SECTION),
                    100.0 * FREE,
                    significant(100.0 * self.used())
                )));
            }
        }
        let gap = gap.min(LONGEST_SECTION);
        let workload = format!("micro:cs={section}ns:ncs={gap}ns");
        workload.parse().map_err(Exit::usage)
    }
}

fn asked(args: &Args) -> Result<Asked, Exit> {
    let place = machine::Args {
        machine: args.machine.clone(),
        cores: args.cores.clone(),
        host: args.host.clone(),
        others: 0,
        seed: args.how.seed,
    };
    let report = args.report.as_ref();
    let report = report.map(|path| read(path, args.lock.as_deref()));
    let report = report.transpose()?;
    let of = |value: fn(&Load) -> Option<f64>| report.as_ref().and_then(value);
    let section = length("section", args.section, of(|load| load.section))?;
    let gap = length("gap", args.gap, of(|load| load.gap))?;
    let locks = args.locks.or(candidates)?;
    let place = place.place()?;
    let threads = args.threads.or(report.as_ref().map(|load| load.busy));
    let threads = threads.unwrap_or(place.machine.cpus());
    let load = Demand::new(threads, section, gap);
    let place = Place::new(place.machine, place.host, load.workload()?, threads);
    Ok(Asked {
        load,
        question: Question { place, locks },
        report,
    })
}

/// Answers what `args` ask.
pub fn run(args: &Args) -> Result<(), Exit> {
    let Asked {
        load,
        question,
        report,
    } = asked(args)?;
    let cpus = question.place.machine.cpus();
    if let Some(report) = &report
        && ![0, cpus].contains(&report.cpus)
        && !args.how.quiet
    {
        crate::tell!(
            "overlock-lab: the report is of {} CPUs, and the machine of this answer has {cpus}: \
             --machine and --cores choose another",
            report.cpus
        );
    }
    let begin = report.map_or_else(String::new, |report| report.describe());
    let told = |text: String| print(io::stdout().lock(), (begin + &text).as_bytes());
    if load.is_none() {
        let files = Files::open([("--json", &args.how.json)])?;
        if !args.how.quiet && !files.use_stdout() {
            told(load.describe())?;
        }
        if args.svg.is_some() && !args.how.quiet {
            crate::tell!("overlock-lab: there is nothing to draw");
        }
        return files.write([&|out| json::write(out, &load)]);
    }
    let files = Files::open([("--svg", &args.svg), ("--json", &args.how.json)])?;
    let options = args.how.options()?;
    let advice = question.answer(&options, args.svg.is_some(), args.how.progress());
    let advice = advice.map_err(how::failed)?;
    if !args.how.quiet && !files.use_stdout() {
        told(advice.describe())?;
    }
    files.write([&|out| advice.draw(out), &|out| json::write(out, &advice)])?;
    match advice.locks.is_empty() {
        true => Err(Exit::Failed("no lock could be simulated".to_owned())),
        false => Ok(()),
    }
}

/// Checks the options as [`run`] does.
pub fn check(args: &Args) -> Result<(), Exit> {
    asked(args).map(drop)
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab sim advise --section 200ns --gap 2us              on this machine
  overlock-lab sim advise --machine epyc-9654 --section 200ns --gap 2us --threads 128 --svg epyc.svg
  overlock-lab sim advise --machine my.toml --section 1us --gap 10us --locks overlock,std,glibc
  overlock-lab sim advise --report r.json                        the hottest lock of a profile

Exit codes: 0 done, 1 no lock could be simulated or a result could not be written, 2 bad use, 130 interrupted.";
