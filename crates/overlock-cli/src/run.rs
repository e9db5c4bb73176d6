//! `overlock run`

mod compare;
mod counted;
mod empty;
mod launch;
mod library;
mod loaders;
mod program;
mod reports;
mod watched;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use clap::ValueEnum;

use crate::check::{self, Report, document::Document};
use crate::exit::Exit;
use crate::files::Files;
use crate::profile::{self, Plan};
use crate::stat;
use compare::Locks;
pub use counted::{Tables, print};
pub use launch::{Watch, end_at_signals, run as launch, without_signals};
use reports::Reports;
pub use reports::Tally;

/// Run a program with our locks in place of the C library's
///
/// The program needs no changes, and not to be built anew: a library that is loaded before the C
/// library takes over pthread_mutex_t and its kind. The program must be linked dynamically to
/// glibc.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The lock behind `pthread_mutex_t`, and with it behind `std::mutex` and most others
    #[arg(long, value_enum, value_name = "LOCK", default_value_t)]
    mutex: Lock,

    /// The lock behind `pthread_rwlock_t`
    #[arg(long, value_enum, value_name = "LOCK", default_value_t)]
    rwlock: Lock,

    /// Leave the C library's locks in place: threads only spin for a moment before they sleep
    ///
    /// They do so in front of waits for conditions, semaphores, futexes and events, while a CPU
    /// would otherwise be idle. With `--mutex glibc --rwlock glibc` they do not: nothing of ours is
    /// behind any object then.
    #[arg(long, conflicts_with_all = ["mutex", "rwlock", "lockdep"])]
    spin_only: bool,

    /// How long a thread spins before it sleeps: as long as a wake-up takes, not at all, or so many
    /// microseconds, of which 50 count
    #[arg(long, value_name = "auto|off|MICROSECONDS", value_parser = spin, env = SPIN, hide_env_values = true)]
    spin: Option<String>,

    /// Say nothing of the locks that were replaced: else a line on the standard error says how
    /// many, when the program has ended without a report
    #[arg(long, short)]
    quiet: bool,

    /// Say which threads wait for which locks, for whom, and why: `overlock profile`, without a
    /// file unless one is named
    ///
    /// Waits for conditions, semaphores and barriers stand in a table of their own. The tables go
    /// to the standard error when the program has ended, and at each SIGUSR2 that this program
    /// gets.
    #[arg(long)]
    stat: bool,

    #[command(
        flatten,
        next_help_heading = "Options of `overlock profile`, which mean --stat"
    )]
    profile: profile::Options,

    /// Run the program in N pairs, with the C library's locks and with ours, and say what differs
    ///
    /// The order of a pair alternates. Time, CPU time and context switches are medians with their
    /// spread, and what is noise is called so. Waits are those of one more run of each sort. The
    /// program reads nothing, and its standard output goes nowhere. Waits for a mutex at the end of
    /// a wait for a condition are left out, since nobody sees the C library's. --report writes all
    /// runs as JSON.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ALONE)]
    compare: Option<u32>,

    /// Report orders of locks that can deadlock: `overlock check`
    ///
    /// Without --stat, --report has these reports: as JSON if its name ends in .json, as SARIF
    /// 2.1.0 if it ends in .sarif, else as text.
    #[arg(long)]
    lockdep: bool,

    /// Warn also of locks that are held while a thread sleeps until a moment or an event, or waits
    /// for a semaphore
    #[arg(long, requires = "lockdep")]
    lockdep_sleep: bool,

    /// Report also cycles of orders that one thread alone has made, or threads that never met
    #[arg(long, requires = "lockdep")]
    lockdep_all: bool,

    /// With --lockdep, exit with this code if there was a report, whatever the program's own is; 0
    /// for the program's [default: 3]
    #[arg(long, value_name = "N", requires = "lockdep")]
    error_exitcode: Option<u8>,

    #[command(
        flatten,
        next_help_heading = "Options of `overlock check`, with --lockdep"
    )]
    check: check::Options,

    #[command(flatten)]
    launch: Launch,
}

