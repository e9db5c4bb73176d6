//! `overlock profile`

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use overlock_profile::{Profile, Run};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::collect::{self, Collector};
use super::files::{self, Files};
use super::{attach, describe, why};
use crate::exit::Exit;
use crate::run::{self, Launch, Tables, Watch};
use crate::stat;
use crate::terminal::{print, width, width_of};

/// Run a program, and say which threads wait for which locks, for whom, and why
///
/// The table is that of `overlock run --stat`. Behind it stand the longest waits with those that
/// they waited for, and one line about what to look at. The files have all waits, each with the
/// parts that it is made of.
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

    /// Leave out waits that are shorter: a number with ns, us, ms or s
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "0us")]
    threshold: Duration,

    /// End the program by SIGTERM after so long; or the look at a process that runs already
    #[arg(long, value_name = "N", value_parser = seconds)]
    seconds: Option<Duration>,

    /// Have the rules of this file, too, for functions that only pass calls on to a lock
    #[arg(long, value_name = "FILE")]
    wrappers: Vec<PathBuf>,

    #[command(flatten)]
    files: files::Args,

    #[command(flatten)]
    launch: Launch,
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
    let mut named = args.files.clone();
    if named.first().is_none() {
        named.json = Some(PathBuf::from(DEFAULT));
    }
    let files = Files::open(&named)?;
    stat::extend(&args.wrappers)?;
    if let Some(pid) = args.pid()? {
        return attached(args, pid, files, &named);
    }
    let is_glibc = args.locks == Locks::Glibc;
    let (program, mut command) = run::prepared(&run::Args::of(args.launch.clone(), is_glibc))?;
    let tables = Tables::new(false)?;
    tables.count(&mut command);
    let threshold_ns = args.threshold.as_nanos() as u64;
    command.env("OVERLOCK_PROFILE", threshold_ns.to_string());
    let collector = Collector::start(tables.dir(), tables.taken());
    let words = args.launch.words().iter();
    let date = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let mut run = Run {
        command: words
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        date_s: date.map_or(0, |date| date.as_secs()),
        began_ns: stat::now_ns(),
        source: "drop-in".to_owned(),
        locks: if is_glibc { "glibc" } else { "overlock" }.to_owned(),
        threshold_ns,
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        ..Run::default()
    };
    let mut watching = Watching {
        tables,
        seconds: args.seconds,
    };
    let status = run::launch(&program, command, &mut watching);
    run.seconds = (stat::now_ns() - run.began_ns) as f64 / 1e9;
    let collected = collector.finish();
    let status = status?;
    let tables = watching.tables;
    if !files.use_stdout() {
        run::print(&tables.processes()?, false);
    }
    tables.say_lost();
    run.quota = collected.quota;
    run.known = collected.known();
    let profile = Profile {
        run,
        ..collect::build(collected)
    };
    tables.leave();
    if !files.use_stdout() {
        let width = width_of(io::stderr()).map_or(stat::WIDTH, usize::from);
        stat::say(&why::describe(&profile, args.files.shown(), width));
    }
    files.write(&profile)?;
    named.say_written();
    Err(Exit::Program(status))
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
fn attached(args: &Args, pid: u32, files: Files, named: &files::Args) -> Result<(), Exit> {
    if args.locks == Locks::Glibc {
        return Err(Exit::usage(
            "--locks chooses those of a program that is started: a process has its own",
        ));
    }
    let profile = attach::attach(pid, args.seconds, args.threshold.as_nanos() as u64)?;
    if !files.use_stdout() {
        let columns = width().map_or(stat::WIDTH, usize::from);
        let text = describe(&profile, args.files.shown(), width())
            + &why::describe(&profile, args.files.shown(), columns);
        print(io::stdout().lock(), text.as_bytes())?;
    }
    files.write(&profile)?;
    named.say_written();
    Ok(())
}

/// The tables, and the end that the user has set.
#[derive(Debug)]
struct Watching {
    tables: Tables,
    seconds: Option<Duration>,
}

impl Watch for Watching {
    fn started(&mut self, pid: u32) {
        self.tables.started(pid);
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        if let (Some(seconds), Some(process)) = (self.seconds, process) {
            std::thread::spawn(move || {
                std::thread::sleep(seconds);
                // It may have ended by itself.
                let _ = pidfd_send_signal(process, Signal::TERM);
            });
        }
    }

    fn ended(&mut self, usage: &libc::rusage) {
        self.tables.ended(usage);
    }

    fn signalled(&mut self) -> bool {
        self.tables.signalled()
    }
}

const EXAMPLES: &str = "\
Examples:
  overlock profile -- ./server --port 8080
  overlock profile --locks glibc -- ./server         the C library's locks, as in production
  overlock profile --threshold 10us --json p.json -- ./job
  overlock profile --seconds 30 -- ./server          ends it after 30 seconds
  overlock profile --seconds 10 4711                 a process that runs already

Exit codes: the program's; where a signal ended it, this program ends by the same. 1 a report cannot be written, 2 bad use, 126 the program cannot be run, 127 it is not there.";

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
