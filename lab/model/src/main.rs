//! `overlock-model`: checks the locks with all model checkers.

use std::process::ExitCode;

use clap::Parser;
use overlock_model::program::{self, check};

#[derive(Debug, Parser)]
#[command(name = "overlock-model", version)]
struct Program {
    #[command(flatten)]
    args: program::Args,
}

fn main() -> ExitCode {
    match check(&Program::parse().args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
