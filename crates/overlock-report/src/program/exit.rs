//! How the program ends when it does not end well.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// An end other than success.
#[derive(Debug)]
pub enum Exit {
    /// A lock failed, or what it measured could not be written.
    Failed(String),
    /// Bad use.
    Usage(String),
    /// Ctrl-C.
    Interrupted,
    /// The program to run is not there.
    NotFound(String),
    /// The program to run cannot be.
    NotExecutable(String),
    /// A program was run, and has ended.
    Program(ExitStatus),
    /// Help or the version, which are no failure.
    Help(clap::Error),
}

impl Exit {
    /// Exit code: a lock failed.
    pub const FAILED: u8 = 1;
    /// Exit code: bad use.
    pub const USAGE: u8 = 2;
    /// Exit code: interrupted, as a shell reports it.
    pub const INTERRUPTED: u8 = 130;
    /// Exit code: the program to run cannot be, as a shell reports it.
    pub const NOT_EXECUTABLE: u8 = 126;
    /// Exit code: the program to run is not there, as a shell reports it.
    pub const NOT_FOUND: u8 = 127;

    /// Bad use, in one line: whatever the user typed.
    pub fn usage(message: impl Into<String>) -> Self {
        let plain = |c: char| {
            if c.is_control() {
                c.escape_default().collect()
            } else {
                c.to_string()
            }
        };
        Self::Usage(message.into().chars().map(plain).collect())
    }

    /// Says what happened, after the name of the `program`, and returns the exit code for it.
    pub fn report(self, program: &str) -> ExitCode {
        let (message, code) = match self {
            Self::Failed(message) => (message, Self::FAILED),
            Self::Usage(message) => (message, Self::USAGE),
            Self::Interrupted => ("interrupted".to_owned(), Self::INTERRUPTED),
            Self::NotFound(message) => (message, Self::NOT_FOUND),
            Self::NotExecutable(message) => (message, Self::NOT_EXECUTABLE),
            Self::Program(status) => return ExitCode::from(end_like(status)),
            Self::Help(help) => match printed(help.print()) {
                Err(exit) => return exit.report(program),
                Ok(()) => {
                    return ExitCode::from(u8::try_from(help.exit_code()).unwrap_or(Self::USAGE));
                }
            },
        };
        crate::tell!("{program}: {}", plain(&message));
        ExitCode::from(code)
    }
}

/// The message without the numbers of errors, and without names of this program's temporary files.
fn plain(message: &str) -> String {
    let mut message = message.to_owned();
    for (start, end) in [(" (os error ", ")"), (" at path \"", "\"")] {
        while let Some(at) = message.find(start) {
            let rest = at + start.len();
            let length = message[rest..].find(end).map_or(0, |at| at + end.len());
            message.replace_range(at..rest + length, "");
        }
    }
    message
}

/// The result of printing. A reader that has left is no failure.
pub fn printed(result: io::Result<()>) -> Result<(), Exit> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Exit::Failed(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

/// Ends this process as the child has ended: by the same signal, so that a shell sees no
/// difference.
fn end_like(status: ExitStatus) -> u8 {
    let Some(signal) = status.signal() else {
        return status.code().unwrap_or_default() as u8;
    };
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // One core dump is enough.
    // SAFETY: `none` is valid.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
    let mut only = MaybeUninit::uninit();
    // SAFETY: initialises the set.
    unsafe { libc::sigemptyset(only.as_mut_ptr()) };
    // SAFETY: initialised above; a signal that has ended a process exists.
    unsafe { libc::sigaddset(only.as_mut_ptr(), signal) };
    // SAFETY: the default action is no function of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: initialised above; no old set is written.
    unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, only.as_ptr(), std::ptr::null_mut()) };
    // SAFETY: it has no preconditions.
    unsafe { libc::raise(signal) };
    // Of signals that do not end a process by default none has ended the child.
    128 + signal as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_for_people() {
        let missing = io::Error::from_raw_os_error(libc::ENOENT);
        let temporary = tempfile::tempfile_in("/no/such/place").unwrap_err();
        let message = format!("one: {missing}; two: {temporary}.");
        let reason = "No such file or directory";
        assert_eq!(plain(&message), format!("one: {reason}; two: {reason}."));
        assert_eq!(plain("a (os error "), "a");
        assert_eq!(plain("nothing"), "nothing");
    }
}
