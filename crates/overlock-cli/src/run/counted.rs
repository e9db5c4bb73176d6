//! `overlock run --stat`: the directory for the tables, and what becomes of them.

use std::env;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Instant;

use tempfile::TempDir;

use super::launch::{self, Watch};
use super::{Args, name};
use crate::exit::Exit;
use crate::measure::progress;
use crate::stat::{self, Document, Files, Process};

/// Memory, where there is such a place: the tables are written all the time.
const SHM: &str = "/dev/shm";

/// The tables of the program that runs.
#[derive(Debug)]
struct Tables {
    dir: TempDir,
    child: u32,
}

impl Tables {
    fn processes(&self) -> Result<Vec<Process>, Exit> {
        stat::processes(self.dir.path(), self.child)
            .map_err(|error| Exit::Failed(format!("cannot read what was counted: {error}")))
    }
}

impl Watch for Tables {
    fn started(&mut self, pid: u32) {
        self.child = pid;
    }

    fn asked(&mut self) -> bool {
        match self.processes() {
            Ok(processes) => print(&processes),
            Err(exit) => {
                exit.report();
            }
        }
        true
    }
}

/// Runs the program to its end, and reports.
pub fn run(args: &Args, program: &Path, mut command: Command) -> Result<ExitStatus, Exit> {
    let files = Files::open(&args.files)?;
    let mut tables = Tables {
        dir: directory()?,
        child: 0,
    };
    command
        .env("OVERLOCK_STAT", "1")
        .env("OVERLOCK_STAT_DIR", tables.dir.path());
    let start = Instant::now();
    let status = launch::run(program, command, &mut tables)?;
    let seconds = start.elapsed().as_secs_f64();
    let processes = tables.processes()?;
    if !files.use_stdout() || args.stat {
        print(&processes);
    }
    let words = args.program.iter();
    files.write(&Document {
        command: words
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        mutex: Some(name(args.mutex).to_string_lossy().into_owned()),
        rwlock: Some(name(args.rwlock).to_string_lossy().into_owned()),
        seconds: Some(seconds),
        ..Document::of(processes)
    })?;
    Ok(status)
}

/// The standard output is the program's.
fn print(processes: &[Process]) {
    let width = progress::width_of(io::stderr());
    eprint!("{}", stat::describe(processes, width));
}

fn directory() -> Result<TempDir, Exit> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("overlock-run.");
    builder
        .tempdir_in(SHM)
        .or_else(|_| builder.tempdir_in(env::temp_dir()))
        .map_err(|error| Exit::Failed(format!("no place for what --stat counts: {error}")))
}
