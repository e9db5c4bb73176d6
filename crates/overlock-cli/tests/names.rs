//! Names in reports: whose rows they are.

mod common;
#[path = "common/preload.rs"]
mod preload;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use common::{cpu_time, overlock};
use preload::{compile, library, run};
use serde_json::Value;

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The functions that name the rows of the first process.
fn sites(json: &Path) -> Vec<String> {
    let document: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let rows = document["processes"][0]["locks"].as_array().unwrap();
    let name = |row: &Value| row["site"]["function"].as_str().unwrap_or("").to_owned();
    rows.iter().map(name).collect()
}

/// Fails where rules of the user, given or configured, do not change who names a row.
#[test]
fn users_say_which_functions_are_wrappers() {
    let program = compile("hot", "hot-wrapped", &[]);
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("overlock")).unwrap();
    fs::write(at("mine.txt"), "# ours\nfunction short_*\n").unwrap();
    fs::write(at("overlock/wrappers.txt"), "function long_section\n").unwrap();
    fs::write(at("bad.txt"), "\nwrapper short_*\n").unwrap();
    let json = at("r.json");
    let report = format!("--report={}", json.display());
    let mine = format!("--wrappers={}", at("mine.txt").display());
    let go = |options: &[&str], configuration: &Path| {
        let mut command = run(options);
        command.env("XDG_CONFIG_HOME", configuration);
        command.arg(&program).arg("10").output().unwrap()
    };
    for (options, configuration, wrapped) in [
        (&[report.as_str()][..], at("none"), &[][..]),
        (&[&report, &mine], at("none"), &["short_section"]),
        (
            &[&report, &mine],
            at(""),
            &["short_section", "long_section"],
        ),
    ] {
        let output = go(options, &configuration);
        let names = sites(&json);
        for name in ["short_section", "long_section"] {
            let expected = !wrapped.contains(&name);
            let found = names.iter().any(|found| found == name);
            assert_eq!(found, expected, "{name} {names:?}: {}", text(&output));
        }
        let has_caller = names.iter().any(|name| name == "thread");
        assert_eq!(has_caller, !wrapped.is_empty(), "{names:?}");
    }
    let bad = format!("--wrappers={}", at("bad.txt").display());
    let output = go(&[&bad], &at("none"));
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains("bad.txt:2 is no rule"),
        "{}",
        text(&output)
    );
    let output = overlock().args(["report", "--list-wrappers"]).output();
    let listed = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(listed.contains("\nfunction uv_mutex_*\n"), "{listed}");
}

/// Fails where the files of a program are read anew for each of its processes.
#[test]
fn a_report_of_many_processes_reads_their_files_once() {
    let program = compile("many", "many", &[]);
    let dir = tempfile::tempdir().unwrap();
    let few = tempfile::tempdir().unwrap();
    for (children, dir) in [("1", &few), ("20", &dir)] {
        let status = Command::new(&program)
            .arg(children)
            .env("LD_PRELOAD", library())
            .env("OVERLOCK_STAT", "1")
            .env("OVERLOCK_STAT_DIR", dir.path())
            .status();
        assert!(status.unwrap().success());
    }
    let time = |dir: &Path| {
        let (time, output) = cpu_time(&["report", "--report=-", dir.to_str().unwrap()]);
        let rows = String::from_utf8(output.stdout).unwrap();
        (time, rows.matches("\"pid\"").count())
    };
    // A guest takes the time of a stop for that of the program which ran.
    let is_soon = (0..5).any(|_| {
        let (one, _) = time(few.path());
        let (all, rows) = time(dir.path());
        assert!(rows > 12, "{rows}");
        all < one * 6.0 + 1.0
    });
    assert!(is_soon);
}

