//! Programs under `overlock profile`.

use std::fs;
use std::path::Path;
use std::process::Command;

use overlock_profile::Profile;

use crate::preload::library;

/// The profile of a program, and what was said of it.
pub fn profile_of(program: &Path, arguments: &[&str], options: &[&str]) -> (Profile, String) {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("p.json");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("overlock"));
    command
        .arg("profile")
        .args(options)
        .arg("--json")
        .arg(&json);
    command
        .arg("--library")
        .arg(library())
        .arg("--")
        .arg(program);
    let output = command.args(arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let profile = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    (profile, said)
}
