//! A thread without signals, for a while.

use std::cell::Cell;
use std::ptr;

use overlock_linux::__private::{extras, system_call};

use super::super::signal::{SYNCHRONOUS, bit};

/// Signals are blocked until it is dropped (G1), if such calls are granted.
pub(in super::super) struct Quiet {
    before: u64,
    /// Dropped after the mask is as before: no filter comes in between.
    granted: Cell<Option<extras::Inside<'static>>>,
}

impl Quiet {
    pub(in super::super) fn begin() -> Quiet {
        let granted = if cfg!(miri) { None } else { extras::enter() };
        let before = match granted {
            Some(_) => mask(libc::SIG_BLOCK, Some(!SYNCHRONOUS)),
            None => 0,
        };
        Quiet {
            before,
            granted: Cell::new(granted),
        }
    }

    fn is_granted(&self) -> bool {
        let granted = self.granted.take();
        let is_granted = granted.is_some();
        self.granted.set(granted);
        is_granted
    }

    /// Whether no handler can come.
    pub(super) fn blocks(&self) -> bool {
        self.is_granted() || cfg!(miri)
    }

    /// Waits with the signals as they were before. A handler may run, and leave this by a jump.
    pub(super) fn open_while(&self, wait: impl FnOnce()) {
        let Some(granted) = self.granted.take() else {
            return wait();
        };
        let blocked = mask(libc::SIG_SETMASK, Some(self.before));
        drop(granted);
        wait();
        if let Some(granted) = extras::enter() {
            mask(libc::SIG_SETMASK, Some(blocked));
            self.granted.set(Some(granted));
        }
    }

    /// For calls that may wait for the program.
    pub(in super::super) fn endable(&self) -> Endable<'_> {
        let mut open = 0;
        if self.is_granted() {
            let open_before = |signal: &&i32| bit(**signal) & self.before == 0;
            let users = USERS.iter().filter(open_before);
            let ending = users.filter(|signal| is_default(**signal));
            open = ending.fold(0, |open, signal| open | bit(*signal));
        }
        if open != 0 {
            mask(libc::SIG_UNBLOCK, Some(open));
        }
        Endable { open, quiet: self }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if self.is_granted() {
            mask(libc::SIG_SETMASK, Some(self.before));
        }
    }
}

/// The signals by which a user ends or stops a program.
const USERS: [i32; 7] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGXCPU,
    libc::SIGTSTP,
];

/// Until it is dropped a user's signals end the program, unless it handles them: then they stay
/// blocked, since its handler may park the thread.
pub(in super::super) struct Endable<'a> {
    open: u64,
    quiet: &'a Quiet,
}

impl Drop for Endable<'_> {
    fn drop(&mut self) {
        if self.open != 0 && self.quiet.is_granted() {
            mask(libc::SIG_BLOCK, Some(self.open));
        }
    }
}

/// Whether the program has no handler for the signal, and does not ignore it.
fn is_default(signal: i32) -> bool {
    if cfg!(any(target_arch = "mips", target_arch = "mips64")) {
        return false; // the handler comes second there
    }
    // The kernel's `struct sigaction`: the handler, and room for the rest.
    let mut action = [usize::MAX; 8];
    let none = ptr::null::<usize>();
    // SAFETY: `action` is as large as the kernel's structure at least; nothing is changed.
    let result = unsafe {
        system_call!(
            libc::SYS_rt_sigaction,
            signal,
            none,
            action.as_mut_ptr(),
            size_of::<u64>(),
        )
    };
    result == 0 && action[0] == libc::SIG_DFL
}

/// Changes the thread's mask of signals. Returns the one before. By a system call: the program may
/// have replaced the C library's function, which takes a set of another size besides.
pub(in super::super) fn mask(how: i32, signals: Option<u64>) -> u64 {
    let mut before = 0u64;
    let new = signals.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: reads and writes the 8 bytes that the size says, or none.
    unsafe {
        system_call!(
            libc::SYS_rt_sigprocmask,
            how,
            new,
            &raw mut before,
            size_of::<u64>(),
        )
    };
    before
}

#[cfg(test)]
impl Quiet {
    /// As under a filter that refuses the calls.
    pub(super) fn without_calls() -> Quiet {
        Quiet {
            before: 0,
            granted: Cell::new(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where what the validator calls keeps Ctrl-C from the program, and where a handler of
    /// the program's may run then.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no signals")]
    fn a_users_signals_end_the_program_unless_it_handles_them() {
        extern "C" fn handle(_: i32) {}

        let handler = handle as *const () as usize;
        for (signal, handler) in [
            (libc::SIGINT, libc::SIG_DFL),
            (libc::SIGTERM, libc::SIG_DFL),
            (libc::SIGXCPU, handler),
        ] {
            // SAFETY: the handler does nothing.
            assert_ne!(unsafe { libc::signal(signal, handler) }, libc::SIG_ERR);
        }
        let users = [libc::SIGINT, libc::SIGTERM, libc::SIGXCPU, libc::SIGUSR1];
        let open = || users.map(|signal| mask(libc::SIG_BLOCK, None) & bit(signal) == 0);
        assert_eq!(open(), [true; 4]);
        let quiet = Quiet::begin();
        assert_eq!(open(), [false; 4]);
        let endable = quiet.endable();
        assert_eq!(open(), [true, true, false, false]);
        drop(endable);
        assert_eq!(open(), [false; 4]);
        drop(quiet);
        assert_eq!(open(), [true; 4]);
        // One that the program has blocked stays so.
        mask(libc::SIG_BLOCK, Some(bit(libc::SIGTERM)));
        let quiet = Quiet::begin();
        let endable = quiet.endable();
        assert_eq!(open(), [true, false, false, false]);
        drop(endable);
        drop(quiet);
        mask(libc::SIG_UNBLOCK, Some(bit(libc::SIGTERM)));
    }
}
