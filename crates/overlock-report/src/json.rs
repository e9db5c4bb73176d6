//! Documents for other programs.

use std::io::{self, Write};

use serde::Serialize;

/// Writes a document, with an end of line.
///
/// # Errors
///
/// Those of `out`.
pub fn write(mut out: impl Write, document: &(impl Serialize + ?Sized)) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, document)?;
    writeln!(out)
}
