//! Everything, for programs. The schema is `schema/bench.schema.json`.

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
    mut out: impl Write,
    machine: &Machine,
    settings: &Settings,
    rows: &[Row],
) -> io::Result<()> {
    serde_json::to_writer_pretty(
        &mut out,
        &Document {
            machine,
            settings,
            rows,
        },
    )?;
    writeln!(out)
}
