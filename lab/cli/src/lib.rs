//! The program `overlock-lab` as a library: [`run`] is all of it, with locks of your own; [`check`]
//! is how it reads its command line.

mod bench;
mod measure;
mod model;
mod number;
mod register;
mod sim;
mod torture;
mod vm;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory, Parser, Subcommand};
use overlock_report::program::{completions, exit, files, man, terminal, usage};
use overlock_report::tell;

pub use exit::Exit;
pub use register::{__private, Registration};

/// The program's name.
const NAME: &str = "overlock-lab";

/// Measures, tests and simulates locks
#[derive(Debug, Parser)]
#[command(name = NAME, version, long_version = version(), arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(Box<bench::Args>),
    Torture(Box<torture::Args>),
    Sim(Box<sim::Args>),
    Vm(Box<vm::Args>),
    Model(Box<model::Args>),
    #[command(
        after_help = "Example:\n  overlock-lab completions bash > ~/.local/share/bash-completion/completions/overlock-lab"
    )]
    Completions(completions::Args),
    #[command(
        after_help = "Examples:\n  overlock-lab man bench | man -l -\n  overlock-lab man sim trace | man -l -\n  overlock-lab man --all ~/.local/share/man/man1"
    )]
    Man(man::Args),
}

/// The version with the build, as files of `overlock-lab sim sweep` have it.
fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(sim::build::this);
    VERSION.strip_prefix("overlock ").unwrap_or(&VERSION)
}

/// Does what the process's command line says, with locks of your own, by one
/// [`register`](crate::register!) each, in the lists of `bench`, `sim`, `torture` and `model`.
///
/// # Panics
///
/// If a process calls it twice, or two locks have the same name.
pub fn run(locks: Vec<Registration>) -> ExitCode {
    register::add(locks);
    let result = read(std::env::args_os()).and_then(|cli| match &cli.command {
        Command::Bench(args) => bench::run(args),
        Command::Torture(args) => torture::run(args),
        Command::Sim(args) => sim::run(args),
        Command::Vm(args) => vm::run(args),
        Command::Model(args) => model::run(args),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => man::run(args, Cli::command()),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.report(NAME),
    }
}

fn read(words: impl IntoIterator<Item = OsString>) -> Result<Cli, Exit> {
    let elsewhere = (&["run", "top", "report", "check"][..], "overlock");
    Cli::try_parse_from(words).map_err(|error| usage::explain(error, Cli::command(), elsewhere))
}

/// Reads a command line, the program's name first, and checks what can be checked before anything
/// is done.
///
/// # Errors
///
/// The exit that the program would end with.
pub fn check(words: impl IntoIterator<Item = OsString>) -> Result<(), Exit> {
    match read(words)?.command {
        Command::Bench(args) => bench::check(&args),
        Command::Torture(args) => torture::check(&args),
        Command::Sim(args) => sim::check(&args),
        Command::Vm(args) => vm::check(&args),
        Command::Model(_) | Command::Completions(_) | Command::Man(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_use_is_one_line() {
        let words = ["overlock-lab", "bench", "macro"];
        let Err(Exit::Usage(message)) = check(words.map(OsString::from)) else {
            panic!("not bad use")
        };
        assert!(!message.contains('\n'), "{message}");
        assert!(
            message.contains("'macro'") && message.contains("micro"),
            "{message}"
        );
    }
}