/// The options that `--compare` has no use for.
const ALONE: [&str; 18] = [
    "stat",
    "lockdep",
    "spin_only",
    "threshold",
    "seconds",
    "json",
    "html",
    "flame",
    "folded",
    "pprof",
    "firefox",
    "perfetto",
    "by",
    "all_frames",
    "events",
    "objects",
    "svg",
    "wrappers",
];

/// The program, and the library that it is run with.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Launch {
    /// The library [default: the one beside this program, else the one built into it]
    #[arg(long, value_name = "FILE", env = library::VARIABLE, hide_env_values = true)]
    library: Option<PathBuf>,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM", value_hint = clap::ValueHint::CommandWithArguments)]
    program: Vec<OsString>,
}

impl Launch {
    /// The program and its arguments.
    pub fn words(&self) -> &[OsString] {
        &self.program
    }
}

impl Args {
    /// Those of `overlock profile`, with our locks or with the C library's.
    pub fn profiled(launch: Launch, is_glibc: bool, profile: profile::Options) -> Self {
        let lock = match is_glibc {
            true => Lock::Glibc,
            false => Lock::Overlock,
        };
        Self {
            mutex: lock,
            rwlock: lock,
            profile,
            launch,
            ..Self::default()
        }
    }

    /// Whose mutexes the program has, and whose reader-writer locks.
    fn locks(&self) -> (Lock, Lock) {
        match self.spin_only {
            true => (Lock::Glibc, Lock::Glibc),
            false => (self.mutex, self.rwlock),
        }
    }

    /// Whether the report's file has what the validator says.
    fn reports_orders(&self) -> bool {
        self.lockdep && !self.stat
    }

    /// The options of the profile; `None` if there is to be none.
    fn profiled_by(&self) -> Option<profile::Options> {
        let mut options = self.profile.clone();
        if self.reports_orders() {
            options.tables.report = None;
        }
        (self.stat || options.is_given()).then_some(options)
    }
}

/// Run a program and report lock orders that can deadlock
///
/// The same as `overlock run --lockdep`. It sees the mutexes and reader-writer locks of the C
/// library, not those of Rust, Go and Java themselves. The last line on the standard error says how
/// many locks it saw, and how many reports there were.
#[derive(Debug, clap::Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct CheckArgs {
    /// Warn also of locks that are held while a thread sleeps until a moment or an event, or waits
    /// for a semaphore
    #[arg(long)]
    sleep: bool,

    /// Report also cycles of orders that one thread alone has made, or threads that never met
    #[arg(long)]
    all: bool,

    /// Write the reports to a file too: as JSON if its name ends in .json, as SARIF 2.1.0 if it
    /// ends in .sarif, else as text
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    report: Option<PathBuf>,

    #[command(flatten)]
    reports: check::Options,

    /// Exit with this code if there was a report, whatever the program's own is; 0 for the
    /// program's [default: 3]
    #[arg(long, value_name = "N")]
    error_exitcode: Option<u8>,

    #[command(flatten)]
    launch: Launch,
}

