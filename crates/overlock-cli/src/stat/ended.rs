//! Tables of processes that have ended while the program goes on. A file has the size of a full
//! table, whatever is in it: such files are removed, and what is in them is kept in memory.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use overlock_report::numbers::time;
use overlock_shared::{ObjectKind, PREFIX, Table, WAITS_PREFIX};

use super::mapping::{Compact, Mapping};
use super::process::all;

/// Memory, where there is such a place: the tables are written all the time.
pub const SHM: &str = "/dev/shm";

/// So many files may stay: those of most programs are read at the end only.
const FEW: usize = 32;

/// The time between two looks. A program has to start many processes in it to use much memory.
const PAUSE: Duration = Duration::from_millis(50);

/// At least so many tables are kept: more would be read by nobody.
const MOST: usize = 1000;

/// Tables that were taken in.
#[derive(Debug, Default)]
pub struct Ended {
    /// The program itself, whose tables stay.
    first: u32,
    kept: Vec<Kept>,
    /// Files that are to be looked at.
    queue: Vec<PathBuf>,
    /// How many of them are too many.
    excess: usize,
    /// Processes that are not kept, and their waits for locks.
    left_out: (u64, u64),
}

#[derive(Debug)]
struct Kept {
    wait_ns: u64,
    table: Arc<Compact>,
}

impl Ended {
    /// Has the tables of this process stay.
    pub fn leave(&mut self, first: u32) {
        self.first = first;
    }

    /// Looks at one file, if there are many, and takes it in if its process has ended. Returns
    /// when to come again.
    pub fn look(&mut self, dir: &Path) -> Duration {
        if self.queue.is_empty() {
            self.queue = all(dir, PREFIX).unwrap_or_default();
            self.excess = excess(self.queue.len());
        }
        if self.excess > 0
            && let Some(path) = self.queue.pop()
            // With a file of waits, it is taken in by those who read them.
            && !waits_of(&path).exists()
            && self.take(&path, || true).is_some()
        {
            self.excess -= 1;
        }
        match self.excess {
            0 => self.queue.clear(),
            _ if !self.queue.is_empty() => return Duration::ZERO,
            _ => {}
        }
        PAUSE
    }

    /// Takes a table in, if its process has ended and what else has to be done first succeeds.
    pub fn take(&mut self, path: &Path, first: impl FnOnce() -> bool) -> Option<Arc<Compact>> {
        let file = ended(path)?;
        // One without a table may be of a process that was killed while it made it.
        let table = Mapping::open(path).ok()?;
        if table.header.pid.load(Relaxed) == self.first {
            return None;
        }
        let compact = Arc::new(Compact::read(&file, size_of::<Table>()).ok()?);
        if !first() {
            return None;
        }
        fs::remove_file(path).ok()?;
        if let Some(wait_ns) = waited_ns(&table) {
            self.keep(Kept {
                wait_ns,
                table: compact.clone(),
            });
        }
        Some(compact)
    }

    fn keep(&mut self, table: Kept) {
        self.kept.push(table);
        if self.kept.len() >= 2 * MOST {
            self.kept.sort_by_key(|kept| Reverse(kept.wait_ns));
            for other in self.kept.drain(MOST..) {
                self.left_out.0 += 1;
                self.left_out.1 = self.left_out.1.saturating_add(other.wait_ns);
            }
        }
    }

    /// Whether nothing was taken in.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The tables that are kept.
    pub fn tables(&self) -> impl Iterator<Item = io::Result<Mapping>> {
        self.kept.iter().map(|kept| kept.table.expand())
    }

    /// The message about those that are not; `None` where all are.
    pub fn without_rows(&self) -> Option<String> {
        let (processes, wait_ns) = self.left_out;
        let waited = time(wait_ns as f64);
        (processes > 0).then(|| {
            format!(
                "overlock: {processes} more processes, those with the shortest waits, are left \
                 out: they waited for locks for {waited}\n"
            )
        })
    }
}

/// The file of the single waits of a table's process.
fn waits_of(table: &Path) -> PathBuf {
    let name = table.file_name().unwrap_or_default().as_bytes();
    let number = name.strip_prefix(PREFIX.as_bytes()).unwrap_or(name);
    table.with_file_name(OsStr::from_bytes(
        &[WAITS_PREFIX.as_bytes(), number].concat(),
    ))
}

/// How many of so many files are too many.
pub fn excess(files: usize) -> usize {
    files.saturating_sub(FEW)
}

/// Whether a table is of a process that has ended, or of an image that was replaced.
pub fn has_ended(path: &Path) -> bool {
    ended(path).is_some()
}

