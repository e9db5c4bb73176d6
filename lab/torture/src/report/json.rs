//! Everything, for programs. The schema is `schema/torture.schema.json`.

use std::io::{self, Write};

use serde::Serialize;

use super::LockReport;
use crate::settings::Settings;

#[derive(Debug, Serialize)]
struct Document<'a, M> {
    machine: &'a M,
    settings: &'a Settings,
    passed: bool,
    locks: &'a [LockReport],
}

/// Writes the document; `machine` is whatever there is to say of it.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: impl Write,
    machine: &impl Serialize,
    settings: &Settings,
    locks: &[LockReport],
) -> io::Result<()> {
    let document = Document {
        machine,
        settings,
        passed: locks.iter().all(|lock| lock.passed),
        locks,
    };
    overlock_report::json::write(out, &document)
}
