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

/// The document of `overlock-lab bench` or `overlock-lab sim` is what its schema says.
pub fn validate(document: &Value) {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/schema/bench.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    jsonschema::validate(&schema, document).unwrap();
}
