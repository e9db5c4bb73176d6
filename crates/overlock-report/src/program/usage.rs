//! Command lines that cannot be read.

use std::error::Error;

use clap::Command;
use clap::error::ContextKind;
use clap::error::ErrorKind::{
    ArgumentConflict, DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
    InvalidSubcommand, MissingRequiredArgument, MissingSubcommand, UnknownArgument,
    ValueValidation,
};

use super::exit::Exit;

/// Makes one line of clap's several: the first paragraph says all that counts. `elsewhere` are
/// subcommands of another program, with its name.
pub fn explain(error: clap::Error, program: Command, elsewhere: (&[&str], &str)) -> Exit {
    match error.kind() {
        DisplayHelp
        | DisplayVersion
        | DisplayHelpOnMissingArgumentOrSubcommand
        | MissingSubcommand => return Exit::Help(error),
        _ => {}
    }
    let text = error.to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_start_matches("error: ");
    match error.kind() {
        MissingRequiredArgument => Exit::usage(format!("{line}; --help says more")),
        ValueValidation => Exit::usage(invalid(&error).unwrap_or_else(|| line.to_owned())),
        UnknownArgument => Exit::usage(match error.get(ContextKind::SuggestedArg) {
            Some(other) => format!("{line}; did you mean '{other}'?"),
            None => line.to_owned(),
        }),
        InvalidSubcommand => {
            let (word, names) = subcommands(&error, program);
            let names = names.join(", ");
            let (others, other) = elsewhere;
            Exit::usage(if others.contains(&word.as_str()) {
                format!("'{word}' is a command of another program: {other} {word}")
            } else {
                format!("{line}; there are {names}")
            })
        }
        // Clap takes a second argument for a subcommand, if subcommands exclude arguments.
        ArgumentConflict => match subcommands(&error, program) {
            (word, names) if !word.is_empty() && !names.contains(&word) => {
                Exit::usage(format!("unexpected argument '{word}' found"))
            }
            _ => Exit::usage(line),
        },
        _ => Exit::usage(line),
    }
}

/// An option's value that its parser has refused: the option, the value, and what is valid.
fn invalid(error: &clap::Error) -> Option<String> {
    let argument = error.get(ContextKind::InvalidArg)?.to_string();
    let option = argument.split_whitespace().next()?;
    let value = error.get(ContextKind::InvalidValue)?;
    let why = error.source()?;
    option
        .starts_with("--")
        .then(|| format!("{option} {value}: {why}"))
}

/// The subcommand that `error` is about, and those that there are, by the usage that it shows.
fn subcommands(error: &clap::Error, mut program: Command) -> (String, Vec<String>) {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    let usage = usage.unwrap_or_default();
    program.build();
    let path = usage
        .split_whitespace()
        .skip_while(|word| *word != program.get_name());
    let mut command = &program;
    for name in path.skip(1) {
        match command.find_subcommand(name) {
            Some(found) => command = found,
            None => break,
        }
    }
    let names = command.get_subcommands().map(Command::get_name);
    let word = error.get(ContextKind::InvalidSubcommand);
    let word = word.map(ToString::to_string).unwrap_or_default();
    (word, names.map(str::to_owned).collect())
}
