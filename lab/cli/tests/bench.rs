//! `overlock-lab bench` as its users meet it.

mod common;

use std::fs;

use assert_cmd::Command;
use predicates::prelude::*;
use serde_json::Value;

use common::overlock_lab;

/// A run of some milliseconds.
fn tiny() -> Command {
    tiny_of("micro")
}

/// The same of another workload.
fn tiny_of(workload: &str) -> Command {
    let mut command = overlock_lab();
    command.args([
        "bench",
        workload,
        "--seconds",
        "0.003",
        "--runs",
        "1",
        "--threads",
        "1,3",
        "--locks",
        "std,glibc",
    ]);
    command
}

fn refused(args: &[&str], says: &[&str]) {
    common::refused(overlock_lab().arg("bench").args(args).assert(), says);
}

/// Of the microbenchmark.
fn micro_refused(args: &[&str], says: &[&str]) {
    common::refused(
        overlock_lab().args(["bench", "micro"]).args(args).assert(),
        says,
    );
}

#[test]
fn bad_use_is_refused_in_one_line_with_what_is_valid() {
    micro_refused(
        &["--locks", "lock"],
        &[
            "unknown lock 'lock'",
            "all, ours, peers",
            "std",
            "glibc-adaptive",
        ],
    );
    micro_refused(&["--locks", ""], &["unknown lock ''", "std"]);
    micro_refused(&["--threads", "0"], &["--threads 0", "at least 1"]);
    micro_refused(
        &["--threads", "2,none"],
        &["--threads none", "whole number"],
    );
    micro_refused(
        &["--threads", "1000000000"],
        &["1000000000 threads", "1 to "],
    );
    micro_refused(&["--overcommit", "0x"], &["--overcommit 0x", "above 0"]);
    micro_refused(&["--overcommit", "NaN"], &["--overcommit NaN", "1x"]);
    micro_refused(
        &["--overcommit", "1000000x"],
        &["threads are more than this machine allows"],
    );
    micro_refused(
        &["--threads", "1", "--overcommit", "1x"],
        &["--threads", "--overcommit", "cannot be used with"],
    );
    micro_refused(&["--cs", "-5"], &["--cs -5"]);
    micro_refused(&["--cs=-5"], &["--cs -5", "from 0"]);
    micro_refused(&["--ncs", "much"], &["--ncs much", "nanoseconds"]);
    micro_refused(&["--seconds", "0"], &["--seconds 0", "from 0.001"]);
    micro_refused(&["--seconds", "inf"], &["--seconds inf"]);
    micro_refused(
        &["--seconds", "1", "--budget", "9"],
        &["cannot be used with"],
    );
    micro_refused(&["--runs", "0"], &["--runs 0", "from 1"]);
    micro_refused(&["--quota", "0"], &["--quota 0", "percentage"]);
    micro_refused(
        &["--quota", "99999999"],
        &["--quota 99999999", "percentage"],
    );
    refused(
        &["macro"],
        &[
            "'macro'", "micro", "semop", "qdisc", "build", "fserver", "rw", "rwsem", "condvar",
        ],
    );
    micro_refused(&["--reads", "5"], &["--reads is for `bench rw` only"]);
    refused(
        &["semop", "--cs", "5"],
        &["--cs is for `bench micro`, `bench build` and `bench rw` only"],
    );
    refused(
        &["rwsem", "--ncs", "5"],
        &["--ncs is for `bench micro`, `bench build` and `bench rw` only"],
    );
    micro_refused(&["--arrays", "5"], &["--arrays is for `bench semop` only"]);
    refused(
        &["fserver", "--records", "5"],
        &["--records is for `bench rw` only"],
    );
    micro_refused(
        &["--pattern", "queue"],
        &["--pattern is for `bench condvar` only"],
    );
    refused(
        &["condvar", "--pattern", "ring"],
        &["'ring'", "queue", "ping-pong", "broadcast"],
    );
    refused(
        &["rw", "--reads", "101"],
        &["--reads 101", "percentage", "from 0 to 100"],
    );
    refused(&["rw", "--reads", "NaN"], &["--reads NaN"]);
    refused(
        &["rw", "--records", "0"],
        &["--records 0", "from 1 to 1000000"],
    );
    micro_refused(&["--frobnicate"], &["--frobnicate"]);
}

