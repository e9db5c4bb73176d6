//! Machines and hosts as TOML, to start a file from.

use std::fmt::Write;

use super::{Domain, Spec, Value};

/// Returns a file that describes `of`: every key with its meaning and its range.
pub fn toml<T: Spec>(of: &T) -> String {
    let name = of.name().split(':').next().unwrap_or_default();
    let mut text = format!(
        "# Keys that a file leaves out are those of its base.\nbase = \"{name}\"\nabout = \"{}\"\n",
        of.about().replace('\\', "\\\\").replace('"', "\\\"")
    );
    for key in T::keys() {
        let Some(value) = key.get(of) else {
            continue;
        };
        let value = match value {
            Value::Time(_) | Value::Word(_) => format!("\"{value}\""),
            _ => value.to_string(),
        };
        let range = match key.kind {
            Domain::Flag => String::new(),
            kind => format!(": {kind}"),
        };
        // Writing to a string does not fail.
        let _ = write!(text, "\n# {}{range}\n{} = {value}\n", key.about, key.name);
    }
    text
}
