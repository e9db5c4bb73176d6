//! The number of CPUs for this process: those that the calling thread may run on, or those that its
//! control groups grant, if that is less.
//!
//! The answer is that of `std::thread::available_parallelism`. That function allocates and passes
//! cancellation points, so a lock in the place of the C library's must not call it. Here system
//! calls read files into buffers on the stack, some 3 KiB of it. As there, version 2 of cgroups
//! counts if it is mounted at `/sys/fs/cgroup`, and names with spaces are not found. Names longer
//! than the buffer are not found either.

use std::ffi::CStr;
use std::fmt::Write;
use std::str;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::calls::{self, File};

/// The longest path, and the longest line, that is understood.
const LONGEST: usize = 1024;

/// The result of the last [scan](scan). Before the first one, waiters assume that owners have a CPU
/// of their own.
static KNOWN: AtomicU32 = AtomicU32::new(2);

/// Returns the last result. The value is the only data, so accesses are Relaxed.
#[inline]
pub(super) fn known() -> u32 {
    KNOWN.load(Relaxed)
}

/// Scans anew. Not in lock calls: it opens files, and takes 12 KiB of stack.
pub(super) fn scan() {
    KNOWN.store(parallelism(), Relaxed);
}

/// Returns the number of CPUs that the process's threads can use at a time. At least 1.
fn parallelism() -> u32 {
    let cpus = calls::cpus().unwrap_or_else(|| {
        // SAFETY: has no preconditions.
        unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as u32
    });
    // Miri has no such files.
    let quota = if cfg!(miri) { None } else { quota(&Kernel) };
    quota.map_or(cpus, |quota| cpus.min(quota.max(1)))
}

/// Source of files: the kernel, or a test.
pub(super) trait Files {
    type File;
    fn exists(&self, path: &str) -> bool;
    fn open(&self, path: &str) -> Option<Self::File>;
    /// Reads on. Returns 0 at the end, and on failure.
    fn read(&self, file: &mut Self::File, buffer: &mut [u8]) -> usize;
}

pub(super) struct Kernel;

impl Files for Kernel {
    type File = File;

    fn exists(&self, path: &str) -> bool {
        with_end(path, calls::exists) == Some(true)
    }

    fn open(&self, path: &str) -> Option<File> {
        with_end(path, |path| File::open(path, libc::O_RDONLY))?
    }

    fn read(&self, file: &mut File, buffer: &mut [u8]) -> usize {
        file.read(buffer)
    }
}

/// Calls `then` with the path as the kernel takes it. `None` if it is too long, or has a zero.
fn with_end<T>(path: &str, then: impl FnOnce(&CStr) -> T) -> Option<T> {
    // Lock calls read files of short names, perhaps on a small stack.
    if path.len() < 64 {
        with_end_in::<64, T>(path, then)
    } else {
        with_end_in::<{ LONGEST + 1 }, T>(path, then)
    }
}

#[inline(never)]
fn with_end_in<const ROOM: usize, T>(path: &str, then: impl FnOnce(&CStr) -> T) -> Option<T> {
    let mut bytes = [0; ROOM];
    bytes
        .get_mut(..path.len())?
        .copy_from_slice(path.as_bytes());
    CStr::from_bytes_with_nul(bytes.get(..=path.len())?)
        .ok()
        .map(then)
}

/// A string on the stack.
struct Text {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        let end = self.len + more.len();
        let room = self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?;
        room.copy_from_slice(more.as_bytes());
        self.len = end;
        Ok(())
    }
}

impl Text {
    const EMPTY: Self = Text {
        bytes: [0; LONGEST],
        len: 0,
    };

    /// Concatenates these; `None` if they are too long.
    fn of(parts: &[&str]) -> Option<Self> {
        let mut text = Text::EMPTY;
        parts
            .iter()
            .try_for_each(|part| text.write_str(part))
            .ok()?;
        Some(text)
    }

