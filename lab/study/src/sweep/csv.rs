//! One line a simulation, for other programs.

use std::io::{self, Write};

use serde_json::{Map, Value};

use super::record::Record;
use super::store::Line;
use overlock_report::csv;

/// Writes a header and the lines. Related fields have names with the same beginning:
/// `waits_p99_ns`. A simulation that failed has its settings and its error.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: impl Write, lines: &[Line]) -> io::Result<()> {
    let rows = lines
        .iter()
        .map(|line| row(&line.record))
        .collect::<Result<Vec<_>, _>>()?;
    // Not all have all fields: waits to read, say.
    let mut names: Map<String, Value> = Map::new();
    for name in rows.iter().flat_map(Map::keys) {
        names.entry(name).or_insert(Value::Null);
    }
    let whole: Vec<Map<String, Value>> = rows
        .into_iter()
        .map(|row| {
            let mut whole = names.clone();
            whole.extend(row);
            whole
        })
        .collect();
    csv::write(out, &whole)
}

fn row(record: &Record) -> serde_json::Result<Map<String, Value>> {
    let record = serde_json::to_value(record)?;
    let mut fields = Vec::new();
    for (name, value) in record.as_object().into_iter().flatten() {
        csv::spread(name, value, &mut fields);
    }
    // A field that may be an object has columns for its parts, if any line has them.
    let there = fields.into_iter().filter(|(_, value)| !value.is_null());
    Ok(there.map(|(name, value)| (name, value.clone())).collect())
}
