//! The table's file and its mapping.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

use overlock_linux::__private::{extras, spin, system_call, variable};
use overlock_shared::{FAILED, MAGIC, PREFIX, Path, Table, VERSION, WAITS_PREFIX, Waits};

use crate::{clock, flight, modules, objects, single, stacks, threads, unwind};

static TABLE: AtomicPtr<Table> = AtomicPtr::new(core::ptr::null_mut());

/// Whether a thread has begun to make the table; stays 1 if that has failed.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// The directory of the file: the environment's at the start, since the program may change that.
static DIR: Path = Path::EMPTY;

/// The program's first argument at its start: it may write another over it.
static PROGRAM: Path = Path::EMPTY;

/// The length of the shortest wait that is shown by itself.
static THRESHOLD_NS: AtomicU64 = AtomicU64::new(0);

/// Bound on file numbers: one process may exec this often, or so many earlier processes of the same
/// id may have left their files behind.
const MOST_NUMBERS: u32 = 1000;

/// Looks up a function of the C library's, or returns null.
pub type Find = fn(&CStr) -> *mut c_void;

/// The one that is looked up.
pub const FIND_OBJECT: &CStr = c"_dl_find_object";

/// See [`set_up`]; null before.
static FIND: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Whether single waits are shown, too.
static PROFILED: AtomicBool = AtomicBool::new(false);

/// Comes before all else: says by which function others are found, and whether single waits are
/// shown, too.
pub fn set_up(find: Find, profiled: bool) {
    FIND.store(find as *mut (), Relaxed);
    PROFILED.store(profiled, Relaxed);
}

fn found(name: &CStr) -> *mut c_void {
    let find = FIND.load(Relaxed);
    if find.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: `set_up` has stored a function of this type.
    let find: Find = unsafe { core::mem::transmute(find) };
    find(name)
}

/// Makes the table when the library is loaded.
pub fn start() {
    spin::note_wakes();
    get();
}

/// Sets the directory, before the process's first table is made. The constructor of another library
/// may have a lock to count before [`start`].
fn settle() {
    let exists = |dir: &CStr| {
        // SAFETY: the path ends with a zero.
        unsafe { libc::access(dir.as_ptr(), libc::W_OK) == 0 }
    };
    let named = |name| variable(name).filter(|dir| !dir.is_empty());
    let dir = named(c"OVERLOCK_STAT_DIR")
        .or_else(|| Some(c"/dev/shm").filter(|dir| exists(dir)))
        .or_else(|| named(c"TMPDIR"))
        .unwrap_or(c"/tmp");
    DIR.set(dir.to_bytes());
    let threshold = named(c"OVERLOCK_PROFILE").and_then(|text| text.to_str().ok()?.parse().ok());
    THRESHOLD_NS.store(threshold.unwrap_or(0), Relaxed);
    unwind::start(found(FIND_OBJECT));
    PROGRAM.set(first_argument(&mut [0; Path::MAX]));
    PROCESS.store(pid(), Relaxed);
}

/// Returns the table, which the first call in a process makes; or `None` if there is none.
#[inline]
pub fn get() -> Option<&'static Table> {
    // Acquire: pairs with the store in `make`.
    let mut table = TABLE.load(Acquire);
    if table.is_null() {
        table = make()?;
    }
    // SAFETY: a mapping of that size, which is only unmapped in a child of fork() while it has one
    // thread, and is accessed by atomic operations alone.
    Some(unsafe { &*table })
}

/// The table if there is one.
pub fn present() -> Option<&'static Table> {
    // Acquire: as in `get`. SAFETY: as there.
    unsafe { TABLE.load(Acquire).as_ref() }
}

/// Says in the table, if there is one yet, that the process has taken a lock.
pub fn show_use() {
    // `make` says so itself in a table made later.
    if let Some(table) = present() {
        table.header.used.store(1, Relaxed);
    }
}

/// Drops the parent's table after fork() in the child, which makes its own when it has something to
/// count. Returns the child's id, if its parent was counted.
pub fn after_fork() -> Option<u32> {
    flight::after_fork();
    modules::after_fork();
    objects::after_fork();
    stacks::after_fork();
    let was_begun = PROCESS.load(Relaxed) != 0;
    if was_begun {
        PROCESS.store(pid(), Relaxed);
    }
    let id = was_begun.then(pid);
    threads::after_fork(id);
    let waits = single::drop_parents();
    if !waits.is_null() {
        // SAFETY: as with the table below.
        unsafe { libc::munmap(waits.cast(), size_of::<Waits>()) };
    }
    let parents = TABLE.swap(core::ptr::null_mut(), Relaxed);
    BEGUN.store(0, Relaxed);
    if !parents.is_null() {
        // SAFETY: a mapping made by `map`; this is the child's only thread, and it has no reference
        // to it.
        unsafe { libc::munmap(parents.cast(), size_of::<Table>()) };
    }
    id
}

/// Marks an entry as ready: readers may see its contents from now on.
pub fn show(ready: &AtomicU32) {
    // Release: pairs with the acquire load in the reader's process.
    ready.store(1, Release);
}

/// Calls a function that may change errno, and restores errno: lock functions do not change it.
pub fn keeping_errno<T>(change: impl FnOnce() -> T) -> T {
    // SAFETY: it has no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the thread's own.
    let before = unsafe { *errno };
    let result = change();
    // SAFETY: as above.
    unsafe { *errno = before };
    result
}

/// Whether the process may open no more files. Its children may not, either, and count nothing.
static NO_FILES: AtomicBool = AtomicBool::new(false);

