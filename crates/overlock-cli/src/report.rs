//! `overlock report`

use std::io;
use std::path::{Path, PathBuf};

use crate::exit::Exit;
use crate::stat::{self, Document, Files, Mapping, Process};
use crate::terminal::{print, width};

/// Read what a program has counted: one that runs, or was started without `overlock run`
///
/// A program with liboverlock_preload.so in LD_PRELOAD and OVERLOCK_STAT=1 leaves a table in
/// OVERLOCK_STAT_DIR, /dev/shm or TMPDIR: overlock-stat.PID. A daemon that `overlock run --stat`
/// has started goes on counting when that has ended; `overlock run` says where.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  overlock report 1234\n  overlock report /dev/shm/overlock-stat.1234\n  overlock report --report r.json /dev/shm/overlock-run.h8Xk2a"
)]
pub struct Args {
    /// Tables, directories of tables, or ids of processes that run
    #[arg(required = true, value_name = "TABLE|DIR|PID")]
    tables: Vec<PathBuf>,

    #[command(flatten)]
    files: stat::Args,
}

/// Prints the report.
pub fn run(args: &Args) -> Result<(), Exit> {
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

/// Reads the tables of one argument.
fn read(path: &Path) -> Result<Vec<Process>, Exit> {
    let refused = |error| Exit::usage(format!("{}: {error}", path.display()));
    if path.is_dir() {
        if let Some(text) = stat::without_table(path) {
            stat::say(&text);
        }
        return stat::processes(path, 0).map_err(refused);
    }
    let pid = path.to_str().and_then(|name| name.parse().ok());
    let table = match pid {
        Some(pid) if !path.exists() => stat::open(pid)?.1,
        _ => Mapping::open(path).map_err(refused)?,
    };
    Ok(vec![Process::read(&table, &mut stat::Symbols::new())])
}
