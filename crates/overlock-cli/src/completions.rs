//! `overlock completions`

use std::io;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::exit::Exit;

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
pub fn run(args: &Args) -> Result<(), Exit> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut crate::Cli::command(),
        "overlock",
        &mut script,
    );
    crate::print(io::stdout().lock(), &script)
}