/// Reads the modules a last time, and opens no files after that.
pub fn use_no_files() {
    if !NO_FILES.load(Relaxed) {
        if let Some(table) = get() {
            modules::read(table);
        }
        // Relaxed: the filter may still catch a thread that is reading the modules, as it could one
        // that reads files of the program.
        NO_FILES.store(true, Relaxed);
    }
}

pub fn may_open() -> bool {
    !NO_FILES.load(Relaxed) && extras::are_granted()
}

/// Makes the process's table if it has none, since the process may be unable to later.
pub fn make_table() {
    let process = PROCESS.load(Relaxed);
    // A child of vfork() has its parent's memory.
    if process == 0 || process == pid() {
        get();
    }
}

/// The process that owns the memory; 0 before the directory is set.
static PROCESS: AtomicU32 = AtomicU32::new(0);

fn pid() -> u32 {
    // SAFETY: it has no preconditions.
    (unsafe { libc::getpid() }) as u32
}

/// Runs when the process ends, other than by `_exit` or a signal.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = {
    extern "C" fn at_end() {
        // A child of vfork() has its parent's memory.
        if PROCESS.load(Relaxed) == pid() {
            threads::process_ends();
        }
    }
    at_end
};

#[cold]
fn make() -> Option<*mut Table> {
    // Relaxed: the second thread uses no data of the first, and counts nothing yet.
    if !may_open() || BEGUN.swap(1, Relaxed) != 0 {
        return None;
    }
    // A child has its parent's directory.
    if PROCESS.load(Relaxed) == 0 {
        keeping_errno(settle);
    }
    let Some((made, number)) = keeping_errno(create) else {
        say(b"overlock: no table for --stat: cannot create its file\n");
        // A daemon has no reader for that.
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
    table.header.used.store(crate::is_used().into(), Relaxed);
    table.header.program.set(PROGRAM.get(&mut [0; Path::MAX]));
    modules::read(table);
    // Release: the reader that sees it (acquire) sees the above.
    table.header.magic.store(MAGIC, Release);
    // Release: pairs with the load in `get`.
    TABLE.store(made, Release);
    if PROFILED.load(Relaxed) {
        keeping_errno(|| make_waits(number));
    }
    Some(made)
}

/// Makes the file for single waits, with the table's number. Without it there is the table alone.
fn make_waits(number: u32) {
    let mut name = Name::of(WAITS_PREFIX);
    name.numbered(number);
    let file = open(&name);
    if file < 0 {
        return;
    }
    if let Some(made) = made_of(file, &name) {
        single::start(made, THRESHOLD_NS.load(Relaxed), pid());
    }
}

/// Creates the mapping of a new file, and its number; leaves no file behind on failure.
fn create() -> Option<(*mut Table, u32)> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: valid for the write.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    // The kernel would end the program by a signal.
    let most = usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX);
    if known && most < size_of::<Table>() {
        return None;
    }
    let (file, name, number) = open_new()?;
    Some((made_of(file, &name)?, number))
}

/// Maps a file that was created under this name, and removes it if that fails.
fn made_of<T>(file: c_int, name: &Name) -> Option<*mut T> {
    let made = map(file);
    close(file);
    if made.is_none() {
        // SAFETY: the path ends with a zero.
        unsafe { system_call!(libc::SYS_unlinkat, libc::AT_FDCWD, name.as_ptr(), 0) };
    }
    made
}

fn close(file: c_int) {
    // SAFETY: the caller's file, not used after this.
    unsafe { system_call!(libc::SYS_close, file) };
}

/// Maps the file, with all its blocks reserved: a store would end the program once the file system
/// is full.
fn map<T>(file: c_int) -> Option<*mut T> {
    let size = size_of::<T>();
    // SAFETY: a file of ours. By a direct system call: the C library's function is a cancellation
    // point.
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

/// Creates a file with a name that does not exist yet.
fn open_new() -> Option<(c_int, Name, u32)> {
    let mut name = Name::of(PREFIX);
    let stem = name.length;
    for number in 0..MOST_NUMBERS {
        name.length = stem;
        name.numbered(number);
        match open(&name) {
            file if file >= 0 => return Some((file, name, number)),
            error if error == -libc::EEXIST => {}
            _ => return None,
        }
    }
    None
}

/// Creates a file. Returns its descriptor, or a negative errno.
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

/// The first argument, as far as it fits.
fn first_argument(buffer: &mut [u8; Path::MAX]) -> &[u8] {
    let path = c"/proc/self/cmdline";
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero.
    let file = unsafe { system_call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    if file < 0 {
        return &[];
    }
    // SAFETY: valid for the write.
    let length = unsafe { system_call!(libc::SYS_read, file, buffer.as_mut_ptr(), buffer.len()) };
    close(file as c_int);
    let read = buffer.get(..length.max(0) as usize).unwrap_or_default();
    read.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn say(line: &[u8]) {
    // SAFETY: valid for reads of its length.
    unsafe { system_call!(libc::SYS_write, 2, line.as_ptr(), line.len()) };
}

/// A path that ends with a zero.
struct Name {
    bytes: [u8; 2 * Path::MAX],
    length: usize,
}

impl Name {
    /// The path in the directory for tables: prefix and process id.
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

    /// Adds the number of a file that is not the first.
    fn numbered(&mut self, number: u32) {
        if number > 0 {
            self.push(b".");
            self.number(number);
        }
    }

    fn number(&mut self, number: u32) {
        if number >= 10 {
            self.number(number / 10);
        }
        self.push(&[b'0' + (number % 10) as u8]);
    }

    /// It ends with a zero: nothing is written behind the length, as numbers only get longer.
    fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }
}
