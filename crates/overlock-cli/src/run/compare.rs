//! `overlock run --compare N`: pairs of runs, one with the C library's locks and one with ours.
//!
//! The runs of a pair follow each other, and every second pair begins with ours, so that a machine
//! that becomes slower or faster does so for both. Ratios are those of pairs. The waits come from
//! two runs more, which are counted and therefore not timed.

mod figures;

use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use super::launch::{self, Watch};
use super::{Args, counted, name};
use crate::exit::Exit;
use crate::files::Files;
use crate::stat;
use crate::terminal::print_beside;
use figures::{Comparison, Run, Waits};

/// Whose locks a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// The C library's: nothing is loaded into the program.
    Theirs,
    /// Those that the options name.
    Ours,
    /// The C library's, with the library that counts their waits.
    TheirsCounted,
}

impl Locks {
    fn describe(self) -> &'static str {
        match self {
            Locks::Theirs | Locks::TheirsCounted => "the C library's locks",
            Locks::Ours => "our locks",
        }
    }
}

/// The kernel's account of a process that has ended, and of its children that it has waited for.
#[derive(Default)]
struct Usage(Option<libc::rusage>);

impl Watch for Usage {
    fn ended(&mut self, usage: &libc::rusage) {
        self.0 = Some(*usage);
    }
}

/// Runs so many pairs, and says what they took. `command` makes one.
pub fn run(
    args: &Args,
    pairs: u32,
    program: &Path,
    command: impl Fn(Locks) -> Command,
) -> Result<(), Exit> {
    let files = Files::open([("--report", &args.profile.tables.report)])?;
    let progress = Progress::new(2 * u64::from(pairs) + 2);
    let timed = |number, locks| {
        progress.show(number);
        time(program, command(locks)).and_then(|(status, run)| match status.success() {
            true => Ok(run),
            false => Err(stopped(&progress, number, locks, status)),
        })
    };
    let mut runs = Vec::new();
    for pair in 0..pairs {
        let number = 2 * u64::from(pair) + 1;
        runs.push(if pair % 2 == 0 {
            let theirs = timed(number, Locks::Theirs)?;
            (theirs, timed(number + 1, Locks::Ours)?)
        } else {
            let ours = timed(number, Locks::Ours)?;
            (timed(number + 1, Locks::Theirs)?, ours)
        });
    }
    let waits = |number, locks| {
        progress.show(number);
        let (status, processes) = counted::count(program, quiet(command(locks)))?;
        match status.success() {
            true => Ok(Waits::of(&processes)),
            false => Err(stopped(&progress, number, locks, status)),
        }
    };
    let last = 2 * u64::from(pairs);
    let waits = (
        waits(last + 1, Locks::TheirsCounted)?,
        waits(last + 2, Locks::Ours)?,
    );
    progress.end();
    let words = args.launch.program.iter();
    let comparison = Comparison {
        overlock: env!("CARGO_PKG_VERSION"),
        command: words
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        mutex: name(args.mutex).to_string_lossy().into_owned(),
        rwlock: name(args.rwlock).to_string_lossy().into_owned(),
        figures: figures::all(&runs),
        waits_glibc: waits.0,
        waits_overlock: waits.1,
        runs: runs.into_iter().map(Into::into).collect(),
    };
    print_beside(files.use_stdout(), &comparison.describe())?;
    files.write([&|out| overlock_report::json::write(out, &comparison)])
}

/// A run that failed ends the comparison: it says what the program does, and not what locks cost.
fn stopped(progress: &Progress, number: u64, locks: Locks, status: ExitStatus) -> Exit {
    progress.end();
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended in no known way".to_owned(),
    };
    stat::say(&format!(
        "overlock: run {number} of {}, with {}, {how}: there is no comparison\n",
        progress.runs,
        locks.describe()
    ));
    Exit::Program(status)
}

/// The program reads nothing and its output goes nowhere, in each run alike.
fn quiet(mut command: Command) -> Command {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Runs it once.
fn time(program: &Path, command: Command) -> Result<(ExitStatus, Run), Exit> {
    let mut usage = Usage::default();
    let start = Instant::now();
    let status = launch::run(program, quiet(command), &mut usage)?;
    let seconds = start.elapsed().as_secs_f64();
    let Some(usage) = usage.0 else {
        return Err(Exit::Failed("the kernel does not say what it took".into()));
    };
    let time = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok((
        status,
        Run {
            seconds,
            cpu_seconds: time(usage.ru_utime) + time(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw as f64,
            involuntary_switches: usage.ru_nivcsw as f64,
        },
    ))
}

/// Which run it is, on the standard error: one line that changes, or, in a file, a line for each.
struct Progress {
    runs: u64,
    is_terminal: bool,
}

impl Progress {
    fn new(runs: u64) -> Self {
        Self {
            runs,
            is_terminal: io::stderr().is_terminal(),
        }
    }

    fn show(&self, number: u64) {
        let (begin, end) = match self.is_terminal {
            true => ("\r", ""),
            false => ("", "\n"),
        };
        // An error of the standard error has no place to be told.
        let _ = write!(
            io::stderr(),
            "{begin}overlock: run {number} of {}{end}",
            self.runs
        );
    }

    /// Makes room for what is said next.
    fn end(&self) {
        if self.is_terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
