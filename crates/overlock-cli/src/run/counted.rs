//! The directory for the tables that programs count into, and what becomes of them.

use std::env;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use super::launch::{self, Watch};
use crate::exit::Exit;
use crate::stat::{self, Ended, Living, Process};
use crate::terminal::width_of;

/// The tables of the program that runs.
#[derive(Debug)]
pub struct Tables {
    dir: TempDir,
    child: u32,
    ended_ns: Option<u64>,
    /// Processes that have ended, whose files are removed.
    ended: Arc<Mutex<Ended>>,
    /// Whether single locks are shown.
    objects: bool,
}

impl Tables {
    /// A directory for them. `objects` are single locks, to be shown.
    pub fn new(objects: bool) -> Result<Self, Exit> {
        let dir = directory()?;
        launch::leaves_with_us(dir.path());
        Ok(Self {
            dir,
            child: 0,
            ended_ns: None,
            ended: Arc::default(),
            objects,
        })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Processes that have ended, for one who takes them in.
    pub fn taken(&self) -> Arc<Mutex<Ended>> {
        self.ended.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Ended> {
        // A thread that has panicked has left whole tables in it.
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the command count.
    pub fn count(&self, command: &mut Command) {
        command
            .env("OVERLOCK_STAT", "1")
            .env("OVERLOCK_STAT_DIR", self.dir());
    }

    /// Their contents.
    pub fn processes(&self) -> Result<Vec<Process>, Exit> {
        stat::processes(self.dir.path(), &self.lock(), self.child, self.ended_ns)
            .map_err(|error| Exit::Failed(format!("cannot read what was counted: {error}")))
    }

    /// Says which processes could make none, and how many are left out.
    pub fn say_lost(&self) {
        if let Some(text) = self.lock().without_rows() {
            stat::say(&text);
        }
        if let Some(text) = stat::without_table(self.dir()) {
            stat::say(&text);
        }
    }

    /// Daemons go on counting, and a message says where. Without daemons the tables are removed.
    pub fn leave(self) {
        let living = stat::living(self.dir.path());
        let Some(first) = living.first() else {
            return;
        };
        let others = match living.len() - 1 {
            0 => String::new(),
            1 => " and another".to_owned(),
            others => format!(" and {others} others"),
        };
        let which = match self.lock().is_empty() {
            true => "all tables",
            false => "tables of this run, without those reported above,",
        };
        let Living { pid, program } = first;
        stat::say(&format!(
            "overlock: {program} (process {pid}){others} will go on counting: see `overlock top {pid}`, \
             `overlock report {pid}`\n\
             overlock: {which} are in {}, which stays until you remove it\n",
            self.dir.keep().display()
        ));
    }
}

impl Watch for Tables {
    fn started(&mut self, pid: u32) {
        self.child = pid;
        self.lock().leave(pid);
    }

    fn look(&mut self) -> Option<Duration> {
        let dir = self.dir.path();
        (dir.starts_with(stat::SHM)).then(|| self.lock().look(dir))
    }

    fn ended(&mut self, _: &libc::rusage) {
        self.ended_ns = Some(stat::now_ns());
    }

    fn signalled(&mut self) -> bool {
        match self.processes() {
            Ok(processes) => print(&processes, self.objects),
            Err(exit) => {
                exit.report(crate::NAME);
            }
        }
        true
    }
}

/// Runs the program to its end for what it counts alone. Daemons that it leaves have no reader.
pub fn count(program: &Path, mut command: Command) -> Result<(ExitStatus, Vec<Process>), Exit> {
    let mut tables = Tables::new(false)?;
    tables.count(&mut command);
    let status = launch::run(program, command, &mut tables)?;
    Ok((status, tables.processes()?))
}

/// The standard output is the program's.
pub fn print(processes: &[Process], objects: bool) {
    let width = width_of(io::stderr());
    stat::say(&stat::describe(processes, width, objects));
}

fn directory() -> Result<TempDir, Exit> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("overlock-run.");
    let made = builder
        .tempdir_in(stat::SHM)
        .or_else(|_| builder.tempdir_in(env::temp_dir()))
        .and_then(|dir| open_to_others(&dir).map(|()| dir));
    made.map_err(|error| Exit::Failed(format!("no place for what --stat counts: {error}")))
}

/// Root's programs may become other users', who have to create their tables, and see and remove no
/// others.
fn open_to_others(dir: &TempDir) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    fs::set_permissions(dir.path(), Permissions::from_mode(0o1733))
}
