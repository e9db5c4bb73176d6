//! `overlock-lab sim trace` as its users meet it.

mod common;

use std::collections::HashMap;
use std::fs;

use predicates::prelude::*;
use serde_json::Value;

use common::{overlock_lab, refused};

/// A timeline of that command line.
fn timeline(args: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.json");
    overlock_lab()
        .args(["sim", "trace"])
        .args(["--cores", "2"])
        .args(args)
        .arg("--out")
        .arg(&path)
        .assert()
        .success()
        .stdout("")
        .stderr(predicate::str::contains("ui.perfetto.dev"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Slices nest, each end has its begin, and time does not go back. The names that were seen, and
/// how often.
fn check_timeline(document: &Value) -> HashMap<String, usize> {
    let mut names = HashMap::new();
    let mut tracks: HashMap<(u64, u64), Vec<f64>> = HashMap::new();
    let mut last = 0.0;
    for event in document["traceEvents"].as_array().unwrap() {
        let at = event["ts"].as_f64().unwrap();
        assert!(at >= last, "{event} after {last}");
        last = at;
        let track = ["pid", "tid"].map(|part| event[part].as_u64().unwrap());
        let open = tracks.entry((track[0], track[1])).or_default();
        match event["ph"].as_str().unwrap() {
            "B" => open.push(at),
            "E" => {
                let begin = open.pop().expect("an end has its begin");
                assert!(begin <= at, "{event} began at {begin}");
            }
            "i" | "s" | "f" | "M" => {}
            other => panic!("{other}"),
        }
        if let Some(name) = event["name"].as_str() {
            *names.entry(name.to_owned()).or_default() += 1;
        }
    }
    assert!(tracks.values().all(Vec::is_empty), "a slice has no end");
    names
}

#[test]
fn a_timeline_is_valid() {
    let document = timeline(&["--lock", "pv_queued", "--vcpus", "6", "--seconds", "0.02"]);
    assert_eq!(document["otherData"]["lock"], "pv_queued");
    assert_eq!(document["otherData"]["vcpus"], 6);
    let names = check_timeline(&document);
    let seen = |name: &str| names.get(name).copied().unwrap_or(0);
    assert_eq!(seen("waits for lock 0"), seen("holds lock 0"));
    assert!(seen("holds lock 0") > 100, "{names:?}");
    for name in ["preempted", "asleep", "woken", "kick", "vCPU 5"] {
        assert!(seen(name) > 0, "{name}: {names:?}");
    }
}

#[test]
fn locks_that_are_held_together_nest() {
    let document = timeline(&["fserver", "--lock", "kernel_mutex", "--vcpus", "8"]);
    let names = check_timeline(&document);
    assert!(
        names
            .keys()
            .filter(|name| name.starts_with("holds lock"))
            .count()
            > 1
    );
    let document = timeline(&["rwsem", "--lock", "rwsem", "--vcpus", "8"]);
    check_timeline(&document);
}

#[test]
fn the_same_timeline_twice() {
    let args = ["semop", "--lock", "pv_queued", "--vcpus", "5"];
    assert_eq!(timeline(&args), timeline(&args));
}

#[test]
fn unwritable_timelines_are_refused_before_the_run() {
    let args = ["sim", "trace", "--seconds", "1000", "--out"];
    let run = overlock_lab().args(args).arg("/proc/overlock").assert();
    refused(run, &["--out", "/proc/overlock"]);
}
