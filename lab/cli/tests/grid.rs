//! `overlock-lab bench grid`, `overlock-lab bench idle`, and `overlock-lab bench` by itself, as
//! their users meet them.

mod common;

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use assert_cmd::Command;
use predicates::prelude::*;
use rustix::process::Signal;
use serde_json::Value;

use common::{ends, overlock_lab, signal};

/// Some cells of every kind, for about a second.
fn tiny() -> Command {
    let mut command = overlock_lab();
    command.args([
        "bench",
        "grid",
        "--shapes",
        "65/330,yield,two,r90-50/100,queue",
    ]);
    command.args(["--threads", "1,3", "--locks", "std,glibc"]);
    command.args(["--rounds", "2", "--seconds", "0.004"]);
    command
}

fn refused(args: &[&str], says: &[&str]) {
    common::refused(overlock_lab().arg("bench").args(args).assert(), says);
}

#[test]
fn bad_use_is_refused_in_one_line_with_what_is_valid() {
    refused(
        &["grid", "--shapes", "nix"],
        &["unknown shape 'nix'", "65/330", "ping-pong"],
    );
    let other = ["grid", "--families", "rwlock", "--shapes", "65/330"];
    refused(&other, &["unknown shape '65/330'", "r90-50/100"]);
    refused(
        &["grid", "--families", "locks"],
        &["'locks' for '--families", "mutex, rwlock, condvar"],
    );
    refused(
        &["grid", "--locks", "nix"],
        &["unknown lock 'nix'", "glibc"],
    );
    let alone = ["grid", "--locks", "overlock-mutex"];
    refused(&alone, &["--locks leaves fewer than two locks to compare"]);
    refused(&["grid", "--rounds", "0"], &["--rounds 0", "from 1"]);
    refused(&["grid", "--threads", "0"], &["--threads 0"]);
    refused(
        &["grid", "--threads", "100000000"],
        &["threads are more than this machine allows"],
    );
    refused(
        &["grid", "--seconds", "1", "--budget", "9"],
        &["cannot be used with"],
    );
    refused(
        &["grid", "--json", "-", "--svg", "-"],
        &["two of", "standard output"],
    );
    refused(
        &["--json", "/missing/out.json"],
        &["--json", "/missing/out.json"],
    );
    refused(&["--cs", "5"], &["--cs"]);
    refused(
        &["idle", "--what", "spoon"],
        &["'spoon' for '--what", "mutex, read, write"],
    );
    refused(
        &["idle", "--locks", "nix"],
        &["unknown lock 'nix'", "ours, peers", "glibc"],
    );
    let none = ["idle", "--what", "semaphore", "--locks", "usync"];
    refused(&none, &["no lock of --locks is one of --what"]);
    refused(&["idle", "--threads", "0"], &["--threads 0"]);
}

#[test]
fn the_worst_cell_leads() {
    tiny()
        .assert()
        .success()
        .stdout(predicate::str::contains("Check of the loops"))
        .stdout(predicate::str::contains("The worst cells:"))
        .stdout(predicate::str::contains("Jain's index of ours"))
        .stdout(predicate::str::contains("geometric mean"))
        .stdout(predicate::str::contains("\u{1b}").not())
        .stderr(predicate::str::contains("10 cells, about "))
        .stderr(predicate::str::contains("Ctrl-C"));
}

#[test]
fn all_files_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    tiny()
        .args(["--quiet", "--json"])
        .arg(path("out.json"))
        .arg("--svg")
        .arg(path("out.svg"))
        .arg("--markdown")
        .arg(path("out.md"))
        .assert()
        .success()
        .stdout("")
        .stderr("");
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let document: Value = serde_json::from_str(&read("out.json")).unwrap();
    assert_eq!(document["cells"].as_array().unwrap().len(), 5 * 2);
    assert_eq!(document["settings"]["form"], "grid");
    let peers = document["cells"][0]["rows"].as_array().unwrap();
    let peers: Vec<&str> = peers
        .iter()
        .map(|row| row["lock"].as_str().unwrap())
        .collect();
    assert!(peers[0].starts_with("overlock-"), "{peers:?}");
    assert_eq!(peers[1..3], ["std", "glibc"]);
    let svg = read("out.svg");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    assert!(read("out.md").starts_with("Measured by `overlock-lab bench grid "));
}

#[test]
fn a_dash_is_the_standard_output() {
    let output = tiny().args(["--json", "-"]).assert().success();
    let output = output.get_output().clone();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["version"], 1);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("The worst cells:"),
        "the table has gone elsewhere: {text}"
    );
}

#[test]
fn the_default_is_a_short_form_of_the_grid() {
    let mut short = overlock_lab();
    short.args(["bench", "--locks", "std", "--threads", "2", "--rounds", "1"]);
    short.args(["--seconds", "0.002", "--details"]);
    let text = common::text(&mut short);
    for part in [
        "The worst cells:",
        "mutex   20/80",
        "condvar queue",
        "(no lock)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        !text.contains("Jain's index of ours"),
        "only the map of the ratios: {text}"
    );
}

#[test]
fn the_shapes_are_listed() {
    let text = common::text(overlock_lab().args(["bench", "grid", "--list"]));
    for part in [
        "mutex (mutual exclusion):",
        "now-and-then",
        "threads 500, 2000",
        "ping-pong",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Further rounds are given up, and the first ones are reported.
#[test]
fn ctrl_c_reports_what_has_been_measured() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("out.json");
    // The check of the loops, then a round of ours, std and the limit: how long that takes is up to
    // the machine.
    for wait in [400, 1_600, 6_400, 25_600, 102_400].map(Duration::from_millis) {
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("overlock-lab"))
            .args(["bench", "grid", "--shapes", "65/330", "--threads", "2"])
            .args(["--locks", "std", "--rounds", "10000", "--seconds", "0.02"])
            .arg("--json")
            .arg(&json)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The thread that waits for signals is there, so the handler is as well.
        let tasks = format!("/proc/{}/task", child.id());
        while fs::read_dir(&tasks).map_or(0, Iterator::count) < 2 {
            assert!(child.try_wait().unwrap().is_none(), "it ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(wait);
        signal(&child, Signal::INT);
        assert_eq!(ends(&mut child).code(), Some(130));
        let text = fs::read_to_string(&json).unwrap_or_default();
        if !text.is_empty() {
            let document: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(document["settings"]["end"], "interrupted");
            return;
        }
    }
    panic!("nothing was measured");
}

#[test]
fn blocked_threads_are_measured() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("out.json");
    let mut idle = overlock_lab();
    idle.args([
        "bench",
        "idle",
        "--threads",
        "5",
        "--seconds",
        "0.02",
        "--settle",
        "0",
    ]);
    idle.args(["--what", "mutex,barrier", "--locks", "ours,std", "--json"]);
    let text = common::text(idle.arg(&json));
    for part in [
        "5 threads blocked for 0.02 s",
        "The worst of ours:",
        "owner slower by",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let document: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(document["rows"].as_array().unwrap().len(), 4);
}
