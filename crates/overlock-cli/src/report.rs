//! `overlock report`

use std::io;
use std::path::PathBuf;

use crate::exit::Exit;
use crate::measure::progress;
use crate::stat::{self, Document, Files, Mapping, Process};

/// Read what a program has counted that was started without `overlock run`
///
/// A program with liboverlock_pthread.so in LD_PRELOAD and OVERLOCK_STAT=1 leaves a table in
/// OVERLOCK_STAT_DIR, /dev/shm or TMPDIR: overlock-stat.PID.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  overlock report /dev/shm/overlock-stat.1234\n  overlock report --report r.json /dev/shm/overlock-stat.1234"
)]
pub struct Args {
    /// The tables
    #[arg(required = true, value_name = "TABLE")]
    tables: Vec<PathBuf>,

    #[command(flatten)]
    files: stat::Args,
}

/// Prints the report.
pub fn run(args: &Args) -> Result<(), Exit> {
    let files = Files::open(&args.files)?;
    let mut processes = Vec::new();
    for path in &args.tables {
        let table = Mapping::open(path)
            .map_err(|error| Exit::usage(format!("{}: {error}", path.display())))?;
        processes.push(Process::read(&table, &mut stat::Symbols::new()));
    }
    if !files.use_stdout() {
        let text = stat::describe(&processes, progress::width());
        crate::print(io::stdout().lock(), text.as_bytes())?;
    }
    files.write(&Document::of(processes))
}
