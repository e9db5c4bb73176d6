//! `overlock-lab torture` as its users meet it.

mod common;

use std::process::{Command as Process, Stdio};

use assert_cmd::Command;
use predicates::prelude::*;
use rustix::process::Signal;
use serde_json::Value;

use common::{ends, overlock_lab, schema, signal, text, validate};

const SCHEMA: &str = "torture/schema/torture.schema.json";

fn torture() -> Command {
    let mut command = overlock_lab();
    command.arg("torture");
    command
}

fn refused(args: &[&str], says: &[&str]) {
    common::refused(torture().args(args).assert(), says);
}

#[test]
fn bad_use_is_refused_in_one_line_with_what_is_valid() {
    let locks = ["unknown lock 'lock'", "all", "kernel_mutex", "ww_mutex"];
    refused(&["--locks", "lock"], &locks);
    refused(&["--seconds", "0"], &["--seconds 0", "from 0.001"]);
    refused(&["--seed", "x"], &["--seed x", "whole number"]);
    refused(&["--threads", "0"], &["--threads 0", "at least 1"]);
    let most = ["1000000000 threads", "1 to "];
    refused(
        &["--locks", "kernel_mutex", "--threads", "1000000000"],
        &most,
    );
    let small = ["--locks", "pv_ticket_small", "--threads", "128"];
    refused(&small, &["pv_ticket_small takes at most 127 threads"]);
    refused(&["--reads", "101"], &["--reads 101", "from 0 to 100"]);
    refused(&["--nest", "5"], &["--nest 5", "from 1 to 4"]);
    refused(&["--stutter", "-1"], &["--stutter -1", "milliseconds"]);
    refused(&["--patience", "never"], &["--patience never", "seconds"]);
    refused(&["--plan", "0"], &["--plan 0", "from 1"]);
    let json = ["--json", "/nowhere/at/all.json"];
    refused(&json, &["cannot write --json /nowhere/at/all.json"]);
    refused(&["--inject", "no-flaw"], &["unknown flaw 'no-flaw'"]);
}

#[test]
fn all_locks_pass_and_the_result_is_what_its_schema_says() {
    let run = torture()
        .args(["--seconds", "2", "--seed", "1", "--json", "-"])
        .assert()
        .success();
    // The file has the standard output for itself.
    let document: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    validate(SCHEMA, &document);
    assert_eq!(document["passed"], true);
    assert_eq!(document["settings"]["seed"], 1);
    let locks = document["locks"].as_array().unwrap();
    for lock in locks {
        assert_eq!(lock["passed"], true, "{lock}");
        assert!(lock["operations"].as_u64() > Some(0), "{lock}");
        assert!(lock["rests"].as_u64() > Some(0), "{lock}");
    }
    // All of them but the models of peers, and the table shows the same.
    let list = text(torture().arg("--list"));
    let table = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    let (models, listed): (Vec<_>, Vec<_>) =
        list.lines().partition(|line| line.starts_with("model:"));
    assert!(!models.is_empty());
    assert_eq!(listed.len(), locks.len());
    for (line, lock) in listed.into_iter().zip(locks) {
        let name = lock["lock"].as_str().unwrap();
        assert!(line.starts_with(name) && table.contains(name), "{line}");
    }
    let unchecked = document["locks"][0].as_object().unwrap().len();
    let schema = schema(SCHEMA);
    let known = &schema["properties"]["locks"]["items"]["properties"];
    assert_eq!(known.as_object().unwrap().len(), unchecked);
}

#[test]
fn the_options_are_what_is_done() {
    let run = torture()
        .args([
            "--locks",
            "kernel_mutex",
            "--seconds",
            "0.3",
            "--threads",
            "3",
        ])
        .args(["--stutter", "50", "--shuffle", "0", "--churn", "0"])
        .args(["--no-signals", "--no-boost", "--json", "-"])
        .assert()
        .success()
        .stderr(predicate::str::contains("No boosts: they were not wanted."));
    let document: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    let lock = &document["locks"][0];
    assert_eq!(lock["threads"], 3);
    assert!(lock["rests"].as_u64() > Some(1), "{lock}");
    for none in ["shuffles", "successors", "signals", "real_time", "nicer"] {
        assert_eq!(lock[none], 0, "{none}");
    }
}

fn plan(seed: &str) -> String {
    let args = [
        "--locks",
        "kernel_mutex,ticket",
        "--plan",
        "20",
        "--threads",
        "3",
    ];
    text(torture().args(args).args(["--seed", seed]))
}

#[test]
fn the_same_seed_gives_the_same_plan() {
    let first = plan("7");
    assert_eq!(first, plan("7"));
    assert_ne!(first, plan("8"));
    // The seed, and for each thread of each lock a heading and its steps.
    assert_eq!(first.lines().count(), 1 + 2 * 3 * 21);
}

#[test]
fn a_seed_is_chosen_and_told() {
    let run = || {
        let args = ["--locks", "kernel_mutex", "--plan", "1", "--threads", "1"];
        text(torture().args(args))
    };
    assert!(run().starts_with("seed "));
    assert_ne!(run(), run());
}

#[test]
fn quiet_means_quiet() {
    torture()
        .args(["--locks", "kernel_mutex", "--seconds", "0.05", "--quiet"])
        .assert()
        .success()
        .stdout("")
        .stderr("");
}

#[test]
fn ctrl_c_ends_the_run() {
    let mut child = Process::new(assert_cmd::cargo::cargo_bin!("overlock-lab"))
        .args(["torture", "--locks", "kernel_mutex", "--seconds", "60"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The seed is printed once the handler is there.
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert!(line.starts_with("overlock-lab: seed "), "{line}");
    signal(&child, Signal::INT);
    assert_eq!(ends(&mut child).code(), Some(130));
}
