//! The place of the tables of `overlock run --stat`, and their creators: processes that drop
//! privileges, daemons, full file systems.

mod common;
#[path = "common/preload.rs"]
mod preload;

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use common::{files, overlock};
use preload::{compile, library, run};
use rustix::process::{Pid, Signal, kill_process};

/// Fails where waits are not counted after a process has dropped its privileges, or its files.
#[test]
fn processes_that_drop_privileges_are_counted() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root has privileges to drop");
        return;
    }
    let program = compile("privileges", "privileges", &[]);
    for how in ["here", "fork", "later", "chroot"] {
        let output = run(&["--stat"])
            .arg(&program)
            .args([how, "65534"])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{how}: {text}");
        assert!(text.contains("section privileges.c:"), "{how}: {text}");
    }
}

/// Fails where a daemon's table goes with the program that has started it, or no message says where
/// it is.
#[test]
fn a_daemon_counts_on_and_is_found() {
    let program = compile("daemon", "daemon", &[]);
    let output = run(&["--stat"]).arg(&program).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let after = |mark: &str, end: &str| {
        let start = text.find(mark).unwrap_or_else(|| panic!("{text}")) + mark.len();
        text[start..].split_once(end).unwrap().0.to_owned()
    };
    let pid = after("overlock: daemon (process ", ")");
    let dir = after("all tables are in ", ",");
    let report = |what: &str| common::text(overlock().args(["report", what]));
    let begin = Instant::now();
    // It has nothing to count at first.
    while overlock()
        .args(["report", &pid])
        .output()
        .unwrap()
        .status
        .code()
        == Some(2)
    {
        assert!(begin.elapsed().as_secs() < 300, "{text}");
        thread::sleep(Duration::from_millis(10));
    }
    while !report(&pid).contains("section daemon.c:") {
        assert!(begin.elapsed().as_secs() < 300, "{}", report(&pid));
    }
    let top = common::text(overlock().args(["top", "--once", &pid]));
    assert!(top.contains("section daemon.c:"), "{top}");
    kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    assert!(report(&dir).contains("section daemon.c:"));
    fs::remove_dir_all(dir).unwrap();
}

/// Fails where each process that has ended keeps its table's memory, or is in no report.
#[test]
fn tables_of_processes_that_have_ended_take_no_room() {
    let program = compile("brood", "brood", &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let report = format!("--report={}", json.display());
    let output = run(&["--stat", &report]).arg(&program).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let most: u32 = String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(most < 150, "{most} tables at one time");
    let document: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let processes = document["processes"].as_array().unwrap();
    let waits = |process: &&serde_json::Value| {
        let mut rows = process["locks"].as_array().unwrap().iter();
        rows.any(|row| row["lock"] == "lock" && row["wait"]["total_ns"].as_u64() > Some(0))
    };
    let waited = processes.iter().filter(waits).count();
    let all = processes.len();
    assert!(waited == 300 && all >= 300, "{waited} of {all}");
    assert!(
        said.contains(&format!("And {} more processes", all - 5)),
        "{said}"
    );
}

/// Fails where a table of no bytes stays, where a program ends by SIGXFSZ, and where a daemon,
/// which has no standard error, prints nothing.
#[test]
fn where_no_table_fits_none_is_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 1; LD_PRELOAD=$0 exec env"])
        .arg(library())
        .env("OVERLOCK_STAT", "1")
        .env("OVERLOCK_STAT_DIR", dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "overlock: no table for --stat: cannot create its file\n"
    );
    let left = files(dir.path());
    let [note] = &left[..] else {
        panic!("{left:?}")
    };
    assert_eq!(fs::metadata(note).unwrap().len(), 0);
    let pid = note.extension().unwrap().to_str().unwrap();
    // For those who do not see what the program says.
    let report = overlock().arg("report").arg(dir.path()).output().unwrap();
    let said = String::from_utf8(report.stderr).unwrap();
    let expected = format!("process {pid} counted nothing: no table");
    assert!(said.contains(&expected), "{said}");
    assert!(report.status.success());
}
