//! Folded stacks: a line for each stack, its frames joined by semicolons, then its nanoseconds.

use std::io::{self, Write};

use crate::{Profile, Shown};

/// Writes the file.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, profile: &Profile, shown: Shown) -> io::Result<()> {
    for line in lines(profile, shown) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The lines, sorted, without those of no time.
pub(crate) fn lines(profile: &Profile, shown: Shown) -> Vec<String> {
    let stacks = shown.folded(profile).into_iter();
    let stacks = stacks.filter(|(_, ns)| *ns > 0);
    stacks
        .map(|(frames, ns)| format!("{} {ns}", joined(&frames)))
        .collect()
}

/// The frames of a line, from the program to the lock.
pub(crate) fn joined(frames: &[String]) -> String {
    let frames: Vec<String> = frames.iter().map(|frame| frame.replace(';', ":")).collect();
    frames.join(";")
}
