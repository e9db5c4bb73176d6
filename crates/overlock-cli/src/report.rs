//! `overlock report`

use std::io;
use std::path::{Path, PathBuf};

use crate::exit::Exit;
use crate::profile;
use crate::stat::{self, Document, Ended, Files, Mapping, Process};
use crate::terminal::{print, width};

/// Read what a program has counted, or make files of a profile
///
/// The program may run still, or have been started without `overlock run`.
///
/// A program with liboverlock_preload.so in LD_PRELOAD and OVERLOCK_STAT=1 leaves a table in
/// OVERLOCK_STAT_DIR, /dev/shm or TMPDIR: overlock-stat.PID. A daemon that `overlock run --stat`
/// has started goes on counting when that has ended; `overlock run` says where.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  overlock report 1234\n  overlock report /dev/shm/overlock-stat.1234\n  overlock report --report r.json /dev/shm/overlock-run.h8Xk2a\n  overlock report profile.json --flame waits.svg\n\nExit codes: 1 a file cannot be written, 2 bad use, or there is nothing to read."
)]
pub struct Args {
    /// Tables, directories of tables, ids of processes that run; or one profile
    #[arg(
        required_unless_present = "list_wrappers",
        value_name = "TABLE|DIR|PID|PROFILE"
    )]
    tables: Vec<PathBuf>,

    /// Print the rules by which functions are wrappers of locks, which name no row
    #[arg(long, exclusive = true)]
    list_wrappers: bool,

    #[command(flatten)]
    files: stat::Args,

    #[command(flatten)]
    profile: profile::files::Args,
}

/// Prints the report.
pub fn run(args: &Args) -> Result<(), Exit> {
    if args.list_wrappers {
        return print(io::stdout().lock(), stat::built_in().as_bytes());
    }
    if args.tables.iter().any(|path| profile::is_profile(path)) {
        return of_profile(args);
    }
    if let Some(option) = args.profile.first() {
        return Err(Exit::usage(format!(
            "{option} is made of a profile, and not of a table"
        )));
    }
    let files = Files::open(&args.files)?;
    let mut processes = Vec::new();
    for path in &args.tables {
        processes.extend(read(path)?);
    }
    if !files.use_stdout() {
        let text = stat::describe(&processes, width(), args.files.objects);
        print(io::stdout().lock(), text.as_bytes())?;
    }
    files.write(&Document::of(processes))
}

/// Prints the report of a profile that was kept.
fn of_profile(args: &Args) -> Result<(), Exit> {
    let [path] = &args.tables[..] else {
        return Err(Exit::usage(
            "a profile is reported alone; `overlock merge` makes one of several",
        ));
    };
    if let Some(option) = args.files.of_a_table() {
        return Err(Exit::usage(format!(
            "{option} is made of a table, and not of a profile"
        )));
    }
    let files = profile::files::Files::open(&args.profile)?;
    let profile = profile::read(path)?;
    if !files.use_stdout() {
        let shown = args.profile.shown();
        let columns = width().map_or(stat::WIDTH, usize::from);
        let text = profile::describe(&profile, shown, width())
            + &profile::why::describe(&profile, shown, columns);
        print(io::stdout().lock(), text.as_bytes())?;
    }
    files.write(&profile)?;
    args.profile.say_written();
    Ok(())
}

/// Reads the tables of one argument.
fn read(path: &Path) -> Result<Vec<Process>, Exit> {
    let refused = |error| Exit::usage(format!("{}: {error}", path.display()));
    if path.is_dir() {
        if let Some(text) = stat::without_table(path) {
            stat::say(&text);
        }
        return stat::processes(path, &Ended::default(), 0, None).map_err(refused);
    }
    let pid = path.to_str().and_then(|name| name.parse().ok());
    let process = match pid {
        Some(pid) if !path.exists() => stat::Watched::open(pid)?.read().map_err(refused)?,
        _ => {
            let table = Mapping::open(path).map_err(refused)?;
            Process::read(&table, &mut stat::Symbols::new())
        }
    };
    Ok(vec![process])
}
