//! The table's file, and the mapping of it.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

use overlock_linux::__private::{system_call, variable};
use overlock_stat::{FAILED, MAGIC, PREFIX, Path, Table, VERSION};

use super::{clock, flight, modules};
use crate::config;

static TABLE: AtomicPtr<Table> = AtomicPtr::new(core::ptr::null_mut());

/// Whether somebody has begun to make it; stays so where that has failed.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// Where its file goes: what the environment says at the start, since the program may change that.
static DIR: Path = Path::EMPTY;

/// How often an image may be replaced by another in one process, or how many of the same number may
/// have left their file behind.
const MOST_NUMBERS: u32 = 1000;

/// Chooses the place, and makes the table.
pub(crate) fn start() {
    let exists = |dir: &CStr| {
        // SAFETY: the path ends with a zero.
        unsafe { libc::access(dir.as_ptr(), libc::W_OK) == 0 }
    };
    let dir = variable(c"OVERLOCK_STAT_DIR")
        .or_else(|| Some(c"/dev/shm").filter(|dir| exists(dir)))
        .or_else(|| variable(c"TMPDIR"))
        .unwrap_or(c"/tmp");
    DIR.set(dir.to_bytes());
    PROCESS.store(pid(), Relaxed);
    get();
}

/// The table, which is made by the first call in a process. `None` where there is none.
#[inline]
pub(super) fn get() -> Option<&'static Table> {
    // Acquire: pairs with the store in `make`.
    let mut table = TABLE.load(Acquire);
    if table.is_null() {
        table = make()?;
    }
    // SAFETY: a mapping of that size, unmapped only in a child of fork while that has one thread,
    // and which is used by atomic operations alone.
    Some(unsafe { &*table })
}

/// In a child of fork: the table is the parent's. The child makes one of its own when it has
/// something to count.
pub(crate) fn after_fork() {
    flight::after_fork();
    modules::after_fork();
    PROCESS.store(pid(), Relaxed);
    let parents = TABLE.swap(core::ptr::null_mut(), Relaxed);
    BEGUN.store(0, Relaxed);
    if !parents.is_null() {
        // SAFETY: the mapping that `map` has made; this is the child's only thread, and has no
        // reference to it.
        unsafe { libc::munmap(parents.cast(), size_of::<Table>()) };
    }
}

/// What was written before can be seen from now on.
pub(super) fn show(ready: &AtomicU32) {
    // Release: pairs with the acquire load in the reader's process.
    ready.store(1, Release);
}

/// Calls a function that may change errno, which locks do not.
pub(super) fn keeping_errno<T>(change: impl FnOnce() -> T) -> T {
    // SAFETY: it has no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the thread's own.
    let before = unsafe { *errno };
    let result = change();
    // SAFETY: as above.
    unsafe { *errno = before };
    result
}

/// The process may open no files from now on. Nor may its children, which count nothing.
static NO_FILES: AtomicBool = AtomicBool::new(false);

/// Reads once more what code is where, and opens nothing after that.
pub(crate) fn use_no_files() {
    if config::get().stat && !NO_FILES.load(Relaxed) {
        if let Some(table) = get() {
            modules::read(table);
        }
        // Relaxed: a thread that is reading meanwhile may be met by the filter, as it could be with
        // files of its own.
        NO_FILES.store(true, Relaxed);
    }
}

pub(super) fn may_open() -> bool {
    !NO_FILES.load(Relaxed)
}

/// The process may be unable to make its table from now on, and has one before.
pub(crate) fn make_table() {
    // A child of vfork has its parent's memory.
    if config::get().stat && PROCESS.load(Relaxed) == pid() {
        get();
    }
}

/// The process that the memory is of.
static PROCESS: AtomicU32 = AtomicU32::new(0);

fn pid() -> u32 {
    // SAFETY: it has no preconditions.
    (unsafe { libc::getpid() }) as u32
}

