//! The parts that the programs share beside their subcommands.

pub mod completions;
pub mod exit;
pub mod files;
pub mod man;
pub mod terminal;
pub mod usage;

/// Prints a line to standard error. Goes on where that cannot be written: nobody reads it then.
#[macro_export]
macro_rules! tell {
    ($($line:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($line)*);
    }};
}
