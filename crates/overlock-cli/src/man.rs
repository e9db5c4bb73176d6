//! `overlock man`

use std::io;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::exit::Exit;

/// Print a manual page
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  overlock man bench | man -l -")]
pub struct Args {
    /// The subcommand that the page is about [default: the program]
    command: Option<String>,
}

/// Prints the page.
pub fn run(args: &Args) -> Result<(), Exit> {
    let mut program = crate::Cli::command();
    program.build();
    let names: Vec<&str> = program
        .get_subcommands()
        .map(clap::Command::get_name)
        .collect();
    let command = match &args.command {
        None => program.clone(),
        Some(name) => program.find_subcommand(name).cloned().ok_or_else(|| {
            Exit::usage(format!(
                "no manual page for '{name}'; there is one for {}",
                names.join(", ")
            ))
        })?,
    };
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .map_err(|error| Exit::Failed(format!("cannot write the page: {error}")))?;
    crate::print(io::stdout().lock(), &page)
}