#[test]
fn help_lists_the_options_of_the_workload_alone() {
    let all = [
        "--cs",
        "--ncs",
        "--arrays",
        "--reads",
        "--records",
        "--pattern",
    ];
    for (workload, own) in [
        ("micro", &["--cs", "--ncs"][..]),
        ("semop", &["--arrays"]),
        ("qdisc", &[]),
        ("build", &["--cs", "--ncs"]),
        ("fserver", &[]),
        ("rw", &["--cs", "--ncs", "--reads", "--records"]),
        ("rwsem", &[]),
        ("condvar", &["--pattern"]),
    ] {
        let run = overlock_lab()
            .args(["bench", workload, "--help"])
            .assert()
            .success();
        run.stdout(predicate::function(|text: &str| {
            let listed = |option: &&str| text.contains(&format!("      {option} <"));
            all.iter().filter(|option| listed(option)).eq(own)
        }));
    }
}

#[test]
fn a_lock_of_another_workload_is_refused() {
    refused(
        &["rw", "--locks", "std,ticket"],
        &[
            "'ticket' is for micro, semop, qdisc, build and fserver, not for rw and rwsem",
            "the locks are all, ours, peers, default, overlock",
            "glibc-writer",
        ],
    );
    micro_refused(
        &["--locks", "overlock-rwlock"],
        &["'overlock-rwlock' is for rw and rwsem, not for micro"],
    );
    refused(
        &["condvar", "--locks", "glibc-writer"],
        &["'glibc-writer' is for rw and rwsem, not for condvar"],
    );
}

#[test]
fn unwritable_files_are_refused_before_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    micro_refused(
        &["--json", &format!("{dir}/missing/out.json")],
        &["--json", "missing/out.json"],
    );
    micro_refused(&["--csv", dir], &["--csv", "directory"]);
    micro_refused(
        &["--svg", "/proc/overlock.svg"],
        &["--svg", "/proc/overlock.svg"],
    );
    micro_refused(
        &["--json", "-", "--csv", "-"],
        &["two of", "standard output"],
    );
    // A good file beside a bad one is not touched either.
    micro_refused(
        &["--json", &format!("{dir}/good.json"), "--csv", dir],
        &["--csv"],
    );
    micro_refused(
        &["--json", &format!("{dir}/good.json"), "--locks", "lock"],
        &["'lock'"],
    );
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
}

#[test]
fn the_table_shows_what_was_asked_for() {
    tiny()
        .args(["--cs", "20", "--ncs", "50"])
        .assert()
        .success()
        .stdout(predicate::str::contains(
            "micro, critical section 20 ns (measured ",
        ))
        .stdout(predicate::str::contains("1 thread on"))
        .stdout(predicate::str::contains("3 threads on"))
        .stdout(predicate::str::contains("min/avg/max a thread"))
        .stdout(predicate::str::contains("glibc "))
        .stdout(predicate::str::contains("(no lock)"));
}

#[test]
fn a_footnote_is_there_only_with_its_column() {
    for locks in ["ticket", "ticket,std"] {
        let mut command = overlock_lab();
        command.args(["bench", "micro", "--seconds", "0.003", "--runs", "1"]);
        command.args(["--threads", "1", "--locks", locks]);
        let run = command.assert().success();
        run.stdout(predicate::function(|text: &str| {
            let has_column = text.lines().any(|line| line.contains("  x peer"));
            let has_note = text.contains("\nx peer: against the best of ");
            has_column == has_note && has_note == locks.contains("std")
        }));
    }
}

#[test]
fn all_files_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    tiny()
        .args(["--quiet", "--json"])
        .arg(path("out.json"))
        .arg("--csv")
        .arg(path("out.csv"))
        .arg("--svg")
        .arg(path("out.svg"))
        .assert()
        .success()
        .stdout("")
        .stderr("");
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let document: Value = serde_json::from_str(&read("out.json")).unwrap();
    assert_eq!(document["rows"].as_array().unwrap().len(), 2 * 3);
    assert_eq!(document["settings"]["threads"], serde_json::json!([1, 3]));
    let mut csv = csv::Reader::from_path(path("out.csv")).unwrap();
    assert_eq!(csv.headers().unwrap().get(0), Some("lock"));
    assert_eq!(csv.records().map(Result::unwrap).count(), 2 * 3);
    let svg = read("out.svg");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("glibc") && svg.contains("threads"));
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        3,
        "something is left over"
    );
}

#[test]
fn a_dash_is_the_standard_output() {
    let output = tiny()
        .args(["--json", "-"])
        .assert()
        .success()
        .get_output()
        .clone();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["settings"]["workload"], "micro");
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("min/avg/max"),
        "the table has gone elsewhere"
    );
}

