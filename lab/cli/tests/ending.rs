//! Quotas and interrupts: whatever happens, nothing is left behind.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use overlock_bench::cgroup::Place;
use rustix::process::Signal;

use common::{ends, signal};

fn overlock(args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("overlock-lab"));
    command
        .args(["bench", "micro"])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// Runs for a minute unless a signal ends it.
fn long(args: &[&str]) -> Command {
    let mut command = overlock(&["--locks", "std", "--threads", "2", "--seconds", "60"]);
    command.args(args);
    command
}

/// The cgroup of a run with a quota.
fn group(pid: u32) -> Option<PathBuf> {
    Place::of("cpu").map(|place| place.dir.join(format!("overlock-bench-{pid}")))
}

/// Whether a run ended since it may not set quotas here, and said so.
fn was_refused(child: Child, status: ExitStatus) -> bool {
    let text = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    let refused = status.code() == Some(2);
    assert!(
        !refused || text.contains("--quota: ") && text.lines().count() == 1,
        "{text}"
    );
    refused
}

/// Waits until the locking threads are there, or the program has ended.
fn wait_for_threads(child: &mut Child) {
    let tasks = format!("/proc/{}/task", child.id());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(120) {
        // The main thread, the one for signals, two that lock.
        let threads = fs::read_dir(&tasks).map_or(0, Iterator::count);
        if threads >= 4 || child.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it does not start");
}

fn entries(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

#[test]
fn ctrl_c_leaves_no_file_and_says_130() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("out.json");
    for which in [Signal::INT, Signal::TERM] {
        let mut child = long(&["--json", json.to_str().unwrap()])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for_threads(&mut child);
        signal(&child, which);
        assert_eq!(ends(&mut child).code(), Some(130));
        assert_eq!(entries(dir.path()), 0);
    }
}

#[test]
fn a_quota_counts_and_is_gone_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("out.json");
    let args = [
        "--locks",
        "std",
        "--overcommit",
        "2x",
        "--seconds",
        "0.1",
        "--runs",
        "1",
        "--no-latency",
    ];
    let mut child = overlock(&args)
        .args(["--quota", "50", "--quiet", "--json", json.to_str().unwrap()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let group = group(child.id());
    let status = ends(&mut child);
    if was_refused(child, status) {
        return;
    }
    assert_eq!(status.code(), Some(0));
    assert!(!group.unwrap().exists());
    let document: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(document["machine"]["cpus"], 0.5);
    assert_eq!(document["settings"]["quota_percent"], 50.0);
    // Two threads for each CPU of half a CPU is one.
    assert_eq!(document["rows"][0]["threads"], 1);
}

#[test]
fn ctrl_c_leaves_no_cgroup() {
    let mut child = long(&["--quota", "100"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_threads(&mut child);
    let group = group(child.id());
    let exists = || group.as_ref().is_some_and(|group| group.exists());
    let there = exists();
    signal(&child, Signal::INT);
    let status = ends(&mut child);
    if was_refused(child, status) {
        return;
    }
    assert_eq!(status.code(), Some(130));
    assert!(there && !exists());
}
