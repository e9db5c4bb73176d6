//! The program around its subcommands.

mod common;

use predicates::prelude::*;

use common::{overlock_lab, refused};

#[test]
fn help_has_examples() {
    overlock_lab()
        .args(["bench", "--help"])
        .assert()
        .success()
        .stdout(predicate::str::contains(
            "overlock-lab bench micro --locks overlock,parking_lot",
        ))
        .stdout(predicate::str::contains("overlock-lab bench rw --reads 99"))
        .stdout(predicate::str::contains("Exit codes:"));
}

#[test]
fn unknown_commands_are_refused_in_one_line() {
    refused(overlock_lab().arg("brunch").assert(), &["'brunch'"]);
    refused(overlock_lab().arg("top").assert(), &["overlock top"]);
}

#[test]
fn completions_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        overlock_lab()
            .args(["completions", shell])
            .assert()
            .success()
            .stdout(predicate::str::contains("overcommit"))
            .stdout(predicate::str::contains("ping-pong"))
            .stdout(predicate::str::contains("latency-rounds"))
            .stdout(predicate::str::contains("settle"))
            .stdout(predicate::str::contains("shfllock"))
            .stdout(predicate::str::contains("vcpus"))
            .stdout(predicate::str::contains("trace"));
    }
}

#[test]
fn all_manual_pages_are_written() {
    let dir = tempfile::tempdir().unwrap();
    overlock_lab()
        .args(["man", "--all"])
        .arg(dir.path())
        .assert()
        .success()
        .stdout("");
    for page in [
        "overlock-lab",
        "overlock-lab-bench",
        "overlock-lab-bench-grid",
        "overlock-lab-bench-idle",
        "overlock-lab-sim-trace",
    ] {
        let text = std::fs::read_to_string(dir.path().join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".SH NAME"), "{page}: {text}");
    }
}

#[test]
fn manual_pages_are_printed() {
    overlock_lab()
        .arg("man")
        .assert()
        .success()
        .stdout(predicate::str::contains(".TH overlock-lab 1"));
    overlock_lab()
        .args(["man", "bench"])
        .assert()
        .success()
        .stdout(predicate::str::contains("overcommit"))
        .stdout(predicate::str::contains("rwsem"));
    overlock_lab()
        .args(["man", "sim"])
        .assert()
        .success()
        .stdout(predicate::str::contains("vcpus"))
        .stdout(predicate::str::contains("overlock\\-lab\\-sim\\-trace(1)"));
    overlock_lab()
        .args(["man", "sim", "trace"])
        .assert()
        .success()
        .stdout(predicate::str::contains("timeline"));
    overlock_lab()
        .args(["man", "sim", "lunch"])
        .assert()
        .code(2)
        .stderr(predicate::str::contains(
            "no manual page for 'lunch'; there is one for trace",
        ));
    overlock_lab()
        .args(["man", "lunch"])
        .assert()
        .code(2)
        .stderr(predicate::str::contains(
            "bench, torture, sim, vm, model, completions",
        ));
}
