//! Processes that run, and their tables.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use overlock_shared::PREFIX;

use super::mapping::Mapping;
use super::symbols;
use crate::exit::Exit;

/// One that was started with a directory for its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Living {
    /// Its id.
    pub pid: u32,
    /// Its program, as the system names it.
    pub program: String,
}

/// Those that count into a directory, or would if they had anything to count.
pub fn living(dir: &Path) -> Vec<Living> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut found: Vec<Living> = pids
        .filter(|&pid| counts_into(pid, dir))
        .map(|pid| Living {
            pid,
            program: fs::read_to_string(format!("/proc/{pid}/comm")).map_or_else(
                |_| "a program".to_owned(),
                |name| symbols::plain(name.trim_end()),
            ),
        })
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}

/// By what it was started with, which it may have overwritten, or by what it has in memory.
fn counts_into(pid: u32, dir: &Path) -> bool {
    let variable = [b"OVERLOCK_STAT_DIR=", dir.as_os_str().as_bytes()].concat();
    let table = [dir.as_os_str().as_bytes(), b"/", PREFIX.as_bytes()].concat();
    was_started_with(pid, &variable)
        || fs::read(format!("/proc/{pid}/maps")).is_ok_and(|maps| writes_to(&maps, &table))
}

/// Whether one of the mappings is of this table. Readers, as `overlock top`, have it too, but do
/// not write to it.
fn writes_to(maps: &[u8], table: &[u8]) -> bool {
    maps.split(|&byte| byte == b'\n').any(|line| {
        let mut words = line.split(|&byte| byte == b' ');
        let access = words.nth(1).unwrap_or_default();
        access.starts_with(b"rw") && line.windows(table.len()).any(|bytes| bytes == table)
    })
}

/// The table of a process, or of the program that it runs, where it is `overlock run`; and whose it
/// is.
pub fn open(pid: u32) -> Result<(u32, Mapping), Exit> {
    let no = |why: &str| Err(Exit::usage(format!("process {pid} {why}")));
    match find(pid) {
        Ok(Some(path)) => Mapping::open(&path)
            .map(|table| (pid, table))
            .map_err(|error| Exit::usage(format!("{}: {error}", path.display()))),
        Ok(None) if let Some(program) = program_of(pid) => open(program),
        Ok(None) if was_started_with(pid, b"OVERLOCK_STAT=1") => no("has counted nothing yet"),
        Ok(None) => no("counts nothing: start it by `overlock run --stat`"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => no("is not there"),
        Err(error) => no(&format!("cannot be looked at: {error}")),
    }
}

/// The file of a process's table.
fn find(pid: u32) -> io::Result<Option<PathBuf>> {
    let maps = fs::read(format!("/proc/{pid}/maps"))?;
    let own = format!("/{PREFIX}{pid}");
    let paths = maps.split(|&byte| byte == b'\n').filter_map(|line| {
        let start = line.iter().position(|&byte| byte == b'/')?;
        let path = Path::new(std::ffi::OsStr::from_bytes(&line[start..]));
        let name = path.to_str()?;
        let behind = name.split_once(&own)?.1;
        // An image that was replaced had a table too; of numbers behind points the highest is the
        // present one's.
        let number = match behind.strip_prefix('.') {
            Some(number) => number.parse().ok()?,
            None if behind.is_empty() => 0,
            None => return None,
        };
        Some((number, path.to_owned()))
    });
    let latest = paths.max_by_key(|(number, _): &(u32, PathBuf)| *number);
    Ok(latest.map(|(_, path)| path))
}

/// Whether this is in its environment, as far as it has left that alone.
fn was_started_with(pid: u32, variable: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|bytes| {
        bytes
            .split(|&byte| byte == 0)
            .any(|entry| entry == variable)
    })
}

/// The child of a process that runs this program too.
fn program_of(pid: u32) -> Option<u32> {
    let is_ours = same_file(&format!("/proc/{pid}/exe"), "/proc/self/exe");
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children
        .split_whitespace()
        .next()
        .filter(|_| is_ours)?
        .parse()
        .ok()
}

fn same_file(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|path| fs::metadata(path).ok());
    one.zip(other)
        .is_some_and(|(one, other)| (one.dev(), one.ino()) == (other.dev(), other.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where `overlock top` is taken for a daemon.
    #[test]
    fn a_reader_of_a_table_does_not_count() {
        let table = b"/dev/shm/overlock-run.x/overlock-stat.";
        let line = |access: &str| {
            let path = "/dev/shm/overlock-run.x/overlock-stat.7";
            format!("1000-2000 r-xp 0 08:01 1 /bin/x\n7f00-7f80 {access} 0 00:1a 5    {path}\n")
        };
        assert!(writes_to(line("rw-s").as_bytes(), table));
        assert!(!writes_to(line("r--s").as_bytes(), table));
    }
}
