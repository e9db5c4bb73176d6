//! Command lines that cannot be read.

use std::sync::LazyLock;

use clap::Command;
use clap::error::ContextKind;
use clap::error::ErrorKind::{
    ArgumentConflict, DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
    InvalidSubcommand, MissingRequiredArgument, MissingSubcommand, UnknownArgument,
};

use crate::exit::Exit;

/// The subcommands that this build leaves out, by its features.
pub const ABSENT: &[&str] = &[
    #[cfg(not(feature = "bench"))]
    "bench",
    #[cfg(not(feature = "torture"))]
    "torture",
    #[cfg(not(feature = "sim"))]
    "sim",
    #[cfg(not(feature = "vm"))]
    "vm",
];

/// The version with the build, as files of `overlock sim sweep` have it.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let changes = match env!("OVERLOCK_CHANGES") {
            "" => String::new(),
            changes => format!(", changes {changes}"),
        };
        format!(
            "{} (commit {}{changes}, profile {})",
            env!("CARGO_PKG_VERSION"),
            env!("OVERLOCK_COMMIT"),
            env!("OVERLOCK_PROFILE"),
        )
    });
    &VERSION
}

/// The note below the help of a build that leaves subcommands out.
pub fn note() -> Option<&'static str> {
    (!ABSENT.is_empty()).then_some(
        "bench, sim, torture and vm are features of overlock-cli: not all are in this build.",
    )
}

/// Makes one line of clap's several: the first paragraph says all that counts.
pub fn explain(error: clap::Error, program: Command) -> Exit {
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
        UnknownArgument => Exit::usage(match error.get(ContextKind::SuggestedArg) {
            Some(other) => format!("{line}; did you mean '{other}'?"),
            None => line.to_owned(),
        }),
        InvalidSubcommand => {
            let (word, names) = subcommands(&error, program);
            let names = names.join(", ");
            Exit::usage(if ABSENT.contains(&word.as_str()) {
                format!("{line}; this build has {names}, and {word} is a feature of overlock-cli")
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

/// The subcommand that `error` is about, and those that there are, by the usage that it shows.
fn subcommands(error: &clap::Error, mut program: Command) -> (String, Vec<String>) {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    let usage = usage.unwrap_or_default();
    let path = usage
        .split_whitespace()
        .skip_while(|word| *word != "overlock");
    program.build();
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
