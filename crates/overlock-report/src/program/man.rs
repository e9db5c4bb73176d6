//! The subcommand `man`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::exit::Exit;
use super::terminal::print;

/// Print a manual page, or write all of them
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The subcommand that the page is about, word by word [default: the program]
    command: Vec<String>,
    /// Write the pages of all subcommands to files in this directory, which exists
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    all: Option<PathBuf>,
}

/// Prints the page of a command of `program`, or writes all.
pub fn run(args: &Args, mut program: Command) -> Result<(), Exit> {
    if let Some(dir) = &args.all {
        return write_all(program, dir);
    }
    program.build();
    let mut command = &program;
    for name in &args.command {
        command = command
            .find_subcommand(name)
            .ok_or_else(|| unknown(command, name))?;
    }
    let (_, page) =
        page(command).map_err(|error| Exit::Failed(format!("cannot write the page: {error}")))?;
    print(io::stdout().lock(), &page)
}

fn write_all(program: Command, dir: &Path) -> Result<(), Exit> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    write_with_subcommands(&program, dir).map_err(|error| {
        let dir = dir.display();
        Exit::Failed(format!("cannot write the manual pages to {dir}: {error}"))
    })
}

fn write_with_subcommands(command: &Command, dir: &Path) -> io::Result<()> {
    let (name, page) = page(command)?;
    fs::write(dir.join(name), page)?;
    let mut commands = command.get_subcommands();
    commands.try_for_each(|command| write_with_subcommands(command, dir))
}

/// A command's page, and its file's name. Usage, examples and exit codes are as in the help:
/// clap_mangen would leave out the options' values, and fill the lines.
fn page(command: &Command) -> io::Result<(String, Vec<u8>)> {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let more = command.get_after_help().map(ToString::to_string);
    let man = Man::new(command.override_usage(usage).after_help(None::<&str>))
        // An empty one would not be a word of the line.
        .date(" ")
        .source(concat!("overlock ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut page = Vec::new();
    man.render(&mut page)?;
    for paragraph in more.iter().flat_map(|more| more.split("\n\n")) {
        section(paragraph).to_writer(&mut page)?;
    }
    Ok((man.get_filename(), page))
}

/// The text below the options: a heading and indented lines, or a line with its heading in front.
fn section(paragraph: &str) -> Roff {
    let (heading, text) = paragraph.split_once(':').unwrap_or(("Notes", paragraph));
    let heading = match heading {
        "Example" => "EXAMPLES".to_owned(),
        "Exit codes" => "EXIT STATUS".to_owned(),
        heading => heading.to_uppercase(),
    };
    let mut roff = Roff::new();
    roff.control("SH", [heading.as_str()]);
    match text.strip_prefix('\n') {
        Some(lines) => {
            roff.control("nf", []);
            for line in lines.lines() {
                roff.text([roman(line.trim_start())]);
            }
            roff.control("fi", []);
        }
        None => {
            roff.text([roman(text.trim_start())]);
        }
    }
    roff
}

fn unknown(command: &Command, name: &str) -> Exit {
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let others = match &names[..] {
        [] => String::new(),
        names => format!("; there is one for {}", names.join(", ")),
    };
    Exit::usage(format!("no manual page for '{name}'{others}"))
}
