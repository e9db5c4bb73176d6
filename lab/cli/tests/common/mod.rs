//! Helpers of the tests of several subcommands.

#![allow(dead_code, unused_imports)] // each test program uses a part of it

#[path = "../../../../crates/overlock-cli/tests/common/program.rs"]
mod program;

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

pub use program::*;

/// The program.
pub fn overlock_lab() -> Command {
    Command::cargo_bin("overlock-lab").unwrap()
}

/// A schema of the laboratory's.
pub fn schema(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The document is what the schema says.
pub fn validate(file: &str, document: &Value) {
    jsonschema::validate(&schema(file), document).unwrap();
}

/// Each line of `table` is a bad command line, an arrow, and what the one line of its refusal says.
pub fn all_refused(table: &str) {
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        let (args, says) = line.split_once(" => ").unwrap();
        let says: Vec<&str> = says.split(" | ").collect();
        let assert = overlock_lab().args(args.split_whitespace()).assert();
        refused(assert.append_context("row", line.trim().to_owned()), &says);
    }
}
