//! The tables of processes, and where they are.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use overlock_shared::{FAILED, Header, ObjectKind, PREFIX, Table};
use serde::Serialize;

use super::ended::Ended;
use super::mapping::Mapping;
use super::rows::{self, Event, Kept, Row};
use super::symbols::{self, Symbols};

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
    /// Objects that stay the C library's, and are not counted.
    pub kept: Vec<Kept>,
    /// Threads that have used a lock, or waited.
    pub threads: u32,
    /// How long these have lived, in all; null where their end is not known.
    pub thread_ns: Option<u64>,
    /// Whether it is a program in Go, whose own locks are not seen.
    pub is_go: bool,
    /// Whether it took a mutex or a reader-writer lock that is counted.
    pub took_locks: bool,
    /// Walks through the callers of a call: most of what the statistics cost.
    pub walks: u64,
    /// Acquisitions and waits for which there was no room.
    pub lost: u64,
    /// Waits whose holders found no room.
    pub lost_holders: u64,
    /// Waits whose object found no room.
    pub lost_objects: u64,
    /// Files of code that found no room.
    pub lost_modules: u32,
}

/// The system says when a thread began in units of this.
const UNSURE_NS: u64 = 10_000_000;

impl Process {
    /// Reads the table as it is now. The symbols stay with the caller, who may call again.
    pub fn read(table: &Mapping, symbols: &mut Symbols) -> Self {
        let header = &table.header;
        meet(table, symbols);
        let lost = |count: &AtomicU64| count.load(Relaxed);
        let rows::Rows {
            locks,
            events,
            kept,
        } = rows::rows(table, symbols);
        Self {
            pid: header.pid.load(Relaxed),
            program: program(table, symbols),
            locks,
            events,
            kept,
            threads: header.threads.load(Relaxed),
            thread_ns: thread_ns(header, None),
            is_go: symbols.is_go(),
            took_locks: header.used.load(Relaxed) != 0,
            walks: lost(&header.walks),
            lost: lost(&header.lost_entries),
            lost_holders: lost(&header.lost_holders),
            lost_objects: lost(&header.lost_objects),
            lost_modules: header.lost_modules.load(Relaxed),
        }
    }

    /// Adds what the same process has counted in another table.
    pub fn join(&mut self, other: Self) {
        self.locks.extend(other.locks);
        self.events.extend(other.events);
        rows::sort(&mut self.locks, &mut self.events);
        self.kept.extend(other.kept);
        self.threads = self.threads.max(other.threads);
        self.thread_ns = self.thread_ns.max(other.thread_ns);
        self.is_go |= other.is_go;
        self.took_locks |= other.took_locks;
        self.walks += other.walks;
        self.lost += other.lost;
        self.lost_holders += other.lost_holders;
        self.lost_objects += other.lost_objects;
        self.lost_modules += other.lost_modules;
    }

    /// Whether there is nothing to show of it.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty() && self.events.is_empty() && self.kept.is_empty()
    }

    /// How long the threads were busy: they did not wait for events. Waits by the system call
    /// futex may be for locks. `None` where that is less than what is not known of it, as of a pool
    /// of threads that hardly ever have work.
    pub fn busy_ns(&self) -> Option<u64> {
        let events = self.events.iter();
        let events = events.filter(|event| event.kind != ObjectKind::Futex);
        let idle: u64 = events.map(|event| event.wait.total_ns).sum();
        let busy = self.thread_ns?.saturating_sub(idle);
        let unsure = u64::from(self.threads) * UNSURE_NS;
        (idle == 0 || busy >= unsure).then(|| busy.max(self.wait_ns()))
    }

    /// Nanoseconds spent waiting for locks, in all.
    pub fn wait_ns(&self) -> u64 {
        self.locks.iter().map(|row| row.wait.total_ns).sum()
    }
}

/// When the process began to count, in seconds since 1970.
fn since_s(header: &Header) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ago = now_ns().saturating_sub(header.began_ns.load(Relaxed));
    let began = now
        .unwrap_or_default()
        .checked_sub(Duration::from_nanos(ago));
    began.unwrap_or_default().as_secs()
}

/// The monotonic clock.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Brings the names up to what the table has.
pub fn meet(table: &Table, symbols: &mut Symbols) {
    let header = &table.header;
    symbols.set_process(header.pid.load(Relaxed), since_s(header));
    rows::meet(table, symbols);
}

/// The program's name: the first argument, without its directories.
pub fn program(table: &Table, symbols: &Symbols) -> String {
    let mut program = [0; overlock_shared::Path::MAX];
    let program = String::from_utf8_lossy(table.header.program.get(&mut program));
    match program.rsplit('/').next() {
        None | Some("") => symbols.program(),
        Some(name) => symbols::plain(name),
    }
}

/// Whether a process is there, and has not ended: one that nobody has waited for yet is still in
/// the list.
pub fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}

/// How long the threads have lived: until now, or until the process ended. `None` if nobody knows
/// when that was: a process that ends by a signal, or by `_exit`, does not write it down.
fn thread_ns(header: &Header, seen_ns: Option<u64>) -> Option<u64> {
    let until = match header.ended_ns.load(Relaxed) {
        0 if is_alive(header.pid.load(Relaxed)) => now_ns(),
        0 => seen_ns?,
        ended => ended,
    };
    // Sums modulo 2^64, of which the difference is small.
    let alive = u64::from(header.alive.load(Relaxed)).wrapping_mul(until);
    let ends = header.thread_ends.load(Relaxed).wrapping_add(alive);
    let lived = ends.wrapping_sub(header.thread_begins.load(Relaxed));
    // They were read while they changed, or the machine was started anew since.
    let most = until.checked_mul(header.threads.load(Relaxed).into())?;
    Some(lived).filter(|&lived| lived > 0 && lived <= most)
}

/// All that the processes under a directory have counted, and those of `taken`. `first` comes
/// first, and then those with the longest waits. Processes that have counted nothing are left out,
/// except for `first` if it took no lock, and if there are no others. `ended_ns` is the time at
/// which that was seen to end.
pub fn processes(
    dir: &Path,
    taken: &Ended,
    first: u32,
    ended_ns: Option<u64>,
) -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    // Processes of one program have the same files.
    let symbols = Symbols::new();
    for path in all(dir, PREFIX)? {
        // A table under construction has no rows yet.
        let Ok(table) = Mapping::open(&path) else {
            continue;
        };
        let mut process = Process::read(&table, &mut symbols.beside());
        if process.pid == first {
            process.thread_ns = thread_ns(&table.header, ended_ns);
        }
        found.push(process);
    }
    for table in taken.tables() {
        found.push(Process::read(&table?, &mut symbols.beside()));
    }
    if !found.iter().all(Process::is_empty) {
        let says = |process: &Process| process.pid == first && !process.is_empty();
        let is_said = found.iter().any(says);
        // An image that was replaced is no news if a later one has something to show.
        found.retain(|process| {
            let is_news = process.pid == first && !process.took_locks && !is_said;
            !process.is_empty() || is_news
        });
    }
    found.sort_by_key(|process| (process.pid != first, std::cmp::Reverse(process.wait_ns())));
    Ok(found)
}

/// The files in a directory whose names begin so.
pub(super) fn all(dir: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
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
