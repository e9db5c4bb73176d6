//! Printing, and the terminal's width.

use std::io::{self, Write};
use std::os::fd::AsFd;

use super::exit::{Exit, printed};

/// Prints to a reader that may have left, as `head` does.
pub fn print(mut out: impl Write, text: &[u8]) -> Result<(), Exit> {
    printed(out.write_all(text).and_then(|()| out.flush()))
}

/// Prints to the standard output, or to the standard error where a file of results has the
/// standard output.
pub fn print_beside(stdout_is_used: bool, text: &str) -> Result<(), Exit> {
    if stdout_is_used {
        print(io::stderr().lock(), text.as_bytes())
    } else {
        print(io::stdout().lock(), text.as_bytes())
    }
}

/// The width of the standard output, if it is a terminal.
pub fn width() -> Option<u16> {
    width_of(io::stdout())
}

/// The width of a terminal, if it is one.
pub fn width_of(terminal: impl AsFd) -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}