/// Fails where the walk stops at code that was made at run time, or where that has no name.
#[test]
fn code_made_at_run_time_is_passed_through_and_named() {
    let program = compile("made", "made", &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let report = format!("--report={}", json.display());
    for (arguments, function, shown) in [
        (&["made_by_jit"][..], "made_by_jit", "made_by_jit"),
        (&["py::handle:/srv/app/main.py"], "handle", "handle main.py"),
        (&["JS:*fill /srv/a.js:12:3"], "fill", "fill a.js:12"),
        (&["trampoline", "bare"], "trampoline", "trampoline"),
    ] {
        let mut command = run(&["--stat", &report]);
        let output = command.arg(&program).args(arguments).output();
        let output = output.unwrap();
        let map = String::from_utf8_lossy(&output.stdout).into_owned();
        fs::remove_file(map.trim()).unwrap();
        assert_eq!(sites(&json), [function], "{}", text(&output));
        assert!(text(&output).contains(shown), "{}", text(&output));
        let document: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        let stack = document["processes"][0]["locks"][0]["stack"]
            .as_array()
            .unwrap()
            .clone();
        let names: Vec<&str> = (stack.iter().take(4))
            .map(|place| place["function"].as_str().unwrap_or("?"))
            .collect();
        assert_eq!(names, ["mutex_lock", function, "interpret", "waits"]);
    }
}

/// Fails where a lock of a program without symbols has an address that differs in each run.
#[test]
fn static_locks_without_symbols_have_their_place_in_the_file() {
    let program = compile("hot", "hot-stripped", &["-s"]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("p.json");
    let names = || -> Vec<String> {
        let output = overlock()
            .arg("profile")
            .arg(format!("--json={}", json.display()))
            .arg(format!("--library={}", library().display()))
            .arg("--")
            .args([program.as_os_str(), "10".as_ref()])
            .output()
            .unwrap();
        assert!(
            text(&output).contains(" for hot-stripped+0x"),
            "{}",
            text(&output)
        );
        let profile: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        let locks = profile["locks"].as_array().unwrap();
        let name = |lock: &Value| lock["name"].as_str().unwrap().to_owned();
        locks.iter().map(name).collect()
    };
    let place = |names: Vec<String>| {
        let found = names
            .iter()
            .find(|name| name.starts_with("hot-stripped+0x"));
        found.unwrap_or_else(|| panic!("{names:?}")).clone()
    };
    assert_eq!(place(names()), place(names()));
}

/// Fails where a lock has the name of an object that lay in its memory before.
#[test]
fn a_lock_in_used_memory_is_not_named_by_what_lay_there() {
    let program = compile("reborn", "reborn", &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let report = format!("--report={}", json.display());
    let glibc = ["--mutex=glibc", "--rwlock=glibc"];
    const SAME: [[&str; 2]; 2] = [["mutex", "mutex"], ["rwlock", "rwlock"]];
    // The first ones have no room for a mark.
    const OTHER: [[&str; 2]; 3] = [["cond", "mutex"], ["sem", "mutex"], ["sem", "rwlock"]];
    for (options, kinds, ends) in [
        (&[][..], &SAME[..], "freed"),
        (&[], &SAME, "destroyed"),
        (&[], &OTHER, "freed"),
        (&[], &OTHER, "destroyed"),
        // The C library's locks have no room for a mark.
        (&glibc, &SAME, "destroyed"),
    ] {
        for kinds in kinds {
            let options = [options, &["--stat", &report]].concat();
            let output = run(&options).arg(&program).args(kinds).arg(ends).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{}", text(&output));
            let document: Value =
                serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
            let process = &document["processes"][0];
            let rows = ["locks", "events"].map(|rows| process[rows].as_array().unwrap());
            let is_by_makes = |site: &str| {
                let rows = rows.into_iter().flatten();
                let rows: Vec<_> = rows.filter(|row| row["site"]["function"] == site).collect();
                assert!(!rows.is_empty(), "{site}: {}", text(&output));
                rows.iter().any(|row| row["init"]["function"] == "makes")
            };
            assert!(is_by_makes("waits_for_first"), "{options:?} {kinds:?}");
            assert!(!is_by_makes("waits_for_second"), "{options:?} {kinds:?}");
        }
    }
}
