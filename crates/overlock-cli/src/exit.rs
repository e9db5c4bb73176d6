//! How the program ends when it does not end well.

use std::process::{ExitCode, ExitStatus};

use clap::error::ContextKind;
use clap::{Command, CommandFactory};

/// An end other than success.
#[derive(Debug)]
pub enum Exit {
    /// A lock failed, or what it measured could not be written.
    Failed(String),
    /// The user asked for something that cannot be.
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

    /// Says what happened, and returns the exit code for it.
    pub fn report(self) -> ExitCode {
        let (message, code) = match self {
            Self::Failed(message) => (message, Self::FAILED),
            Self::Usage(message) => (message, Self::USAGE),
            Self::Interrupted => ("interrupted".to_owned(), Self::INTERRUPTED),
            Self::NotFound(message) => (message, Self::NOT_FOUND),
            Self::NotExecutable(message) => (message, Self::NOT_EXECUTABLE),
            Self::Program(status) => return ExitCode::from(crate::run::end_like(status)),
            Self::Help(help) => match crate::printed(help.print()) {
                Err(exit) => return exit.report(),
                Ok(()) => {
                    return ExitCode::from(u8::try_from(help.exit_code()).unwrap_or(Self::USAGE));
                }
            },
        };
        eprintln!("overlock: {}", plain(&message));
        ExitCode::from(code)
    }
}

/// The message without the numbers of errors, and without names of files that nobody but this
/// program knows.
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

/// clap explains itself over several lines; the first paragraph says all that counts.
impl From<clap::Error> for Exit {
    fn from(error: clap::Error) -> Self {
        use clap::error::ErrorKind::{
            DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
            InvalidSubcommand, MissingRequiredArgument, MissingSubcommand,
        };
        match error.kind() {
            DisplayHelp
            | DisplayVersion
            | DisplayHelpOnMissingArgumentOrSubcommand
            | MissingSubcommand => Self::Help(error),
            _ => {
                let text = error.to_string();
                let paragraph = text.split("\n\n").next().unwrap_or_default();
                let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
                let line = line.trim_start_matches("error: ");
                match error.kind() {
                    MissingRequiredArgument => Self::usage(format!("{line}; --help says more")),
                    InvalidSubcommand => Self::usage(format!("{line}{}", subcommands(&error))),
                    _ => Self::usage(line),
                }
            }
        }
    }
}

/// The subcommands that there are where `error` found none, by the usage that it shows.
fn subcommands(error: &clap::Error) -> String {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    let usage = usage.unwrap_or_default();
    let path = usage
        .split_whitespace()
        .skip_while(|word| *word != "overlock");
    let mut program = crate::Cli::command();
    program.build();
    let mut command = &program;
    for name in path.skip(1) {
        match command.find_subcommand(name) {
            Some(found) => command = found,
            None => break,
        }
    }
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    format!("; there are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::io;

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

    #[test]
    fn bad_use_is_one_line() {
        let error = crate::Cli::try_parse_from(["overlock", "bench", "macro"]).unwrap_err();
        let Exit::Usage(message) = Exit::from(error) else {
            panic!("not bad use")
        };
        assert!(!message.contains('\n'), "{message}");
        assert!(
            message.contains("'macro'") && message.contains("micro"),
            "{message}"
        );
    }
}
