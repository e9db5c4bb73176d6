//! The `overlock` program as a library: all of it is [`main`]; [`check`] is how it reads its
//! command line.

mod bench;
mod completions;
mod exit;
mod man;
mod measure;
mod number;
mod report;
mod run;
mod sim;
mod stat;
mod top;
mod torture;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use exit::Exit;

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
    Torture(Box<torture::Args>),
    Sim(Box<sim::Args>),
    Run(Box<run::Args>),
    Top(top::Args),
    Report(report::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Does what the process's command line says.
pub fn main() -> ExitCode {
    let result = match Cli::try_parse() {
        Ok(cli) => match &cli.command {
            Command::Bench(args) => bench::run(args),
            Command::Torture(args) => torture::run(args),
            Command::Sim(args) => sim::run(args),
            Command::Run(args) => run::run(args),
            Command::Top(args) => top::run(args),
            Command::Report(args) => report::run(args),
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

/// Reads a command line, the program's name first, and checks what can be checked before anything
/// is done.
///
/// # Errors
///
/// What the program would end with.
pub fn check(words: impl IntoIterator<Item = OsString>) -> Result<(), Exit> {
    match Cli::try_parse_from(words)?.command {
        Command::Bench(args) => bench::check(&args),
        Command::Torture(args) => torture::check(&args),
        Command::Sim(args) => sim::check(&args),
        Command::Run(_)
        | Command::Top(_)
        | Command::Report(_)
        | Command::Completions(_)
        | Command::Man(_) => Ok(()),
    }
}

/// Prints to a reader that may have left, as `head` does.
fn print(mut out: impl Write, text: &[u8]) -> Result<(), Exit> {
    printed(out.write_all(text).and_then(|()| out.flush()))
}

/// What came of printing. That the reader has left is no failure.
fn printed(result: io::Result<()>) -> Result<(), Exit> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Exit::Failed(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}
