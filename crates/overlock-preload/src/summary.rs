//! The line about a run without a report: that locks were replaced, and how many.
//!
//! `overlock run` names its own process, which becomes the program's, so that children say nothing.
//! The line is written when the process ends by a return from `main` or by `exit`, and not by a
//! signal. Locks that are initialised by no call are not numbered. A program that has put another
//! file in the place of its standard error gets no line into that.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use overlock_linux::__private::{system_call, variable};

use crate::config;

/// The process that is to say it; 0 for none.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Locks that were initialised as ours, and those that stay the C library's.
static OURS: AtomicU32 = AtomicU32::new(0);
static THEIRS: AtomicU32 = AtomicU32::new(0);

/// Whether a thread has met another at one of ours.
static IS_MET: AtomicBool = AtomicBool::new(false);

/// The standard error at the start: the device, and the number of the file on it.
static STDERR: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Looks at the environment when the library is loaded.
pub(crate) fn start() {
    let config = config::get();
    let is_filtered = variable(c"OVERLOCK_FUTEX_ALONE").is_some();
    let leaves_all = (config.mutex, config.rwlock) == (config::Lock::Glibc, config::Lock::Glibc);
    if is_filtered || leaves_all {
        return;
    }
    let Some([device, file]) = stderr() else {
        return;
    };
    STDERR[0].store(device, Relaxed);
    STDERR[1].store(file, Relaxed);
    let named = variable(c"OVERLOCK_SUMMARY").and_then(|name| name.to_str().ok()?.parse().ok());
    if named == Some(pid()) && !config.stat && !config.lockdep {
        PROCESS.store(pid(), Relaxed);
    }
}

/// Says nothing: a filter, which is about to be installed, may allow nothing of it.
pub(crate) fn is_filtered() {
    PROCESS.store(0, Relaxed);
    STDERR[0].store(0, Relaxed);
    STDERR[1].store(0, Relaxed);
}

/// A lock is initialised by a call.
#[inline]
pub(crate) fn initialises(is_ours: bool) {
    if PROCESS.load(Relaxed) != 0 {
        let count = if is_ours { &OURS } else { &THEIRS };
        count.fetch_add(1, Relaxed);
    }
}

/// A thread meets another at a lock of ours.
#[inline]
pub(crate) fn meets() {
    if !IS_MET.load(Relaxed) {
        IS_MET.store(true, Relaxed);
    }
}

fn pid() -> u32 {
    // SAFETY: it has no preconditions.
    (unsafe { libc::getpid() }) as u32
}

fn stderr() -> Option<[u64; 2]> {
    // SAFETY: all zero bytes are a valid value.
    let mut file: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: valid for the write.
    let status = unsafe { system_call!(libc::SYS_fstat, 2, &raw mut file) };
    (status == 0).then_some([file.st_dev, file.st_ino])
}

/// Whether the standard error is the file that it was when the library was loaded.
pub(crate) fn is_stderr_of_the_start() -> bool {
    let start = [STDERR[0].load(Relaxed), STDERR[1].load(Relaxed)];
    start != [0, 0] && stderr() == Some(start)
}

/// Runs when the process ends, other than by `_exit` or a signal.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = {
    extern "C" fn at_end() {
        let process = PROCESS.load(Relaxed);
        if process == 0 || process != pid() {
            return;
        }
        if is_stderr_of_the_start() {
            say();
        }
    }
    at_end
};

fn say() {
    let (ours, theirs) = (OURS.load(Relaxed), THEIRS.load(Relaxed));
    let mut line = Line::default();
    line.push(b"overlock: ");
    match ours.saturating_add(theirs) {
        0 if IS_MET.load(Relaxed) => line.push(b"the program's locks were ours"),
        0 => return,
        all => {
            line.number(ours);
            line.push(b" of ");
            line.number(all);
            line.push(b" locks that the program initialised were ours");
        }
    }
    line.push(b"; --stat shows the waits, --quiet not this line\n");
    // SAFETY: valid for reads of its length.
    unsafe { system_call!(libc::SYS_write, 2, line.bytes.as_ptr(), line.length) };
}

struct Line {
    bytes: [u8; 160],
    length: usize,
}

impl Default for Line {
    fn default() -> Self {
        Line {
            bytes: [0; 160],
            length: 0,
        }
    }
}

impl Line {
    fn push(&mut self, text: &[u8]) {
        for &byte in text {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = byte;
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
}