    fn as_str(&self) -> &str {
        // Whole strings were written to it, and it was cut before slashes.
        str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

/// Calls `each` with each line of the file until it finds something; skips lines that are too long.
pub(super) fn find_line<F: Files, T>(
    files: &F,
    path: &str,
    mut each: impl FnMut(&str) -> Option<T>,
) -> Option<T> {
    let mut file = files.open(path)?;
    let mut buffer = [0; LONGEST];
    let mut filled = 0;
    let mut too_long = false;
    loop {
        let read = files.read(&mut file, &mut buffer[filled..]);
        filled += read;
        let mut rest = &buffer[..filled];
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let line = str::from_utf8(&rest[..end]).ok().filter(|_| !too_long);
            if let Some(found) = line.and_then(&mut each) {
                return Some(found);
            }
            too_long = false;
            rest = &rest[end + 1..];
        }
        let left = rest.len();
        if read == 0 {
            // The last line may have no end.
            return str::from_utf8(rest)
                .ok()
                .filter(|_| !too_long)
                .and_then(each);
        }
        buffer.copy_within(filled - left..filled, 0);
        filled = left;
        if left == LONGEST {
            too_long = true;
            filled = 0;
        }
    }
}

/// Calls `each` with the first line of the file, or with as much of it as there is room for on a
/// small stack.
pub(super) fn first_line<F: Files, T>(
    files: &F,
    path: &str,
    each: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let mut file = files.open(path)?;
    let mut buffer = [0; 192];
    let read = files.read(&mut file, &mut buffer);
    let line = buffer[..read].split(|&byte| byte == b'\n').next()?;
    str::from_utf8(line).ok().and_then(each)
}

/// Returns the CPUs that control groups grant, rounded down; `None` if they set no quota.
fn quota<F: Files>(files: &F) -> Option<u32> {
    let mut group = None;
    // A group of version 1 names the CPU controller, so it takes precedence over one of version 2.
    let first = find_line(files, "/proc/self/cgroup", |line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let path = fields.next()?.strip_prefix('/')?;
        if controllers.is_empty() {
            group = Text::of(&[path]);
            None
        } else {
            let ours = controllers.split(',').any(|name| name == "cpu");
            ours.then(|| Text::of(&[path]))?
        }
    });
    match (first, group) {
        (Some(group), _) => quota_v1(files, group.as_str()),
        (None, Some(group)) => quota_v2(files, group.as_str()),
        (None, None) => None,
    }
}

/// Returns the least quota of the group at `path` below `mount`, and of its ancestors.
fn least<F: Files>(
    files: &F,
    mount: &str,
    mut path: Text,
    of: impl Fn(&F, &str) -> Option<u32>,
) -> Option<u32> {
    let mut least = None;
    while path.len >= mount.len() {
        if let Some(quota) = of(files, path.as_str()) {
            least = Some(least.map_or(quota, |least: u32| least.min(quota)));
        }
        path.len = path.as_str().rfind('/')?;
    }
    least
}

fn cpus(limit: &str, period: &str) -> Option<u32> {
    let [limit, period] = [limit, period].map(|number| number.trim().parse::<u64>().ok());
    let cpus = limit?.checked_div(period?)?;
    Some(u32::try_from(cpus).unwrap_or(u32::MAX))
}

fn quota_v2<F: Files>(files: &F, group: &str) -> Option<u32> {
    const MOUNT: &str = "/sys/fs/cgroup";
    let path = path_of(MOUNT, group)?;
    if !files.exists(Text::of(&[path.as_str(), "/cgroup.controllers"])?.as_str()) {
        return None;
    }
    least(files, MOUNT, path, |files, path| {
        let file = Text::of(&[path, "/cpu.max"])?;
        find_line(files, file.as_str(), |line| {
            let (limit, period) = line.split_once(' ')?;
            cpus(limit, period)
        })
    })
}

fn quota_v1<F: Files>(files: &F, group: &str) -> Option<u32> {
    let below = |mount: &str, group: &str| {
        let path = path_of(mount, group)?;
        files.exists(path.as_str()).then(|| {
            least(files, mount, path, |files, path| {
                let number = |name| {
                    let file = Text::of(&[path, name])?;
                    find_line(files, file.as_str(), |line| Text::of(&[line]))
                };
                let limit = number("/cpu.cfs_quota_us")?;
                cpus(limit.as_str(), number("/cpu.cfs_period_us")?.as_str())
            })
        })
    };
    // The usual place; else the table of mounts, which may be long.
    ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
        .into_iter()
        .find_map(|mount| below(mount, group))
        .or_else(|| {
            find_line(files, "/proc/self/mountinfo", |line| {
                let (mount, group) = mounted(line, group)?;
                below(mount, group)
            })
        })?
}

fn path_of(mount: &str, group: &str) -> Option<Text> {
    let slash = if group.is_empty() { "" } else { "/" };
    Text::of(&[mount, slash, group])
}

/// Parses a line of the table of mounts for `group` of version 1: returns the mount point, and the
/// group's path below that.
fn mounted<'a>(line: &'a str, group: &'a str) -> Option<(&'a str, &'a str)> {
    let mut items = line.trim().split(' ');
    let root = items.nth(3)?.strip_prefix('/')?;
    let mount = items.next()?;
    let options = items.next_back()?;
    let kind = items.nth_back(1)?;
    if kind != "cgroup" || !options.split(',').any(|option| option == "cpu") {
        return None;
    }
    // A part of the hierarchy may be mounted.
    let below = group.strip_prefix(root)?;
    let ends = root.is_empty() || below.is_empty() || below.starts_with('/');
    ends.then(|| (mount, below.trim_start_matches('/')))
}

#[cfg(test)]
mod tests;