/// The file, if no process can write to it any more. A lease for readers is refused while one has
/// it open for writing, or mapped: that holds for ids that others have by now, for programs that
/// have replaced each other, in namespaces, and while a table is made.
fn ended(path: &Path) -> Option<File> {
    // Other file systems need no memory, and some do not know who has mapped a file.
    if !path.starts_with(SHM) {
        return None;
    }
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(libc::O_NONBLOCK);
    let lease = options.open(path).ok()?;
    // Another user who opens it meanwhile would end this process by SIGIO.
    if lease.metadata().ok()?.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    // SAFETY: of a file that is open. The lease ends with it, at once.
    let taken = unsafe { libc::fcntl(lease.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
    drop(lease);
    (taken == 0).then(|| options.open(path).ok())?
}

/// The waits for locks in a table, in nanoseconds; `None` if it has nothing to show.
fn waited_ns(table: &Table) -> Option<u64> {
    let entries = table.entries.iter();
    let waits = entries.filter_map(|entry| {
        // Acquire: pairs with the store after its names were written.
        let is_ready = entry.ready.load(Acquire) != 0;
        let kind = ObjectKind::of(entry.kind.load(Relaxed)).filter(|_| is_ready)?;
        Some(match kind.is_event() || kind.is_kept() {
            true => 0,
            false => entry.wait_ns.load(Relaxed),
        })
    });
    waits.reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;
    use std::os::unix::fs::FileExt;

    use overlock_shared::{Entry, Header, MAGIC, VERSION};

    use super::*;

    /// The file of a table with one mutex that was waited for.
    fn write(dir: &Path, pid: u32, wait_ns: u64) -> File {
        let file = File::create_new(dir.join(format!("{PREFIX}{pid}"))).unwrap();
        file.set_len(size_of::<Table>() as u64).unwrap();
        let put = |bytes: &[u8], at| file.write_all_at(bytes, at as u64).unwrap();
        put(&MAGIC.to_ne_bytes(), offset_of!(Header, magic));
        put(&VERSION.to_ne_bytes(), offset_of!(Header, version));
        put(&pid.to_ne_bytes(), offset_of!(Header, pid));
        let entry = offset_of!(Table, entries);
        let kind = ObjectKind::Mutex as u32;
        put(&kind.to_ne_bytes(), entry + offset_of!(Entry, kind));
        put(&1_u32.to_ne_bytes(), entry + offset_of!(Entry, ready));
        put(&wait_ns.to_ne_bytes(), entry + offset_of!(Entry, wait_ns));
        file
    }

    fn pids(ended: &Ended) -> Vec<u32> {
        let tables = ended.tables().map(Result::unwrap);
        let mut pids: Vec<u32> = tables.map(|table| table.header.pid.load(Relaxed)).collect();
        pids.sort_unstable();
        pids
    }

    /// Fails where a table is taken that a process can still change, or the first one's.
    #[test]
    fn files_that_are_mapped_stay() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let dir = dir.path();
        let many = FEW as u32 + 10;
        let open: Vec<File> = (1..=many).map(|pid| write(dir, pid, 1)).collect();
        let mut ended = Ended::default();
        ended.leave(3);
        let mut look = || while ended.look(dir).is_zero() {};
        look();
        assert_eq!(all(dir, PREFIX).unwrap().len(), many as usize);
        // Those of the first five are closed.
        drop(open.into_iter().skip(5).collect::<Vec<_>>());
        look();
        assert_eq!(pids(&ended).len(), 10);
        assert_eq!(all(dir, PREFIX).unwrap().len(), FEW);
        assert!(dir.join(format!("{PREFIX}3")).exists());
    }

    #[test]
    fn the_longest_waits_are_kept_and_the_others_are_told() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut ended = Ended::default();
        let [long, short] = [1, 2].map(|pid| write(dir.path(), pid, 0));
        for number in 0..2 * MOST {
            let (file, wait_ns) = match number == MOST {
                true => (&long, 1_000_000),
                false => (&short, 1_000),
            };
            ended.keep(Kept {
                wait_ns,
                table: Arc::new(Compact::read(file, size_of::<Table>()).unwrap()),
            });
        }
        let pids = pids(&ended);
        assert_eq!((pids.len(), pids[0], pids[1]), (MOST, 1, 2));
        let said = ended.without_rows().unwrap();
        assert!(
            said.starts_with("overlock: 1000 more") && said.ends_with(" 1.0 ms\n"),
            "{said}"
        );
    }
}