#[cold]
fn make() -> Option<*mut Table> {
    // Relaxed: who comes second uses nothing of it, and counts nothing yet.
    if !may_open() || BEGUN.swap(1, Relaxed) != 0 {
        return None;
    }
    let Some(made) = keeping_errno(create) else {
        say(b"overlock: no table for --stat: cannot create its file\n");
        // A daemon has nobody who reads that.
        let note = open(&Name::of(FAILED));
        if note >= 0 {
            close(note);
        }
        return None;
    };
    // SAFETY: just mapped, zeroed, and of that size.
    let table = unsafe { &*made };
    table.header.version.store(VERSION, Relaxed);
    table.header.pid.store(pid(), Relaxed);
    table.header.size.store(size_of::<Table>() as u64, Relaxed);
    table.header.began_ns.store(clock::now(), Relaxed);
    let count = config::get().mutex == config::MutexLock::Overlock;
    table.header.mutexes_count.store(count.into(), Relaxed);
    modules::read(table);
    // Release: the reader that sees it (acquire) sees the above.
    table.header.magic.store(MAGIC, Release);
    // Release: pairs with the load in `get`.
    TABLE.store(made, Release);
    Some(made)
}

/// A new file in memory; none is left behind where that is not possible.
fn create() -> Option<*mut Table> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: valid for the write.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    // The system would end the program by a signal.
    if known && limit.rlim_cur < size_of::<Table>() as u64 {
        return None;
    }
    let (file, name) = open_new()?;
    let made = map(file);
    close(file);
    if made.is_none() {
        // SAFETY: the path ends with a zero.
        unsafe { system_call!(libc::SYS_unlinkat, libc::AT_FDCWD, name.as_ptr(), 0) };
    }
    made
}

fn close(file: c_int) {
    // SAFETY: the caller's, and not used any more.
    unsafe { system_call!(libc::SYS_close, file) };
}

/// Takes the file into memory, all of it at once: a file system that is full later would end the
/// program.
fn map(file: c_int) -> Option<*mut Table> {
    let size = size_of::<Table>();
    // SAFETY: a file of ours. By a system call of our own: the C library's function is a
    // cancellation point.
    let reserved = unsafe { system_call!(libc::SYS_fallocate, file, 0, 0_i64, size as i64) } == 0;
    // SAFETY: a new mapping wherever there is room.
    let made = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file,
            0,
        )
    };
    (reserved && made != libc::MAP_FAILED).then_some(made.cast())
}

/// A file of the process's own.
fn open_new() -> Option<(c_int, Name)> {
    let mut name = Name::of(PREFIX);
    let stem = name.length;
    for number in 0..MOST_NUMBERS {
        name.length = stem;
        if number > 0 {
            name.push(b".");
            name.number(number);
        }
        match open(&name) {
            file if file >= 0 => return Some((file, name)),
            error if error == -libc::EEXIST => {}
            _ => return None,
        }
    }
    None
}

/// Creates a file: its number, or the error's, negative.
fn open(name: &Name) -> c_int {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero.
    let file = unsafe {
        system_call!(
            libc::SYS_openat,
            libc::AT_FDCWD,
            name.as_ptr(),
            flags,
            0o600,
        )
    };
    file as c_int
}

fn say(line: &[u8]) {
    // SAFETY: valid for reads of its length.
    unsafe { system_call!(libc::SYS_write, 2, line.as_ptr(), line.len()) };
}

/// A path, with a zero behind it.
struct Name {
    bytes: [u8; 2 * Path::MAX],
    length: usize,
}

impl Name {
    /// In the directory for tables: the process's.
    fn of(prefix: &str) -> Self {
        let mut name = Name {
            bytes: [0; 2 * Path::MAX],
            length: 0,
        };
        let mut dir = [0; Path::MAX];
        name.push(DIR.get(&mut dir));
        name.push(b"/");
        name.push(prefix.as_bytes());
        name.number(pid());
        name
    }

    fn push(&mut self, text: &[u8]) {
        for &byte in text {
            if self.length < self.bytes.len() - 1 {
                self.bytes[self.length] = byte;
                self.length += 1;
            }
        }
    }

    fn number(&mut self, number: u32) {
        if number >= 10 {
            self.number(number / 10);
        }
        self.push(&[b'0' + (number % 10) as u8]);
    }

    /// Ends with a zero: behind the length nothing has been written, as numbers only get longer.
    fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }
}
