//! Everything, for programs.

use std::io::{self, Write};

use serde::Serialize;

use super::Row;
use crate::machine::Machine;
use crate::settings::Settings;

/// The whole document.
#[derive(Debug, Serialize)]
struct Document<'a> {
    machine: &'a Machine,
    settings: &'a Settings,
    rows: &'a [Row],
}

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: impl Write,
    machine: &Machine,
    settings: &Settings,
    rows: &[Row],
) -> io::Result<()> {
    let document = Document {
        machine,
        settings,
        rows,
    };
    overlock_report::json::write(out, &document)
}
