//! The tables of processes, and where they are.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use overlock_shared::{FAILED, PREFIX};
use serde::Serialize;

use super::mapping::Mapping;
use super::rows::{self, Event, Row};
use super::symbols::Symbols;

/// The counts of one process.
#[derive(Debug, Serialize)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// The program.
    pub program: String,
    /// Locks and call sites, those with the longest waits first.
    pub locks: Vec<Row>,
    /// Waits for events, by call site, the longest waits first.
    pub events: Vec<Event>,
    /// Whether it took a mutex or a reader-writer lock that is counted.
    pub took_locks: bool,
    /// Acquisitions and waits for which there was no room.
    pub lost: u64,
    /// Waits whose holders found no room.
    pub lost_holders: u64,
    /// Files of code that found no room.
    pub lost_modules: u32,
}

impl Process {
    /// Reads the table as it is now. The symbols stay with the caller, who may call again.
    pub fn read(table: &Mapping, symbols: &mut Symbols) -> Self {
        rows::meet(table, symbols);
        let header = &table.header;
        let lost = |count: &AtomicU64| count.load(Relaxed);
        Self {
            pid: header.pid.load(Relaxed),
            program: symbols.program(),
            locks: rows::rows(table, symbols),
            events: rows::events(table, symbols),
            took_locks: header.used.load(Relaxed) != 0,
            lost: lost(&header.lost_entries),
            lost_holders: lost(&header.lost_holders),
            lost_modules: header.lost_modules.load(Relaxed),
        }
    }

    /// Whether there is nothing to show of it.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty() && self.events.is_empty()
    }

    /// Nanoseconds spent waiting for locks, in all.
    pub fn wait_ns(&self) -> u64 {
        self.locks.iter().map(|row| row.wait.total_ns).sum()
    }

    /// The same for events.
    pub fn events_ns(&self) -> u64 {
        self.events.iter().map(|event| event.wait.total_ns).sum()
    }
}

/// All that the processes under a directory have counted. `first` comes first, and then those with
/// the longest waits. Processes that have counted nothing are left out, except for `first` if it
/// took no lock, and if there are no others.
pub fn processes(dir: &Path, first: u32) -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for path in all(dir, PREFIX)? {
        // A table under construction has no rows yet.
        let Ok(table) = Mapping::open(&path) else {
            continue;
        };
        found.push(Process::read(&table, &mut Symbols::new()));
    }
    if !found.iter().all(Process::is_empty) {
        found.retain(|process| !process.is_empty() || process.pid == first && !process.took_locks);
    }
    found.sort_by_key(|process| (process.pid != first, std::cmp::Reverse(process.wait_ns())));
    Ok(found)
}

/// The files in a directory whose names begin so.
fn all(dir: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().as_bytes().starts_with(prefix.as_bytes()) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// The message about processes that could make no table there; `None` where all could.
pub fn without_table(dir: &Path) -> Option<String> {
    let ids = |path: PathBuf| path.extension()?.to_str()?.parse().ok();
    let pids: Vec<u32> = (all(dir, FAILED).ok()?.into_iter().filter_map(ids)).collect();
    let which = match &pids[..] {
        [] => return None,
        [pid] => format!("process {pid}"),
        [pids @ .., last] => {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            format!("processes {} and {last}", pids.join(", "))
        }
    };
    Some(format!(
        "overlock: {which} counted nothing: no table could be made in {}\n",
        dir.display()
    ))
}