#[test]
fn every_workload_runs() {
    for (args, says) in [
        (&["semop"][..], &["4 arrays"][..]),
        (&["qdisc"], &["Mbit/s"]),
        (&["build"], &["build"]),
        (&["fserver"], &["fserver; 1 round", "longest"]),
        (
            &["rw", "--reads", "50", "--cs", "20"],
            &[
                "rw, critical section 20 ns",
                "50 % reads, 1 record",
                "read p99",
                "write longest",
                "x limit",
                "(no lock)",
            ],
        ),
        (
            &["rw", "--records", "1000"],
            &["90 % reads, 1000 records", "(no lock)"],
        ),
        (&["rwsem"], &["rwsem; 1 round", "read longest"]),
        (&["condvar"], &["condvar, queue"]),
        (
            &["condvar", "--pattern", "ping-pong"],
            &["condvar, ping-pong"],
        ),
        (
            &["condvar", "--pattern", "broadcast"],
            &[
                "condvar, broadcast",
                "rounds.\nx peer: against the best of ",
            ],
        ),
    ] {
        let mut run = tiny_of(args[0]).args(&args[1..]).assert().success();
        for text in says {
            run = run.stdout(predicate::str::contains(*text));
        }
        let limited = says.contains(&"(no lock)");
        run.stdout(predicate::function(|text: &str| {
            text.contains("x limit:") == limited
        }));
    }
}

#[test]
fn words_for_groups_are_for_the_workload() {
    for workload in ["micro", "rw", "condvar"] {
        let dir = tempfile::tempdir().unwrap();
        let json = dir.path().join("out.json");
        overlock_lab()
            .args(["bench", workload, "--seconds", "0.001", "--runs", "1"])
            .args(["--threads", "2", "--no-latency", "--quiet", "--json"])
            .arg(&json)
            .assert()
            .success();
        let document: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
        let locks: Vec<&str> = document["settings"]["locks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        for name in ["std", "parking_lot", "glibc"] {
            assert!(locks.contains(&name), "{workload}: {locks:?}");
        }
        let ours = locks.iter().any(|name| name.starts_with("overlock-"));
        assert!(ours, "{workload}: {locks:?}");
        assert!(!locks.contains(&"ticket"), "{workload}: {locks:?}");
    }
}

#[test]
fn the_waits_of_readers_and_writers_are_in_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.csv");
    tiny_of("rw")
        .args(["--reads", "50", "--quiet", "--csv"])
        .arg(&path)
        .assert()
        .success();
    let mut csv = csv::Reader::from_path(path).unwrap();
    let headers = csv.headers().unwrap().clone();
    let column = |name: &str| headers.iter().position(|header| header == name).unwrap();
    for record in csv.records() {
        let record = record.unwrap();
        let number = |name: &str| record[column(name)].parse::<f64>().unwrap();
        assert_eq!(number("reads_percent"), 50.0);
        assert_eq!(
            number("read_waits") + number("write_waits"),
            number("waits")
        );
        assert!(number("read_p50_ns") <= number("read_max_ns"));
        assert!(number("write_p50_ns") <= number("write_max_ns"));
    }
}

#[test]
fn waits_are_timed_unless_nobody_wants_them() {
    tiny().assert().stdout(predicate::str::contains("p99.9"));
    tiny()
        .arg("--no-latency")
        .assert()
        .success()
        .stdout(predicate::str::contains("p99.9").not());
}

#[test]
fn counters_are_shown_when_asked_for() {
    overlock_lab()
        .args([
            "bench",
            "micro",
            "--seconds",
            "0.05",
            "--runs",
            "2",
            "--threads",
            "8",
        ])
        .args(["--locks", "hybrid", "--stat"])
        .assert()
        .success()
        .stdout(predicate::str::contains(
            "hybrid, 8 threads, all rounds:\n  queued mode",
        ))
        .stdout(predicate::str::contains("unfair mode"));
}

#[test]
fn the_locks_are_listed() {
    overlock_lab()
        .args(["bench", "--list"])
        .assert()
        .success()
        .stdout(predicate::str::contains("* std"))
        .stdout(predicate::str::contains("parking_lot 0.13 FairMutex"))
        .stdout(predicate::str::contains(
            "mutual exclusion, for micro, semop, qdisc, build, fserver:",
        ))
        .stdout(predicate::str::contains(
            "reader-writer locks, for rw, rwsem:",
        ))
        .stdout(predicate::str::contains(
            "condition variables, for condvar:",
        ))
        .stdout(predicate::str::contains("glibc-writer"));
}

#[test]
fn pinned_threads_run() {
    tiny()
        .arg("--pin")
        .assert()
        .success()
        .stdout(predicate::str::contains("pinned"));
}
