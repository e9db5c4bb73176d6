//! Signals that interrupt the threads anywhere.
//!
//! Each one makes whatever sleeps return for no reason. And where the lock's docs allow it, its
//! handler tries the lock. The signal is SIGURG: what nobody handles of it is ignored, so one that
//! comes late does no harm.

use std::cell::Cell;
use std::io;
use std::ptr;
use std::sync::Once;

use crate::job::{Command, Job};

const SIGNAL: libc::c_int = libc::SIGURG;

/// The job of a handler on this thread. Plain data, so that a handler may read it.
#[derive(Clone, Copy)]
struct Employment {
    job: &'static Job,
    index: usize,
}

thread_local! {
    static MINE: Cell<Option<Employment>> = const { Cell::new(None) };
}

/// Handlers on the calling thread work for `job` from now on, as its worker `index`.
pub fn accept(job: &'static Job, index: usize) {
    MINE.set(Some(Employment { job, index }));
}

/// Handlers on the calling thread do nothing from now on.
pub fn refuse() {
    MINE.set(None);
}

extern "C" fn handle(_: libc::c_int) {
    // SAFETY: no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: it is this thread's own, and stays.
    let before = unsafe { *errno };
    if let Some(mine) = MINE.get()
        && let Some(state) = mine.job.workers.get(mine.index)
    {
        state.handled.signals.add();
        // While all rest, somebody may be checking the lock.
        if mine.job.command() == Command::Go {
            mine.job.subject.interrupt(mine.index, &state.handled);
        }
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Handles the signal from now on, until the process ends.
///
/// # Panics
///
/// If the system refuses, which it has no reason to.
pub fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: all zero bytes are a valid action.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handle as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the action is valid, and the handler does only what handlers may: it reads a
        // constant-initialised thread-local without a destructor, and does what
        // `Subject::interrupt` promises to be fit for it.
        let failed = unsafe { libc::sigaction(SIGNAL, &action, ptr::null_mut()) };
        assert_eq!(failed, 0, "no handler: {}", io::Error::last_os_error());
    });
}

/// Interrupts the thread `id` of this process, if it still lives.
pub fn send(id: u32) {
    let process = std::process::id();
    // SAFETY: takes numbers; where there is no such thread it fails, which is fine.
    unsafe { libc::syscall(libc::SYS_tgkill, process, id, SIGNAL) };
}
