//! The `overlock` program.

mod bench;
mod completions;
mod exit;
mod man;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::Exit;

/// Locks that stay fast when there are more threads than CPUs
#[derive(Debug, Parser)]
#[command(name = "overlock", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(Box<bench::Args>),
    Completions(completions::Args),
    Man(man::Args),
}

fn main() -> ExitCode {
    let result = match Cli::try_parse() {
        Ok(cli) => match &cli.command {
            Command::Bench(args) => bench::run(args),
            Command::Completions(args) => completions::run(args),
            Command::Man(args) => man::run(args),
        },
        Err(error) => Err(Exit::from(error)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.report(),
    }
}

/// Prints to a reader that may have left, as `head` does.
fn print(mut out: impl Write, text: &[u8]) -> Result<(), Exit> {
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Exit::Failed(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}
