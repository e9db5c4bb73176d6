//! `overlock man`

use std::io;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_mangen::Man;

use crate::exit::Exit;

/// Print a manual page, or write all of them
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  overlock man bench | man -l -\n  overlock man sim trace | man -l -\n  overlock man --all ~/.local/share/man/man1"
)]
pub struct Args {
    /// The subcommand that the page is about, word by word [default: the program]
    command: Vec<String>,
    /// Write the pages of all subcommands to files in this directory, which exists
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    all: Option<PathBuf>,
}

/// Prints the page, or writes all.
pub fn run(args: &Args) -> Result<(), Exit> {
    if let Some(dir) = &args.all {
        return write_all(dir);
    }
    let mut program = crate::Cli::command();
    program.build();
    let mut command = &program;
    for name in &args.command {
        command = command
            .find_subcommand(name)
            .ok_or_else(|| unknown(command, name))?;
    }
    let mut page = Vec::new();
    Man::new(command.clone())
        .render(&mut page)
        .map_err(|error| Exit::Failed(format!("cannot write the page: {error}")))?;
    crate::print(io::stdout().lock(), &page)
}

fn write_all(dir: &Path) -> Result<(), Exit> {
    clap_mangen::generate_to(crate::Cli::command(), dir).map_err(|error| {
        let dir = dir.display();
        Exit::Failed(format!("cannot write the manual pages to {dir}: {error}"))
    })
}

fn unknown(command: &clap::Command, name: &str) -> Exit {
    let names: Vec<&str> = command
        .get_subcommands()
        .map(clap::Command::get_name)
        .collect();
    let others = match &names[..] {
        [] => String::new(),
        names => format!("; there is one for {}", names.join(", ")),
    };
    Exit::usage(format!("no manual page for '{name}'{others}"))
}
