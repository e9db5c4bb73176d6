//! The program `overlock-lab`.

use std::process::ExitCode;

fn main() -> ExitCode {
    overlock_lab::run(Vec::new())
}