impl From<CheckArgs> for Args {
    fn from(check: CheckArgs) -> Self {
        let mut profile = profile::Options::default();
        profile.tables.report = check.report;
        Args {
            lockdep: true,
            profile,
            lockdep_sleep: check.sleep,
            lockdep_all: check.all,
            error_exitcode: check.error_exitcode,
            check: check.reports,
            launch: check.launch,
            ..Args::default()
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
enum Lock {
    /// The recommended lock
    #[default]
    Overlock,
    /// The C library's
    Glibc,
}

/// The variable that the library reads.
const SPIN: &str = "OVERLOCK_SPIN";

fn spin(text: &str) -> Result<String, String> {
    match text {
        "auto" | "off" => Ok(text.to_owned()),
        _ => match text.parse::<u32>() {
            Ok(_) => Ok(text.to_owned()),
            Err(_) => Err("neither auto, off nor a number of microseconds".to_owned()),
        },
    }
}

/// Runs the program. Does not return where the program can take this one's place.
pub fn run(args: &Args) -> Result<(), Exit> {
    if args.lockdep && (args.mutex, args.rwlock) == (Lock::Glibc, Lock::Glibc) {
        return Err(Exit::usage(
            "--lockdep looks at our locks, and --mutex glibc --rwlock glibc leaves none",
        ));
    }
    if let Some(option) = args.check.first().filter(|_| !args.lockdep) {
        return Err(Exit::usage(format!("{option} goes with --lockdep")));
    }
    if let Some(pairs) = args.compare {
        let library = library::find(args.launch.library.as_deref())?;
        let program = program::find(&args.launch.program)?;
        let preload = library::preload(&library)?;
        let command = |locks| one_of_many(args, &program, locks, &preload);
        return compare::run(args, pairs, &program, command);
    }
    let (program, mut command) = prepared(args)?;
    let report = args.profile.tables.report.as_deref();
    let report = report.filter(|_| args.reports_orders()).map(Path::to_owned);
    let check_file = Files::open([("--report", &report)])?;
    let mut reports = None;
    if args.lockdep {
        let reports = reports.insert(Reports::start(args.check.suppressions()?)?);
        command
            .env("OVERLOCK_LOCKDEP", "1")
            .env("OVERLOCK_LOCKDEP_READER", reports.fifo())
            .env("OVERLOCK_LOCKDEP_TALLY", reports.tally());
    }
    if args.lockdep_sleep {
        command.env("OVERLOCK_LOCKDEP_SLEEP", "1");
    }
    if args.lockdep_all {
        command.env("OVERLOCK_LOCKDEP_ALL", "1");
    }
    let profiled = args.profiled_by();
    let status = match (&profiled, args.lockdep) {
        (Some(options), _) => {
            let plan = Plan {
                words: args.launch.words(),
                mutex: name(args.locks().0).to_string_lossy().into_owned(),
                rwlock: name(args.locks().1).to_string_lossy().into_owned(),
                options,
                is_shown: args.stat,
            };
            profile::start(&plan, &program, command)
        }
        (None, true) => {
            let status = launch::run(&program, command, &mut ());
            end_at_signals().map_err(|error| Exit::Failed(format!("signals: {error}")))?;
            status
        }
        (None, false) => {
            // The program takes this process's place.
            if !args.quiet {
                command.env("OVERLOCK_SUMMARY", std::process::id().to_string());
            }
            return Err(program::refused(&program, &command.exec()));
        }
    };
    let found = reports.map(Reports::finish);
    let status = status?;
    match found {
        Some(found) => Err(checked(args, (report, check_file), status, &found)),
        None => Err(Exit::Program(status)),
    }
}

/// The exit code where there was a report.
const FOUND: u8 = 3;

/// The end of a run with the validator: says what it found, and writes that to a file.
fn checked(
    args: &Args,
    (path, file): (Option<PathBuf>, Files<1>),
    status: ExitStatus,
    (tally, reports): &(Tally, Vec<Report>),
) -> Exit {
    stat::say(&format!("overlock: {tally}\n"));
    if let Some(path) = &path {
        let words = args.launch.program.iter();
        let document = Document {
            overlock: env!("CARGO_PKG_VERSION"),
            command: words
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            sum: tally,
            reports,
        };
        let text = args.check.text(path, &document);
        if let Err(exit) = file.write([&|out| out.write_all(text.as_bytes())]) {
            return exit;
        }
    }
    match args.error_exitcode.unwrap_or(FOUND) {
        code @ 1.. if tally.reports > 0 => {
            Exit::Program(ExitStatus::from_raw(i32::from(code) << 8))
        }
        _ => Exit::Program(status),
    }
}

/// The program, and the command that runs it with the locks and spins that the arguments say.
fn prepared(args: &Args) -> Result<(PathBuf, Command), Exit> {
    let (mutex, rwlock) = args.locks();
    let library = library::find(args.launch.library.as_deref())?;
    let words = &args.launch.program;
    let program = program::find(words)?;
    let mut command = Command::new(&program);
    command
        .arg0(&words[0])
        .args(&words[1..])
        .env("LD_PRELOAD", library::preload(&library)?)
        .env("OVERLOCK_MUTEX", name(mutex))
        .env("OVERLOCK_RWLOCK", name(rwlock))
        .env_remove("OVERLOCK_SPIN_ONLY")
        .env_remove("OVERLOCK_SUMMARY")
        .env_remove("OVERLOCK_STAT")
        .env_remove("OVERLOCK_STAT_AGAIN")
        .env_remove("OVERLOCK_PROFILE")
        .env_remove("OVERLOCK_LOCKDEP")
        .env_remove("OVERLOCK_LOCKDEP_SLEEP")
        .env_remove("OVERLOCK_LOCKDEP_ALL")
        .env_remove("OVERLOCK_LOCKDEP_READER")
        .env_remove("OVERLOCK_LOCKDEP_TALLY");
    if args.spin_only {
        command.env("OVERLOCK_SPIN_ONLY", "1");
    }
    if let Some(spin) = &args.spin {
        command.env(SPIN, spin);
    }
    Ok((program, command))
}

/// A run of a comparison. That with the C library's locks has nothing of ours in its environment.
fn one_of_many(args: &Args, program: &Path, locks: Locks, preload: &OsStr) -> Command {
    let words = &args.launch.program;
    let mut command = Command::new(program);
    command.arg0(&words[0]).args(&words[1..]);
    for (variable, _) in std::env::vars_os() {
        if variable.as_encoded_bytes().starts_with(b"OVERLOCK_") {
            command.env_remove(variable);
        }
    }
    let (mutex, rwlock) = match locks {
        Locks::Theirs => {
            if let Some(others) = library::preloaded_others() {
                command.env("LD_PRELOAD", others);
            }
            return command;
        }
        Locks::TheirsCounted => (Lock::Glibc, Lock::Glibc),
        Locks::Ours => (args.mutex, args.rwlock),
    };
    command
        .env("LD_PRELOAD", preload)
        .env("OVERLOCK_STAT_AGAIN", "0")
        .env("OVERLOCK_MUTEX", name(mutex))
        .env("OVERLOCK_RWLOCK", name(rwlock));
    if let Some(spin) = &args.spin {
        command.env(SPIN, spin);
    }
    command
}

fn name(value: impl ValueEnum) -> OsString {
    let value = value.to_possible_value();
    OsStr::new(value.as_ref().map_or("", |value| value.get_name())).to_owned()
}

const CHECK_EXAMPLES: &str = "\
Examples:
  overlock check -- ./server --port 8080
  overlock check --report locks.sarif -- ./tests     for a service that reviews code
  overlock check --suppressions known -- ./tests     without the reports that the file names
  overlock check --error-exitcode 0 -- ./tests       the program's own exit code, in any case
  overlock check --sleep -- ./server                 also locks that are held while a thread sleeps

Exit codes: 3 if there was a report; else the program's; where a signal ended it, this program ends by the same. 1 a file cannot be written, 2 bad use, 126 the program cannot be run, 127 it is not there.";

const EXAMPLES: &str = "\
Examples:
  overlock run -- ./server --port 8080
  overlock run --stat -- ./server                    which locks threads wait for, and where
  overlock run --report r.json --svg r.svg -- ./server
  overlock run --compare 10 -- ./job                 10 runs with the C library's locks, 10 with ours
  overlock run --spin-only -- ./server               the C library's locks, and cheaper wake-ups
  overlock run --spin off -- ./server                our locks, and no spins before sleeps

Exit codes: the program's; where a signal ended it, this program ends by the same. 1 a report cannot be written, 2 bad use, 126 the program cannot be run, 127 it is not there.";
