//! One line a simulation, for other programs.

use std::io::{self, Write};

use serde_json::{Map, Value};

use super::record::{Outcome, Record};
use super::store::Line;
use crate::report::csv;

/// Writes a header and the lines. What belongs together has names with the same beginning: `waits.p99_ns`. A simulation that failed
/// has its settings and its error.
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
    let mut row = Map::new();
    add(&mut row, "", serde_json::to_value(&record.key)?);
    match &record.outcome {
        Outcome::Measured(measured) => {
            row.insert("error".to_owned(), Value::Null);
            add(&mut row, "", serde_json::to_value(measured)?);
        }
        failed @ Outcome::Failed { .. } => add(&mut row, "", serde_json::to_value(failed)?),
    }
    Ok(row)
}

fn add(row: &mut Map<String, Value>, before: &str, value: Value) {
    let Value::Object(fields) = value else {
        unreachable!("a record has fields")
    };
    for (name, value) in fields {
        let name = format!("{before}{name}");
        match value {
            Value::Object(_) => add(row, &format!("{name}."), value),
            // Its parts have columns where anybody has them.
            Value::Null => {}
            value => {
                row.insert(name, value);
            }
        }
    }
}
