//! Processes that run, and their tables.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use overlock_shared::PREFIX;

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

/// The process whose tables are wanted, which may be the child of `overlock run`; and their files.
pub(super) fn tables(pid: u32) -> Result<(u32, Vec<PathBuf>), Exit> {
    let no = |why: &str| Err(Exit::usage(format!("process {pid} {why}")));
    match find(pid) {
        Ok(paths) if !paths.is_empty() => Ok((pid, paths)),
        Ok(_) => match program_of(pid) {
            Some(program) => tables(program),
            None if was_started_with(pid, b"OVERLOCK_STAT=1") => no("has counted nothing yet"),
            None => no("counts nothing: start it by `overlock run --stat`"),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => no("is not there"),
        Err(error) => no(&format!("cannot be looked at: {error}")),
    }
}

/// The files of a process's tables, the first one first. The drop-in has one, and so has each
/// library of locks that the program uses itself. Those of images that it has replaced are no
/// longer mapped.
pub(super) fn find(pid: u32) -> io::Result<Vec<PathBuf>> {
    let maps = fs::read(format!("/proc/{pid}/maps"))?;
    Ok(mapped(&maps, pid))
}

fn mapped(maps: &[u8], pid: u32) -> Vec<PathBuf> {
    let own = format!("/{PREFIX}{pid}");
    let paths = maps.split(|&byte| byte == b'\n').filter_map(|line| {
        let start = line.iter().position(|&byte| byte == b'/')?;
        let path = Path::new(std::ffi::OsStr::from_bytes(&line[start..]));
        let name = path.to_str()?;
        let number = match name.rsplit_once(&own)?.1 {
            "" => 0,
            behind => behind.strip_prefix('.')?.parse().ok()?,
        };
        Some((number, path.to_owned()))
    });
    let paths: BTreeMap<u32, PathBuf> = paths.collect();
    paths.into_values().collect()
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

    /// Fails where the tables of one process are taken for those of another, or one is left out.
    #[test]
    fn all_tables_of_a_process_are_found() {
        let line = |name: &str| format!("7f00-7f80 rw-s 0 00:1a 5    /dev/shm/a b/{name}\n");
        let names = [
            "overlock-stat.7.2",
            "overlock-stat.7",
            "overlock-stat.7",
            "overlock-stat.71",
            "overlock-stat.7 (deleted)",
            "overlock-waits.7",
        ];
        let maps: String = names.map(line).concat();
        let expected = ["overlock-stat.7", "overlock-stat.7.2"]
            .map(|name| PathBuf::from(format!("/dev/shm/a b/{name}")));
        assert_eq!(mapped(maps.as_bytes(), 7), expected);
    }
}
