//! The subcommand `completions`.

use std::io;

use clap::Command;
use clap_complete::Shell;

use super::exit::Exit;
use super::terminal::print;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &Args, mut program: Command) -> Result<(), Exit> {
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(args.shell, &mut program, name, &mut script);
    print(io::stdout().lock(), &script)
}
