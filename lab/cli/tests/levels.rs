//! Numbers of vCPUs, levels of overcommit among them.

mod common;

use std::fs;

use assert_cmd::Command;
use predicates::prelude::*;
use serde_json::Value;

use common::overlock_lab;

fn merge(part: &str) -> Command {
    let mut program = overlock_lab();
    program.args(["sim", "merge", part]);
    program
}

/// Two machines, of 8 CPUs and of 4, with two locks.
fn sweep(out: &str) {
    let machines = "e5-2699v3:cores=8,barcelona:cores=4";
    let mut program = overlock_lab();
    program.args(["sim", "sweep", "--machines", machines, "--hosts", "threads"]);
    program.args(["--locks", "ticket,model:std", "--vcpus", "0.5x,2x"]);
    program.args(["--seeds", "1", "--seconds", "0.0002", "--out", out]);
    let starts = predicate::str::starts_with("overlock-lab: 8 simulations");
    program.assert().success().stderr(starts);
}

#[test]
fn levels_are_vcpus_for_each_cpu_of_the_machine() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sweep.jsonl");
    let path = path.to_str().unwrap();
    sweep(path);
    let mut vcpus = Vec::new();
    for line in fs::read_to_string(path).unwrap().lines().skip(1) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["cpu_s_per_mop"].as_f64() > Some(0.0), "{line}");
        if line["lock"] == "ticket" {
            vcpus.push(line["vcpus"].as_u64().unwrap());
        }
    }
    vcpus.sort_unstable();
    assert_eq!(vcpus, [2, 4, 8, 16]);
    merge(path)
        .assert()
        .success()
        .stdout(predicate::str::contains("CPU s/Mop"));
}

#[test]
fn locks_that_take_fewer_vcpus_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let mut command = overlock_lab();
    command.args(["sim", "sweep"]);
    command.args(["--locks", "pv_ticket_small,unfair", "--vcpus", "2,128"]);
    command.args([
        "--seeds",
        "1",
        "--seconds",
        "0.0001",
        "--out",
        out.to_str().unwrap(),
    ]);
    command
        .assert()
        .success()
        .stderr(predicate::str::contains(
            "pv_ticket_small takes at most 127 vCPUs, and is left out beyond",
        ))
        .stderr(predicate::str::contains(
            "3 simulations, 0 of them done already",
        ));
}
