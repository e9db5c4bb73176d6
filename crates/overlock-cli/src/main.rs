//! The `overlock` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    overlock_cli::main()
}
