//! One line a row, with the same names as in the JSON document.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

/// Writes a header and the rows. Rounds share one field, with semicolons between, and so do
/// counters; a figure that was not measured is empty. The figures of a simulation and of a guest
/// have a field each: `simulation_halts` and so on.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: impl Write, rows: &[impl Serialize]) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    for (index, row) in rows.iter().enumerate() {
        let Value::Object(all) = serde_json::to_value(row)? else {
            unreachable!("a row has fields")
        };
        let mut fields = Vec::new();
        for (name, value) in &all {
            match name.as_str() {
                // Always the same figures, other than the counters of `stat`.
                "simulation" | "guest" => spread(name, value, &mut fields),
                _ => fields.push((name.clone(), value)),
            }
        }
        if index == 0 {
            csv.write_record(fields.iter().map(|(name, _)| name))?;
        }
        csv.write_record(fields.iter().map(|(_, value)| field(value)))?;
    }
    csv.flush()
}

/// A field for each figure of `value`.
fn spread<'a>(name: &str, value: &'a Value, fields: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(parts) => {
            for (part, value) in parts {
                spread(&format!("{name}_{part}"), value, fields);
            }
        }
        figure => fields.push((name.to_owned(), figure)),
    }
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
    fn figures_of_a_simulation_have_their_fields() {
        let value = json!({"halts": 3, "time": {"work": 0.5, "spin": 0.5}});
        let mut fields = Vec::new();
        spread("simulation", &value, &mut fields);
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "simulation_halts",
                "simulation_time_work",
                "simulation_time_spin"
            ]
        );
        assert_eq!(fields[1].1, &json!(0.5));
    }

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
