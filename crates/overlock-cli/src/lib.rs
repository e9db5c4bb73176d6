//! The program `overlock` as a library: all of it is [`main`].

mod check;
mod profile;
mod report;
mod run;
mod stat;
mod top;
mod wakeups;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use overlock_report::program::{completions, exit, files, man, terminal, usage};

/// The program's name.
const NAME: &str = "overlock";

/// Locks that stay fast when there are more threads than CPUs
#[derive(Debug, Parser)]
#[command(name = NAME, version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Check(Box<run::CheckArgs>),
    Profile(Box<profile::Args>),
    Top(top::Args),
    Report(Box<report::Args>),
    Diff(profile::diff::Args),
    Merge(profile::merge::Args),
    Wakeups(wakeups::Args),
    #[command(
        after_help = "Example:\n  overlock completions bash > ~/.local/share/bash-completion/completions/overlock"
    )]
    Completions(completions::Args),
    #[command(
        after_help = "Examples:\n  overlock man run | man -l -\n  overlock man --all ~/.local/share/man/man1"
    )]
    Man(man::Args),
}

/// Does what the process's command line says.
pub fn main() -> ExitCode {
    let elsewhere = (
        &["bench", "torture", "sim", "vm", "model"][..],
        "overlock-lab",
    );
    let result = Cli::try_parse()
        .map_err(|error| usage::explain(error, Cli::command(), elsewhere))
        .and_then(|cli| match cli.command {
            Command::Run(args) => run::run(&args),
            Command::Check(args) => run::run(&(*args).into()),
            Command::Profile(args) => profile::run(&args),
            Command::Top(args) => top::run(&args),
            Command::Report(args) => report::run(&args),
            Command::Diff(args) => profile::diff::run(&args),
            Command::Merge(args) => profile::merge::run(&args),
            Command::Wakeups(args) => wakeups::run(&args),
            Command::Completions(args) => completions::run(&args, Cli::command()),
            Command::Man(args) => man::run(&args, Cli::command()),
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.report(NAME),
    }
}
