//! `overlock profile`

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::files::{self, Files};
use super::{attach, describe, why};
use crate::exit::Exit;
use crate::run::{self, Launch};
use crate::stat;
use crate::terminal::{print, width};

/// Run a program, and say which threads wait for which locks, for whom, and why
///
/// The table has the locks with the longest waits. Behind it stand the longest waits with those
/// that they waited for, and one line about what to look at. The files have all waits, each with
/// the parts that it is made of. `overlock run --stat` is the same, and keeps no profile unless a
/// file is named.
///
/// With a process's id in place of a program, a process that runs already is looked at from
/// outside, by the kernel's BPF, which needs root, or CAP_BPF and CAP_PERFMON. Nothing of it is
/// changed. It may be one that `overlock run --stat` has started: its counts stay for `top` and
/// `report`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Whose locks the program has: the C library's are what it runs with elsewhere
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t)]
    locks: Locks,

    #[command(flatten)]
    options: Options,

    #[command(flatten)]
    launch: Launch,
}

/// Options of a profile, and the files that are made of it.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Options {
    /// Leave out waits that are shorter: a number with ns, us, ms or s [default: 0us]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub threshold: Option<Duration>,

    /// End the program by SIGTERM after so long; or the look at a process that runs already
    #[arg(long, value_name = "N", value_parser = seconds)]
    pub seconds: Option<Duration>,

    #[command(flatten)]
    pub files: files::Args,

    #[command(flatten)]
    pub tables: stat::Args,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
enum Locks {
    /// Ours
    #[default]
    Overlock,
    /// The C library's own, unchanged
    Glibc,
}

/// The file where no option names one.
const DEFAULT: &str = "overlock-profile.json";

fn time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err("a number with ns, us, ms or s, like 10us".to_owned()),
    };
    let number: f64 = (digits.parse()).map_err(|_| format!("{digits} is not a number"))?;
    let is_time = (0.0..1e18).contains(&(number * unit));
    is_time
        .then(|| Duration::from_nanos((number * unit) as u64))
        .ok_or_else(|| "too long".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().ok().filter(|number| *number > 0.0);
    let time = number.and_then(|number| Duration::try_from_secs_f64(number).ok());
    time.ok_or_else(|| "not a number of seconds".to_owned())
}

/// Runs the program, and reports.
pub fn run(args: &Args) -> Result<(), Exit> {
    let mut options = args.options.clone();
    if options.files.first().is_none() {
        options.files.json = Some(PathBuf::from(DEFAULT));
    }
    match args.pid()? {
        Some(pid) => attached(args.locks, pid, &options),
        None => {
            let is_glibc = args.locks == Locks::Glibc;
            run::run(&run::Args::profiled(args.launch.clone(), is_glibc, options))
        }
    }
}

impl Options {
    /// Whether any of them was given.
    pub fn is_given(&self) -> bool {
        self.threshold.is_some()
            || self.seconds.is_some()
            || self.files.is_given()
            || self.tables.is_given()
    }

    /// Shorter waits are left out.
    pub fn threshold_ns(&self) -> u64 {
        self.threshold.unwrap_or_default().as_nanos() as u64
    }
}

impl Args {
    /// The process that runs already: a number in place of a program.
    fn pid(&self) -> Result<Option<u32>, Exit> {
        let [first, rest @ ..] = self.launch.words() else {
            return Ok(None);
        };
        let pid = first.to_str().and_then(|word| word.parse().ok());
        match (pid, rest) {
            (Some(pid), [_, ..]) => Err(Exit::usage(format!(
                "process {pid} takes no arguments; options stand before its id"
            ))),
            (pid, _) => Ok(pid),
        }
    }
}

/// Looks at a process that runs already, and reports.
fn attached(locks: Locks, pid: u32, options: &Options) -> Result<(), Exit> {
    if locks == Locks::Glibc {
        return Err(Exit::usage(
            "--locks chooses those of a program that is started: a process has its own",
        ));
    }
    if let Some(option) = options.tables.of_a_table() {
        return Err(Exit::usage(format!(
            "{option} needs a table, which a program has that is started"
        )));
    }
    let named = &options.files;
    let files = Files::open(named)?;
    stat::extend(&options.tables.wrappers)?;
    let profile = attach::attach(pid, options.seconds, options.threshold_ns())?;
    if !files.use_stdout() {
        let columns = width().map_or(stat::WIDTH, usize::from);
        let text = describe(&profile, named.shown(), width())
            + &why::describe(&profile, named.shown(), columns);
        print(io::stdout().lock(), text.as_bytes())?;
    }
    files.write(&profile)?;
    named.say_written();
    Ok(())
}

const EXAMPLES: &str = "\
Examples:
  overlock profile -- ./server --port 8080
  overlock profile --locks glibc -- ./server         the C library's locks, as in production
  overlock profile --threshold 10us --json p.json -- ./job
  overlock profile --seconds 30 -- ./server          ends it after 30 seconds
  overlock profile --seconds 10 4711                 a process that runs already

Exit codes: the program's; where a signal ended it, this program ends by the same. 1 a report cannot be written, 2 bad use, 126 the program cannot be run, or the kernel refuses BPF, 127 it is not there.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("10us"), Ok(Duration::from_micros(10)));
        assert_eq!(time("1.5ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(time("0ns"), Ok(Duration::ZERO));
        for wrong in ["10", "us", "-1us", "1m", "nans", "1e30s", "infs"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "-1", "x", "nan", "1e300"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
