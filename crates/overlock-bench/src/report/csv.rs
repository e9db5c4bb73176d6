//! One line a row, with the same names as in the JSON document.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

/// Writes a header and the rows. Rounds share one field, with semicolons between, and so do counters;
/// what was not measured is empty.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: impl Write, rows: &[impl Serialize]) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    for (index, row) in rows.iter().enumerate() {
        let Value::Object(fields) = serde_json::to_value(row)? else {
            unreachable!("a row has fields")
        };
        if index == 0 {
            csv.write_record(fields.keys())?;
        }
        csv.write_record(fields.values().map(field))?;
    }
    csv.flush()
}

fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(field).collect::<Vec<_>>().join(";"),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name}={}", field(value)))
            .collect::<Vec<_>>()
            .join(";"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields() {
        assert_eq!(field(&Value::Null), "");
        assert_eq!(field(&json!("std")), "std");
        assert_eq!(field(&json!([1.5, 2])), "1.5;2");
        assert_eq!(
            field(&json!({"queued": 3, "unfair": 4})),
            "queued=3;unfair=4"
        );
    }
}
