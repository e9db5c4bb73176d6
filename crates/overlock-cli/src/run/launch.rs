//! Running a program as a child, such that it makes no difference: signals get there, stops and
//! ends come back.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus};
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use libc::{c_int, siginfo_t, sigset_t};

use super::program;
use crate::exit::Exit;
use crate::stat;

/// Signals that are passed on to the child. With a watch SIGUSR2 goes to [`Watch::signalled`]
/// instead.
const FORWARDED: [c_int; 9] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGCONT,
];

/// An observer of the child.
pub trait Watch {
    /// It runs.
    fn started(&mut self, _pid: u32) {}

    /// SIGUSR2 has come: whether that is all, and the child does not get it.
    fn signalled(&mut self) -> bool {
        false
    }

    /// A look at what it has done by now, when that may take a moment. Returns how long to wait for
    /// signals before the next one; without a time there is none until a signal comes.
    fn look(&mut self) -> Option<Duration> {
        None
    }

    /// It has ended, and has taken this, with those of its children that it has waited for.
    fn ended(&mut self, _usage: &libc::rusage) {}
}

impl Watch for () {}

/// Runs it to its end.
pub fn run(path: &Path, mut command: Command, watch: &mut impl Watch) -> Result<ExitStatus, Exit> {
    let (signals, before) = block().map_err(|error| Exit::Failed(format!("signals: {error}")))?;
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(move || restore(&before)) };
    let mut child = command
        .spawn()
        .map_err(|error| program::refused(path, &error))?;
    watch.started(child.id());
    loop {
        if let Some((status, usage)) = poll(&mut child)? {
            watch.ended(&usage);
            return Ok(status);
        }
        let Some(info) = next(&signals, watch.look()) else {
            continue;
        };
        let from_kernel = info.si_code > 0;
        match info.si_signo {
            libc::SIGCHLD => {}
            libc::SIGUSR2 if watch.signalled() => {}
            // The terminal's: the child is in the same process group and has it already.
            _ if from_kernel => {}
            signal => send(&child, signal),
        }
    }
}

/// Blocks what [`next`] waits for, for the calling thread. Returns that, and the mask as it was.
pub fn block() -> io::Result<(sigset_t, sigset_t)> {
    let mut signals = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: initialises the set.
    unsafe { libc::sigemptyset(signals.as_mut_ptr()) };
    for signal in FORWARDED.into_iter().chain([libc::SIGCHLD]) {
        // SAFETY: the set is initialised, and the signals exist.
        unsafe { libc::sigaddset(signals.as_mut_ptr(), signal) };
    }
    // SAFETY: the one set is initialised, the other valid for the write.
    let result =
        unsafe { libc::sigprocmask(libc::SIG_BLOCK, signals.as_ptr(), before.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: initialised above.
    let signals = unsafe { signals.assume_init() };
    // SAFETY: the call that has succeeded has written it.
    Ok((signals, unsafe { before.assume_init() }))
}

/// Undoes [`block`].
pub fn restore(before: &sigset_t) -> io::Result<()> {
    // SAFETY: a set that the kernel has filled in; async-signal-safe.
    match unsafe { libc::sigprocmask(libc::SIG_SETMASK, before, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Threads that `start` starts get none of the signals that [`run`] passes on: one of them would
/// end this process, and leave the program alone.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> io::Result<T> {
    let (_, before) = block()?;
    let started = start();
    restore(&before)?;
    Ok(started)
}

/// Directories that go when a signal ends this process.
static OURS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The directory is of no use without this process, unless a daemon counts there.
pub fn leaves_with_us(dir: &Path) {
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    ours.push(dir.to_owned());
}

/// The program has ended: what [`run`] has passed on to it ends this process from now on, which may
/// have a long report to make.
pub fn end_at_signals() -> io::Result<()> {
    let (all, _) = block()?;
    // Those that have come by now were for the program.
    while next(&all, Some(Duration::ZERO)).is_some() {}
    let set_of = |signals: &[c_int]| {
        let mut set = all;
        // SAFETY: initialised.
        unsafe { libc::sigemptyset(&mut set) };
        for &signal in signals {
            // SAFETY: the set is initialised, and the signals exist.
            unsafe { libc::sigaddset(&mut set, signal) };
        }
        set
    };
    let ends = set_of(&[libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM]);
    thread::spawn(move || {
        let mut signal = 0;
        // SAFETY: the set is initialised, and blocked in all threads; valid for the write.
        if unsafe { libc::sigwait(&ends, &mut signal) } != 0 {
            return;
        }
        for dir in &*OURS.lock().unwrap_or_else(PoisonError::into_inner) {
            if stat::living(dir).is_empty() {
                // Nothing more can be done where that fails.
                let _ = std::fs::remove_dir_all(dir);
            }
        }
        Exit::Program(ExitStatus::from_raw(signal)).report(crate::NAME);
        process::exit(128 + signal);
    });
    let stops = set_of(&[libc::SIGTSTP]);
    // SAFETY: initialised; no old set is written.
    match unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &stops, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The next signal; `None` where the wait was interrupted, or the time is over.
fn next(signals: &sigset_t, most: Option<Duration>) -> Option<siginfo_t> {
    let mut info = MaybeUninit::uninit();
    let most = most.map(|most| libc::timespec {
        tv_sec: most.as_secs() as libc::time_t,
        tv_nsec: most.subsec_nanos().into(),
    });
    let most = most.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the set is initialised, `info` valid for the write, the time null or valid for the
    // read.
    let signal = unsafe { libc::sigtimedwait(signals, info.as_mut_ptr(), most) };
    // SAFETY: written by the call that has succeeded.
    (signal > 0).then(|| unsafe { info.assume_init() })
}

fn send(child: &Child, signal: c_int) {
    // A pid is the child's until it is waited for, and `poll` was the last to do that.
    // SAFETY: it has no preconditions.
    unsafe { libc::kill(child.id() as c_int, signal) };
}

/// Polls the child: `Some` at its end. If it was stopped, this process stops too, as job control
/// expects.
fn poll(child: &mut Child) -> Result<Option<(ExitStatus, libc::rusage)>, Exit> {
    loop {
        let mut status = 0;
        let mut usage = MaybeUninit::zeroed();
        let flags = libc::WNOHANG | libc::WUNTRACED;
        let pid = child.id() as c_int;
        // SAFETY: both are valid for the write.
        match unsafe { libc::wait4(pid, &mut status, flags, usage.as_mut_ptr()) } {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                return Err(Exit::Failed(format!("cannot wait for it: {error}")));
            }
            _ => {}
        }
        let status = ExitStatus::from_raw(status);
        if status.stopped_signal().is_none() {
            // SAFETY: all zero bytes are a valid value, and the kernel has written another.
            return Ok(Some((status, unsafe { usage.assume_init() })));
        }
        // SAFETY: it has no preconditions. Returns when this process is continued; SIGCONT is then
        // among the signals to pass on.
        unsafe { libc::raise(libc::SIGSTOP) };
        send(child, libc::SIGCONT);
    }
}
