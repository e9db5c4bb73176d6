//! The `overlock` program as a library: all of it is [`main`]; [`run`] is the same with locks of
//! your own; [`check`] is how it reads its command line.

/// Prints a line to standard error. Goes on where that cannot be written: nobody reads it then.
macro_rules! tell {
    ($($line:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($line)*);
    }};
}

#[cfg(feature = "bench")]
mod bench;
mod completions;
mod exit;
mod files;
mod man;
#[cfg(feature = "bench")]
mod measure;
#[cfg(feature = "model")]
mod model;
#[cfg(any(feature = "bench", feature = "torture"))]
mod number;
mod report;
mod run;
#[cfg(feature = "sim")]
mod sim;
mod stat;
mod terminal;
mod top;
#[cfg(feature = "torture")]
mod torture;
mod usage;
#[cfg(feature = "vm")]
mod vm;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

pub use exit::Exit;
pub use overlock_register::{Registration, register};

/// Locks that stay fast when there are more threads than CPUs
#[derive(Debug, Parser)]
#[command(
    name = "overlock",
    version,
    long_version = usage::version(),
    arg_required_else_help = true,
    after_help = usage::note()
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "bench")]
    Bench(Box<bench::Args>),
    #[cfg(feature = "torture")]
    Torture(Box<torture::Args>),
    #[cfg(feature = "sim")]
    Sim(Box<sim::Args>),
    #[cfg(feature = "vm")]
    Vm(Box<vm::Args>),
    #[cfg(feature = "model")]
    Model(Box<model::Args>),
    Run(Box<run::Args>),
    Top(top::Args),
    Report(report::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Does what the process's command line says.
pub fn main() -> ExitCode {
    run(Vec::new())
}

/// The same with locks of your own, by one [`register`] each, in the lists of `bench`, `sim`,
/// `torture` and `model`. For the last, build this crate with the feature `model`.
///
/// # Panics
///
/// If a process calls it twice, or two locks have the same name.
pub fn run(locks: Vec<Registration>) -> ExitCode {
    overlock_register::add(locks);
    let result = match Cli::try_parse() {
        Ok(cli) => match &cli.command {
            #[cfg(feature = "bench")]
            Command::Bench(args) => bench::run(args),
            #[cfg(feature = "torture")]
            Command::Torture(args) => torture::run(args),
            #[cfg(feature = "sim")]
            Command::Sim(args) => sim::run(args),
            #[cfg(feature = "vm")]
            Command::Vm(args) => vm::run(args),
            #[cfg(feature = "model")]
            Command::Model(args) => model::run(args),
            Command::Run(args) => run::run(args),
            Command::Top(args) => top::run(args),
            Command::Report(args) => report::run(args),
            Command::Completions(args) => completions::run(args, Cli::command()),
            Command::Man(args) => man::run(args, Cli::command()),
        },
        Err(error) => Err(usage::explain(error, Cli::command())),
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
/// The exit that the program would end with.
pub fn check(words: impl IntoIterator<Item = OsString>) -> Result<(), Exit> {
    let cli = Cli::try_parse_from(words);
    let cli = cli.map_err(|error| usage::explain(error, Cli::command()))?;
    match cli.command {
        #[cfg(feature = "bench")]
        Command::Bench(args) => bench::check(&args),
        #[cfg(feature = "torture")]
        Command::Torture(args) => torture::check(&args),
        #[cfg(feature = "sim")]
        Command::Sim(args) => sim::check(&args),
        #[cfg(feature = "vm")]
        Command::Vm(args) => vm::check(&args),
        #[cfg(feature = "model")]
        Command::Model(_) => Ok(()),
        Command::Run(_)
        | Command::Top(_)
        | Command::Report(_)
        | Command::Completions(_)
        | Command::Man(_) => Ok(()),
    }
}

#[cfg(all(test, feature = "bench"))]
mod tests {
    use super::*;

    #[test]
    fn bad_use_is_one_line() {
        let words = ["overlock", "bench", "macro"];
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
