//! `overlock run --compare`.

mod common;
#[path = "common/preload.rs"]
mod preload;

use std::fs;
use std::path::Path;

use preload::{compile, run};
use serde_json::Value;

#[test]
fn pairs_of_runs_are_compared_and_written() {
    let program = compile("uncontended", "uncontended-compared", &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("c.json");
    let report = format!("--report={}", json.display());
    let mut command = run(&["--compare", "6", &report]);
    let output = command.arg(program).arg("10000").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    assert!(text.starts_with("6 pairs of runs"), "{text}");
    for line in [" time ", " CPU time ", " sleeps ", " preemptions "] {
        assert!(text.contains(line), "{text}");
    }
    assert!(text.contains("waits for locks, in one more run of each: "));
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(errors.contains("overlock: run 12 of 14\n"), "{errors}");
    let document: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/compare.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    assert_eq!(document["runs"].as_array().unwrap().len(), 6);
}

/// Fails where the C library's runs have our library, or the order does not alternate.
#[test]
fn runs_alternate_and_one_of_a_pair_is_without_us() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let script = "echo \"${LD_PRELOAD:+ours}$OVERLOCK_MUTEX$OVERLOCK_STAT\" >> \"$0\"";
    let output = run(&["--compare", "2"])
        .args(["sh", "-c", script])
        .arg(&log)
        .env("OVERLOCK_MUTEX", "glibc")
        .env("LD_PRELOAD", "/nowhere/liboverlock_preload.so")
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Fewer than 6 pairs"), "{text}");
    let runs = fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = runs.lines().collect();
    let ours = "oursoverlock";
    assert_eq!(lines, ["", ours, ours, "", "oursglibc1", "oursoverlock1"]);
}

#[test]
fn a_run_that_fails_is_named_and_ends_the_comparison() {
    let fails = "test -z \"$LD_PRELOAD\" || exit 3";
    let output = run(&["--compare", "3"])
        .args(["sh", "-c", fails])
        .env("LD_PRELOAD", "/nowhere/liboverlock_preload.so")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let errors = String::from_utf8(output.stderr).unwrap();
    let said = "run 2 of 8, with our locks, ended with exit code 3: there is no comparison\n";
    assert!(errors.ends_with(said), "{errors}");
    for options in [&["--compare", "0"][..], &["--compare", "2", "--stat"]] {
        let refused = run(options).arg("true").output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{options:?}");
    }
}
