//! Flame graphs as SVG files.

use std::io::{self, Write};

use inferno::flamegraph::{self, Options};

use crate::view::plain;
use crate::{By, Profile, Shown, folded};

/// Writes the waiting time by waiter's or holder's stack.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, profile: &Profile, shown: Shown) -> io::Result<()> {
    let lines = folded::lines(profile, shown);
    draw(out, &title(profile, shown.by), &lines)
}

fn title(profile: &Profile, by: By) -> String {
    let what = match by {
        By::Waiter => "Time in waits for locks, by waiter",
        By::Holder => "Time in waits for locks, by holder",
    };
    let command = &profile.run.command;
    let program = command.first().map(|program| {
        let file = program.rsplit('/').next().unwrap_or(program);
        format!(": {}", plain(file))
    });
    format!("{what}{}", program.unwrap_or_default())
}

/// Draws folded stacks with one time, or with two to compare.
pub(crate) fn draw(out: &mut dyn Write, title: &str, lines: &[String]) -> io::Result<()> {
    if lines.is_empty() {
        return write!(out, "{EMPTY}");
    }
    let mut options = Options::default();
    options.title = title.to_owned();
    // The times have nanoseconds, which nobody wants to read.
    options.factor = 1e-3;
    options.count_name = "us".to_owned();
    // A function has the same colour in all files.
    options.deterministic = true;
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
}

const EMPTY: &str = r##"<?xml version="1.0" standalone="no"?>
<svg xmlns="http://www.w3.org/2000/svg" width="600" height="60" viewBox="0 0 600 60">
<rect width="100%" height="100%" fill="#fff"/>
<text x="20" y="36" font-family="sans-serif" font-size="16">No thread waited for a lock.</text>
</svg>
"##;
