//! `overlock completions`

use std::io;

use clap::Command;
use clap_complete::Shell;

use crate::exit::Exit;
use crate::terminal::print;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  overlock completions bash > ~/.local/share/bash-completion/completions/overlock"
)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &Args, mut program: Command) -> Result<(), Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "overlock", &mut script);
    print(io::stdout().lock(), &script)
}
